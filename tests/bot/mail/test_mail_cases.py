"""The collection of hard mails: for given bytes, the expected output of `explain` and of reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from bot.explain import explain
from bot.mail.message import ParsedMail, parse
from bot.mail.settings import BotSettings
from bot.replies.effects import effects_of
from bot.replies.reading import Reading, read
from bot.replies.rules.notation import MailContext, Relation
from bot.replies.which_report import KnownReport, KnownReports
from tests.conftest import SHARED
from tracker.domain.events import EventKind, Role

REPORT = "7d3e91c0a45b28f6"
KNOWN = KnownReport(REPORT, "7d3e91c0a45b28f6", "", ("202603110412.7d3e91c0-perfbot@bot.example.org",))

KNOWN_REPORTS = KnownReports()
KNOWN_REPORTS.add(KNOWN)

# Cases that are not met yet, by name; each must fail until it is taken off this list.
NOT_YET: frozenset[str] = frozenset()

CASES = json.loads((SHARED / "mail-cases-dev.json").read_text()) if SHARED.is_dir() else []


def bracketed(message_id: str) -> str:
    return f"<{message_id}>" if message_id else ""


def same_time(iso: str) -> str:
    return datetime.fromisoformat(iso).isoformat()


AUTHOR = MailContext(Relation.THREAD, Role.AUTHOR)
Check = Callable[[ParsedMail, Reading, dict[str, Any]], Any]
CHECKS: dict[str, Check] = {
    "parse": lambda mail, reading, output: "ok" if output["kind"] != "unreadable" and mail.message_id else "failed",
    "to": lambda mail, reading, output: [each.email for each in mail.to],
    "cc_count": lambda mail, reading, output: len(mail.cc),
    "author": lambda mail, reading, output: output["author"]["email"],
    "subject": lambda mail, reading, output: output["subject"],
    "in_reply_to": lambda mail, reading, output: bracketed(output["in_reply_to"][0]),
    "parent": lambda mail, reading, output: bracketed(mail.parent),
    "thread_root": lambda mail, reading, output: bracketed(mail.thread_root),
    "dedup_key": lambda mail, reading, output: bracketed(output["message_id"]),
    "date_utc": lambda mail, reading, output: output["date"],
    "direct_ids": lambda mail, reading, output: list(reading.tags),
    "report_ids": lambda mail, reading, output: output["report_ids"],
    "report_ids_by_thread": lambda mail, reading, output: [KNOWN_REPORTS.thread_of(reading)],
    "auto": lambda mail, reading, output: output["kind"] == "auto_reply",
    "commands": lambda mail, reading, output: [{"name": c["name"], "args": c["argument"]} for c in output["commands"]],
    "commands_run": lambda mail, reading, output: bool(output["commands"]) and output["effect"]["mode"] != "none",
    "error": lambda mail, reading, output: next(iter(output["problems"]), None),
    "error_reply_allowed": lambda mail, reading, output: reading.may_get_error_reply,
    "body_contains": lambda mail, reading, output: output["own_text"],
    "patch_files": lambda mail, reading, output: [file for patch in reading.patches for file in patch.files],
    "fixes": lambda mail, reading, output: list(reading.fixes),
    "status_hint": lambda mail, reading, output: (
        f"maybe_{output['effect']['state'].removeprefix('fix_')}"
        if output["effect"]["mode"] == "suggest"
        else output["effect"]["state"]
    ),
    "fix": lambda mail, reading, output: {
        "sha": reading.notice.sha,
        "tree": reading.notice.tree,
        "branch": reading.notice.branch,
    },
    # It ends the silence, and nothing else by itself.
    "counts_as_response": lambda mail, reading, output: (
        [each["state"] for each in output["effects"] if each["mode"] == "auto"] in ([], ["responded"])
        and EventKind.RESPONDED in {each.kind for each in effects_of(reading, AUTHOR, "open")}
    ),
}


_NOT_HERE = f"NOT TESTED: the hard mails are not on this machine (expected in {SHARED})"


def test_the_cases_are_here() -> None:
    if not SHARED.is_dir():
        pytest.skip(_NOT_HERE)
    assert len(CASES) == 46
    assert {case["name"] for case in CASES} >= NOT_YET


_ABSENT = [pytest.param({"name": "none"}, marks=pytest.mark.skip(reason=_NOT_HERE))]


@pytest.mark.parametrize("case", CASES or _ABSENT, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], bot_settings: BotSettings, request: pytest.FixtureRequest) -> None:
    if case["name"] in NOT_YET:
        request.applymarker(pytest.mark.xfail(strict=True, reason="not yet"))
    raw = case["raw"].encode(case.get("encoding", "utf-8"))
    (output,) = explain([raw], bot_settings, [KNOWN])
    mail = parse(raw)
    for key, expected in case["expect"].items():
        found = CHECKS[key](mail, read(mail, bot_settings), output)
        if key == "body_contains":
            assert expected in found
        elif key == "date_utc":
            assert same_time(found) == same_time(expected)
        else:
            assert found == expected, key
