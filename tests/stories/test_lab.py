"""The lab's work list: what people asked in threads, by whom, until when, with the patch to apply."""

from __future__ import annotations

import html
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from bot.mail.settings import BotSettings
from tests.world import DANA, LEE, World, message_id
from tracker.domain.events import Awaited, EventData, EventKind, Role, Verdict
from tracker.domain.lab_jobs import Request, requests_pending
from tracker.domain.report_state import fold
from tracker.models import Message
from tracker.pages.lab import work_list
from tracker.services import event_log
from tracker.templatetags.words import b4_mbox

FRIDAY = datetime(2026, 11, 20, 9, tzinfo=UTC)
PATCH = """\
diff --git a/mm/vmscan.c b/mm/vmscan.c
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,3 +1,3 @@
 int a;
-int b;
+int c;
"""
PATCH += " \n"  # an empty line of context


@pytest.fixture
def lab_world(tmp_path: Path, db: None) -> World:
    return World(tmp_path, BotSettings(address="perfbot@bot.example.org", trust_policy="open"))


def ask(world: World, text: str, **more: Any) -> Message:
    report = world.report(**more)
    world.post(DANA, text, to=message_id(report))
    world.read()
    return Message.objects.filter(report=report, author_email=DANA.email).get()


def test_a_test_that_was_asked_for_is_listed_with_its_patch(lab_world: World, client: Client) -> None:
    mail = ask(lab_world, f"Can you test whether this patch helps?\n\n{PATCH}\n-- \nDana\n")
    [row] = work_list(lab_world.now).rows
    assert (row.pending.request, row.is_overdue) in ((Request.TEST, False), (Request.MEASURE, False))
    page = client.get("/lab/").content.decode()
    assert "1 request<" in page
    assert "Dana Brook" in page
    assert f'<a href="/lab/patch/{mail.pk}">patch</a>' in page
    patch = client.get(f"/lab/patch/{mail.pk}")
    assert (patch.status_code, patch["Content-Type"]) == (200, "text/plain; charset=utf-8")
    tree = lab_world.directory / "tree"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm" / "vmscan.c").write_text("int a;\nint b;\n\n")
    subprocess.run(["git", "apply", "-"], cwd=tree, input=patch.content, check=True)
    assert (tree / "mm" / "vmscan.c").read_text() == "int a;\nint c;\n\n"


def test_a_question_is_due_sooner_and_shows_its_words(lab_world: World, client: Client) -> None:
    mail = ask(lab_world, "Which kernel config did you use for this?")
    [row] = work_list(lab_world.now + timedelta(days=6)).rows
    assert (row.pending.request, row.is_overdue) == (Request.QUESTION, True)
    assert "Which kernel config did you use for this?" in client.get("/lab/").content.decode()
    missing = client.get(f"/lab/patch/{mail.pk}")
    assert (missing.status_code, b"there is no patch in this mail" in missing.content) == (404, True)


def test_what_was_answered_is_gone(lab_world: World, client: Client) -> None:
    ask(lab_world, "Which kernel config did you use for this?")
    lab_world.post(LEE, "I see the same here.", to=message_id(work_list(lab_world.now).rows[0].report))
    lab_world.read()
    [row] = work_list(lab_world.now).rows  # others' words answer nothing
    event = EventData("a", EventKind.ANSWERED, lab_world.later(), role=Role.REPORTER, actor="toni")
    event_log.record([event_log.event_row(row.report, event, lab_world.now)])
    assert work_list(lab_world.now).rows == []
    assert "Nothing waits for the lab." in client.get("/lab/").content.decode()


def test_many_cost_the_same(lab_world: World, client: Client, django_assert_num_queries: Any) -> None:
    for number in range(3):
        report = lab_world.report(f"mm: {number}", f"{number + 5:x}" * 40, id=f"n{number}")
        lab_world.post(DANA, "Which kernel config did you use for this?", to=message_id(report))
    lab_world.read()
    assert len(work_list(lab_world.now).rows) == 3
    with django_assert_num_queries(4):
        client.get("/lab/")


@pytest.mark.parametrize(
    ("kinds", "owed"),
    [
        (["test_asked"], {Request.TEST: "2026-11-27"}),
        (["asked"], {Request.QUESTION: "2026-11-24"}),
        (["disputed"], {Request.DOUBT: "2026-11-24"}),
        (["fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["asked", "fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["fix_proposed", "asked"], {Request.QUESTION: "2026-11-24", Request.MEASURE: "2026-11-27"}),
        (["test_asked", "disputed"], {Request.DOUBT: "2026-11-24", Request.TEST: "2026-11-27"}),
        (["fix_proposed", "fix_proposed"], {Request.MEASURE: "2026-11-27"}),
        (["asked", "answered", "test_asked"], {Request.TEST: "2026-11-27"}),
        (["asked", "answered"], {}),
        (["fix_proposed", "fix_confirmed"], {}),
        (["working"], {}),
        (["expected"], {}),
        ([], {}),
    ],
)
def test_what_the_lab_owes(kinds: list[str], owed: dict[Request, str]) -> None:
    events = [EventData("r", EventKind.REPORTED, FRIDAY - timedelta(days=9), role=Role.REPORTER)]
    events += [
        EventData(f"e{n}", EventKind(kind), FRIDAY + timedelta(seconds=n), role=Role.AUTHOR, title="x")
        for n, kind in enumerate(kinds)
    ]
    pending_requests = requests_pending(Verdict.REGRESSION, events)
    assert {pending.request: f"{pending.due_at:%Y-%m-%d}" for pending in pending_requests} == owed
    assert bool(pending_requests) == (fold(Verdict.REGRESSION, events).awaited is Awaited.REPORTER)


def test_a_fix_and_the_request_to_test_it_are_one() -> None:
    mail = {"message_id": "m@x", "role": Role.AUTHOR}
    kinds = (EventKind.FIX_PROPOSED, EventKind.TEST_ASKED)
    events = [EventData(f"e{kind}", kind, FRIDAY, title="x", **mail) for kind in kinds]  # type: ignore[arg-type]
    assert [pending.request for pending in requests_pending(Verdict.REGRESSION, events)] == [Request.TEST]


def test_those_that_wait_longest_are_shown(lab_world: World, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [lab_world.report(f"mm: {number}", f"{number + 5:x}" * 40, id=f"n{number}") for number in range(3)]
    for report in reports:
        lab_world.post(DANA, "Which kernel config did you use for this?", to=message_id(report))
        lab_world.later(2)
        lab_world.read()
    monkeypatch.setattr("tracker.pages.lab.MOST", 2)
    found = work_list(lab_world.now)
    assert ([row.report for row in found.rows], found.cut) == (reports[:2], True)
    assert "More reports wait for the lab" in client.get("/lab/").content.decode()


def test_a_message_id_is_no_shell_command(lab_world: World, client: Client) -> None:
    report = lab_world.report()
    lab_world.post(
        DANA, "Which kernel config did you use for this?", to=message_id(report), message_id="a`id`|sh@x.example"
    )
    lab_world.read()
    page = html.unescape(client.get("/lab/").content.decode())
    assert "b4 mbox 'a`id`|sh@x.example'" in page
    assert b4_mbox("-o/tmp/x@y") == "b4 mbox -- -o/tmp/x@y"
    assert b4_mbox("plain.1-2@y") == "b4 mbox plain.1-2@y"
