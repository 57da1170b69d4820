"""`explain`: the documented fields, reports known from elsewhere, and threads in their context."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from bot.explain import explain
from bot.mail.settings import BotSettings
from bot.replies.which_report import KnownReport
from tests.bot.robot_reports.test_report import INVENTED

BOT = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), trust_policy="open")
FIELDS = {
    *("message_id", "in_reply_to", "references", "subject", "date", "author", "kind", "own_text", "report_ids"),
    *(
        "commands",
        "trailers",
        "patches",
        "links",
        "report",
        "trust",
        "role",
        "roles",
        "intents",
        "effect",
        "effects",
        "problems",
    ),
}
REPLY = """\
From: Dana Brook <dana@dev.example>
Message-ID: <r@dev.example>
In-Reply-To: <202603110412.3b1f0c9d-lkp@intel.com>
Date: Wed, 11 Mar 2026 10:15:00 +0100

It is the lock.
"""


def explained(*mails: str, settings: BotSettings = BOT, known: tuple[KnownReport, ...] = ()) -> list[dict[str, Any]]:
    return list(explain([mail.encode("latin-1") for mail in mails], settings, known))


def test_a_report_and_its_reply() -> None:
    report, reply = explained(INVENTED, REPLY)
    assert report.keys() == FIELDS | {"state", "state_if_accepted", "status"}
    assert reply.keys() == FIELDS
    assert (report["kind"], report["report"]["change_pct"], report["state"]) == ("robot", -12.4, "responded")
    assert reply["report_ids"] == report["report_ids"] == [report["report"]["culprit"]]
    assert (reply["effect"]["state"], reply["effect"]["rule"]) == ("responded", "reply_of_author")
    assert reply["date"] == "2026-03-11T09:15:00Z"
    json.dumps([report, reply])


def test_the_order_of_the_input_is_kept_and_does_not_matter() -> None:
    reply, report = explained(REPLY, INVENTED)
    assert reply["message_id"] == "r@dev.example"
    assert report["state"] == "responded"


def test_a_report_known_from_elsewhere() -> None:
    known = KnownReport("7d3e91c0a45b28f6", "3b1f0c9d2e", "", ("202603110412.3b1f0c9d-lkp@intel.com",))
    (reply,) = explained(REPLY, known=(known,))
    assert reply["report_ids"] == ["7d3e91c0a45b28f6"]
    assert "state" not in reply


def test_what_needs_proof_is_suggested_and_counts_when_accepted() -> None:
    unproven = BotSettings(address=BOT.address, robots=BOT.robots, trust_policy="verified")
    report, reply = explained(INVENTED, REPLY.replace("It is the lock.", "#lkp invalid"), settings=unproven)
    assert reply["effect"] == {"state": "invalid", "mode": "suggest", "rule": "command_invalid"}
    assert (report["state"], report["state_if_accepted"]) == ("responded", "invalid")


def test_a_link_to_another_report_changes_nothing() -> None:
    link = "https://lore.kernel.org/oe-lkp/202603110412.3b1f0c9d-lkp@intel.com"
    mail = f"From: Lee <lee@dev.example>\nMessage-ID: <x@y>\nSubject: [PATCH] a\n\nas in {link}\n"
    (report, other) = explained(INVENTED, mail)
    assert other["report_ids"] == report["report_ids"]
    assert other["effect"]["state"] == "none"


@given(st.lists(st.binary(max_size=400), max_size=4))
def test_any_bytes_are_explained(mails: list[bytes]) -> None:
    objects = list(explain(mails, BOT))
    assert len(objects) == len(mails)
    for each in objects:
        assert each.keys() >= FIELDS
        json.dumps(each, ensure_ascii=False).encode()


# --- the command ---


def run(*arguments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("explain", *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_command_needs_no_database(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text(REPLY)
    known = [{"id": "r1", "message_id": "<202603110412.3b1f0c9d-lkp@intel.com>", "culprit": "3b1f", "title": "t"}]
    (tmp_path / "known.json").write_text(json.dumps(known))
    (alone,) = run(str(tmp_path / "a.eml"))
    assert alone["report_ids"] == []
    (in_context,) = run("--known", str(tmp_path / "known.json"), str(tmp_path / "a.eml"))
    assert in_context["report_ids"] == ["r1"]


@pytest.mark.parametrize(
    ("roles", "role", "state"),
    [
        ({"dana@kernel.example": "author"}, "author", "responded"),
        ({"Dana@Kernel.example": "maintainer", "lee@dev.example": "author"}, "maintainer", "responded"),
        ({"dana@kernel.example": "reporter"}, "reporter", "none"),
        ({"lee@dev.example": "author"}, "third_party", "none"),
        ({}, "third_party", "none"),
        (None, None, "responded"),
    ],
)
def test_roles_of_known_reports_count(
    tmp_path: Path, roles: dict[str, str] | None, role: str | None, state: str
) -> None:
    reply = "From: Dana <dana@kernel.example>\nMessage-ID: <a@kernel.example>\nIn-Reply-To: <r@lab.example>\n"
    (tmp_path / "a.eml").write_text(f"{reply}Subject: Re: slow\n\nThank you, I will have a look at it tomorrow.\n")
    known = {"id": "r1", "message_id": "r@lab.example", "culprit": "3b1f"}
    (tmp_path / "known.json").write_text(json.dumps([known if roles is None else {**known, "roles": roles}]))
    (mail,) = run("--known", str(tmp_path / "known.json"), str(tmp_path / "a.eml"))
    assert (mail["role"], mail["effect"]["state"]) == (role, state)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[1]", '[{"id": "x"}]', '{"a": 1}', '[{"id": "x", "message_id": "a@b", "roles": {"a@b": "boss"}}]'),
        '[{"id": "x", "message_id": "a@b", "roles": ["a@b"]}]',
    ],
)
def test_a_wrong_known_file_is_refused_in_a_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "known.json").write_text(content)
    (tmp_path / "a.eml").write_text(REPLY)
    with pytest.raises(CommandError, match=r"known\.json: expected") as raised:
        run("--known", str(tmp_path / "known.json"), str(tmp_path / "a.eml"))
    assert "\n" not in str(raised.value)


@pytest.mark.django_db
def test_tracked_reports_are_known(world: Any, tmp_path: Path) -> None:
    from tests.support.world import DANA, message_id

    report = world.report()
    (tmp_path / "a.eml").write_bytes(world.mail(DANA, "It is the lock.", to=message_id(report)))
    world.read()
    (only,) = run("--tracked", str(tmp_path / "a.eml"))
    assert only["report_ids"] == [report.tag]


def test_a_missing_file_is_said() -> None:
    with pytest.raises(CommandError, match="there is no such file"):
        run("/nowhere.mbox")


def test_a_reply_to_a_mail_that_only_links_is_about_nothing() -> None:
    """As the tracker reads it: to stand beside a link is not to speak of the regression."""
    links = REPLY.replace("r@dev.example", "agenda@dev.example").replace("In-Reply-To", "X-None")
    links = links.replace("It is the lock.", "See https://lore.kernel.org/r/202603110412.3b1f0c9d-lkp@intel.com too.")
    reply = REPLY.replace("202603110412.3b1f0c9d-lkp@intel.com", "agenda@dev.example")
    reply = reply.replace("It is the lock.", "I will prepare a patch for the agenda page.")
    report, _, answer = explained(INVENTED, links, reply)
    assert report["state"] == "no_response"
    assert answer["report_ids"] == []
