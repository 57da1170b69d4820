"""Threading of our mail: a reply to the patch that it is about, with complete References, or a new thread."""

from __future__ import annotations

import email.policy
from dataclasses import replace
from email import message_from_bytes
from functools import partial

import pytest

from bot.archives.sources import chosen, find_patch_mail
from bot.compose.conventions import MOST, ThreadPosition, patch_mail, reply_position
from bot.compose.mail import to_bytes
from bot.compose.report_mail import compose
from bot.mail.message import parse
from bot.mail.patches import PatchMail
from bot.notifications.report import PatchMails, compose_due
from tests.conftest import NOW
from tests.support.outbox import BOT, REPORT
from tests.support.world import DANA, DIFF, World
from tracker.models import OutgoingMail

PATCH = "20260901.1234-2-dana@dev.example"


@pytest.mark.parametrize(
    ("message_id", "references", "position"),
    [
        ("", (), ThreadPosition()),
        ("p@x.example", (), ThreadPosition("p@x.example", ("p@x.example",))),
        ("p@x.example", ("c@x.example",), ThreadPosition("p@x.example", ("c@x.example", "p@x.example"))),
        (
            "p@x.example",
            ("c@x.example", "c@x.example", "p@x.example"),
            ThreadPosition("p@x.example", ("c@x.example", "p@x.example")),
        ),
        ("p@x.example", ("no id", "a\n@x"), ThreadPosition("p@x.example", ("p@x.example",))),
    ],
)
def test_places(message_id: str, references: tuple[str, ...], position: ThreadPosition) -> None:
    assert reply_position(message_id, references) == position


@pytest.mark.parametrize(
    "odd", ["a\x0bb@x", "a\u2028b@x", "é@x", "a" * 1200 + "@x", "a b@x", "a@b>\nBcc: <evil@x.example", "x"]
)
def test_an_odd_message_id_is_not_answered(odd: str) -> None:
    assert reply_position(odd) == ThreadPosition()


def test_long_threads_keep_their_first_and_last_mails() -> None:
    position = reply_position("last@x.example", [f"{number}@x.example" for number in range(100)])
    assert len(position.references) == MOST
    assert (position.references[0], position.references[-1]) == ("0@x.example", "last@x.example")
    assert position.references[-2] == "99@x.example"


LORE = "https://lore.kernel.org/r/"


@pytest.mark.parametrize(
    ("trailers", "found"),
    [
        ([("Link", LORE + PATCH)], PATCH),
        ([("Link", f"https://lkml.kernel.org/r/{PATCH}")], PATCH),
        ([("Link", f"https://patch.msgid.link/{PATCH}"), ("Link", LORE + "other@x.example")], PATCH),
        ([("Link", LORE + "first@x.example"), ("Signed-off-by", "M"), ("Link", LORE + PATCH)], PATCH),
        ([("Reported-by", "L"), ("Link", LORE + "bug@x.example"), ("Link", LORE + PATCH)], PATCH),
        ([("Reported-by", "L"), ("Closes", LORE + "bug@x.example")], ""),
        ([("Reported-by", "L"), ("Link", LORE + "bug@x.example")], ""),
        ([("Link", LORE + "said@x.example [1]")], ""),
        ([("Link", "https://bugs.example/17")], ""),
        ([], ""),
    ],
)
def test_the_mail_that_a_commit_links_to(trailers: list[tuple[str, str]], found: str) -> None:
    assert patch_mail(trailers) == found


def test_a_report_answers_the_patch() -> None:
    mail = compose(replace(REPORT, patch=reply_position(PATCH, ["cover@dev.example"])), BOT, NOW)
    message = message_from_bytes(to_bytes(mail), policy=email.policy.default)
    assert message["In-Reply-To"] == f"<{PATCH}>"
    assert message["References"] == f"<cover@dev.example> <{PATCH}>"
    assert "In-Reply-To" not in to_bytes(compose(REPORT, BOT, NOW)).decode()


# --- of a real report ---


def composed(world: World, **first_bad: object) -> list[str]:
    """The References of the mail about a culprit."""
    payload = world.result("b" * 40, "mm: a")
    payload["first_bad"] |= first_bad
    world.ingest(payload)
    compose_due(world.settings, world.later())
    return list(parse(bytes(OutgoingMail.objects.get().raw)).references)


def test_by_the_commits_link(world: World) -> None:
    assert composed(world, trailers=[{"tag": "Link", "value": LORE + PATCH}]) == [PATCH]


def test_a_patch_in_our_archive_brings_its_cover_letter(world: World) -> None:
    report = world.report("mm: earlier")
    world.post(
        DANA,
        "The series.",
        subject="[PATCH 0/2] mm: fix it",
        message_id="cover@dev.example",
        to=report.outgoing.get().message_id,
    )
    world.post(
        DANA,
        f"Two.\n\nSigned-off-by: {DANA}\n---\n{DIFF}",
        subject="[PATCH 2/2] mm: a",
        message_id=PATCH,
        to="cover@dev.example",
    )
    world.read()
    payload = world.result("b" * 40, "mm: a")
    payload["first_bad"]["trailers"] = [{"tag": "Link", "value": LORE + PATCH}]
    world.ingest(payload)
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get(report__culprit__sha="b" * 40)
    assert parse(bytes(mail.raw)).references == (report.outgoing.get().message_id, "cover@dev.example", PATCH)


def test_a_link_to_a_report_is_no_patch(world: World) -> None:
    report = world.report("mm: earlier")
    payload = world.result("b" * 40, "mm: a")
    payload["first_bad"]["trailers"] = [{"tag": "Link", "value": LORE + report.outgoing.get().message_id}]
    world.ingest(payload)
    compose_due(world.settings, world.later())
    assert parse(bytes(OutgoingMail.objects.get(report__culprit__sha="b" * 40).raw)).references == ()


# --- by patch-id ---


def posting(message_id: str, subject: str, day: int, references: str = "") -> bytes:
    head = f"From: {DANA}\nMessage-ID: <{message_id}>\nDate: {day:02} Sep 2026 10:00:00 +0000\nSubject: {subject}\n"
    return f"{head}{f'References: {references}{chr(10)}' if references else ''}\n{DIFF}".encode()


def test_the_last_posting_under_the_title_is_the_one() -> None:
    mails = [
        posting("v1@x.example", "[PATCH] mm: a", 1),
        posting("v2@x.example", "[PATCH v2 1/2] mm: a", 3, "<cover@x.example>"),
        posting("other@x.example", "[PATCH] mm: b", 4),
        posting("re@x.example", "Re: [PATCH v2 1/2] mm: a", 5),
    ]
    assert chosen([parse(each) for each in mails], "mm: a") == PatchMail("v2@x.example", ("cover@x.example",))
    assert chosen([], "mm: a") is None


def test_a_server_that_is_not_there_is_asked_once_a_round(world: World, caplog: pytest.LogCaptureFixture) -> None:
    patches = PatchMails(partial(find_patch_mail, "http://127.0.0.1:9/all"))
    for number in range(3):
        world.ingest(world.result(f"{number}" * 40, f"mm: {number}", id=str(number)))
    from tracker.models import Commit

    Commit.objects.filter(title__startswith="mm: ").update(patch_id="c" * 40)
    for commit in Commit.objects.filter(patch_id="c" * 40):
        assert patches.reply_position(commit) == ThreadPosition()
    assert len([record for record in caplog.records if record.name == "bot.notifications.report"]) == 1
