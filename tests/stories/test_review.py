"""Decisions in the review queue: a suggestion is accepted, changed, rejected or undone."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.core import signing
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from bot.archives import sandbox
from bot.archives.batch import replay_all
from bot.archives.sandbox import Sandbox
from bot.mail.settings import BotSettings
from bot.notifications.suggestions import MOST, mail_suggestions
from bot.outbox.transports import Server, SmtpTransport
from bot.replies.effects import MERE_RESPONSE, effects_of
from bot.replies.rules.notation import Effect, Mode
from tests.conftest import ROOT
from tests.support.people import person
from tests.support.rows import line
from tests.support.servers import Moody, mail_server
from tests.support.world import DANA, World, message_id, state, status_text
from tracker.domain.events import EventData, EventKind, State, Verdict
from tracker.domain.report_state import ReportState
from tracker.models import (
    Archive,
    Commit,
    Correspondent,
    Decision,
    Event,
    Finding,
    Mailing,
    Message,
    RawMessage,
    Report,
    RuleRecord,
    Suggestion,
)
from tracker.pages.review import excerpt
from tracker.services import accounts, event_log, mail_transitions, report_actions
from tracker.services.report_actions import outcomes

# --- The review queue: suggestions, mail that could not be parsed, and the progress of reading ---


def replay(*arguments: str) -> str:
    out = io.StringIO()
    call_command("replay", *arguments, stdout=out)
    return out.getvalue()


def sign_in(client: Client, group: str) -> None:
    user = person(group, group)
    client.force_login(user)


@pytest.fixture
def as_in_the_world(world: World, settings: Any) -> None:
    settings.PERFWORK_BOT_ADDRESS = world.settings.address
    settings.PERFWORK_BASE_URL = world.settings.base_url
    settings.PERFWORK_TRUST = world.settings.trust_policy


def test_an_inbox_of_nothing(client: Client, db: None) -> None:
    page = client.get("/review/").content.decode()
    assert "No suggestions to review." in page
    assert "No mail in quarantine." in page
    assert "No archive has been read yet" in page


@pytest.mark.usefixtures("as_in_the_world")
def test_a_mail_that_broke_the_reader_is_shown_and_read_again(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = world.report()
    world.post(DANA, "It is <the> lock.", to=message_id(report))
    with monkeypatch.context() as broken:

        def breaks(*arguments: Any) -> Any:
            raise RuntimeError("a bug <b>of ours</b>")

        broken.setattr(sandbox, "understand", breaks)
        assert world.read().quarantined == 2  # our own mail, too
    shown = client.get("/review/").content.decode()
    assert "Operators see it here." in shown
    assert "a bug" not in shown
    sign_in(client, "operator")
    page = client.get("/review/").content.decode()
    assert "a bug &lt;b&gt;of ours&lt;/b&gt;" in page
    assert Message.objects.count() == 0
    assert "2 mails read again: none in quarantine, 1 report with a changed status" in replay()
    assert Message.objects.filter(report=report).count() == 2
    assert Report.objects.get(pk=report.pk).state == "responded"
    assert "No mail in quarantine." in client.get("/review/").content.decode()
    assert "0 mails read again" in replay()


@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_everything_reaches_the_same_states(world: World) -> None:
    report = world.report()
    world.post(DANA, "It is the lock.", to=message_id(report))
    world.post(DANA, "#lkp note on a slow disk", to=message_id(report))
    world.read()

    def stored() -> list[Any]:
        return [
            sorted(Report.objects.values_list("culprit__sha", "state", "status", "remark")),
            sorted(Event.objects.values_list("key", "quote", "role")),
            sorted(Suggestion.objects.values_list("key", "quote")),
            sorted(Message.objects.values_list("message_id", "role")),
            Finding.objects.count(),
        ]

    before = stored()
    assert "0 reports with a changed status" in replay("--all")
    assert stored() == before


@pytest.mark.slow
@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_real_threads_reaches_the_same_states(shared: Any, settings: Any, db: None) -> None:
    from tests.conftest import OPERATORS, ROBOTS

    settings.PERFWORK_ROBOTS, settings.PERFWORK_OPERATORS = sorted(ROBOTS), sorted(OPERATORS)
    call_command("read", str(shared / "threads-dev.mbox"), stdout=io.StringIO())
    before = sorted(Report.objects.values_list("culprit__sha", "state", "status"))
    events = sorted(Event.objects.values_list("key", "quote", "role"))
    findings = Finding.objects.count()
    assert "82 mails read again: none in quarantine, 0 reports with a changed status" in replay("--all")
    assert sorted(Report.objects.values_list("culprit__sha", "state", "status")) == before
    assert sorted(Event.objects.values_list("key", "quote", "role")) == events
    assert Finding.objects.count() == findings


def test_suggestions_are_paged_and_the_page_costs_the_same(
    world: World, client: Client, django_assert_num_queries: Any
) -> None:
    report = world.report()
    row = {
        "report": report,
        "kind": "invalid",
        "occurred_at": world.now,
        "role": "author",
        "message_id": "x",
        "rule": "command_invalid",
    }
    Suggestion.objects.bulk_create(
        Suggestion(key=f"k{number}", quote=f"words {number}", **row) for number in range(130)
    )
    RawMessage.objects.bulk_create(
        RawMessage(digest=f"d{number}", compressed=b"", error=f"wrong {number}", received_at=world.now)
        for number in range(130)
    )
    Archive.objects.bulk_create(Archive(path=f"/lists/{number}") for number in range(120))
    with django_assert_num_queries(16):
        page = client.get("/review/").content.decode()
    assert ("words 129" in page, "words 79" in page) == (True, False)
    later = f"0.{Suggestion.objects.order_by('-pk')[49].pk}"
    assert f'href="?suggestions={later}"' in page
    assert "words 79" in client.get(f"/review/?suggestions={later}").content.decode()
    response = client.get("/review/?suggestions=79")
    assert (response.status_code, response.content) == (
        400,
        b"suggestions: expected a position like 62.1234; found '79'",
    )
    response = client.get("/review/?quarantine=x")
    assert (response.status_code, response.content) == (400, b"quarantine: expected a number; found 'x'")


def test_the_likeliest_come_first_and_what_would_change_nothing_is_folded_away(
    world: World, admin_client: Client
) -> None:
    """So that the surest are decided by one key each, in order, over the pages of the queue."""
    rows = {"occurred_at": world.now, "role": "author", "message_id": "x", "rule": "command_invalid"}
    report, other = world.report(), world.report("b" * 40)
    world.post(DANA, "It is the lock.", to=message_id(other))
    world.read()
    likely = [
        (report, "invalid", 55),
        (report, "invalid", None),
        (other, "invalid", 91),
        (other, "responded", 97),
        (report, "noted", 62),
    ]
    for number, (of, kind, certainty) in enumerate(likely):
        remark = "on a slow disk" if kind == "noted" else ""
        key = {"report": of, "key": f"k{number}", "kind": kind, "quote": f"words {number}", "remark": remark}
        Suggestion.objects.create(**key, certainty=certainty, **rows)
    page = admin_client.get("/review/").content.decode()
    assert re.findall("<mark>words (.)</mark>", page) == ["2", "4", "0", "1", "3"]
    assert "91% likely</small>" in page
    assert "None" not in page
    assert "1 suggestion that would change nothing</summary>" in page
    assert page.index("would change nothing</summary>") < page.index("<mark>words 3</mark>")
    second = Suggestion.objects.get(certainty=62)
    first = Suggestion.objects.get(certainty=91)
    answer = admin_client.post(f"/review/{first.pk}/decide/", {"decision": "reject"})
    assert answer["Location"] == f"/review/#s{second.pk}"


def test_each_archive_says_how_reading_goes(world: World, client: Client, now: datetime) -> None:
    world.report()
    world.read()
    row = Archive.objects.get()
    assert (row.seen, row.kept) == (1, 1)
    assert row.newest_at
    newest = timezone.now() - timedelta(hours=3, minutes=5)  # the lag counts to now, whenever it was read
    Archive.objects.update(newest_at=newest, read_at=newest, error="it can't be had; fetch it again")
    page = client.get("/review/").content.decode()
    assert "3 h" in page
    assert str(row.path) not in page, "where it lies on this machine is for operators"
    sign_in(client, "operator")
    page = client.get("/review/").content.decode()
    assert str(row.path) in page
    assert "fetch it again" in page
    assert row.newest_at < timezone.now()


@pytest.mark.usefixtures("as_in_the_world")
def test_replaying_everything_keeps_what_came_by_no_mail(db: None) -> None:
    """The published report of v5.6 is history that was entered by hand."""
    call_command("loaddata", "v5_6", verbosity=0)
    before = Finding.objects.count()
    assert before > 50
    replay("--all")
    assert Finding.objects.count() == before


# --- Decisions in the review queue: a suggestion is accepted, changed, rejected or undone ---

# What the mail of these tests is read as: nothing sure, and that it may be expected.
READ = (
    Effect(EventKind.EXPECTED, Mode.SUGGEST, "expected", quote="This is expected."),
    Effect(EventKind.RESPONDED, Mode.AUTO, MERE_RESPONSE, quote="I have looked at it."),
)


@pytest.fixture
def deciding_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    return World(tmp_path, bot_settings)


@pytest.fixture
def mira(client: Client) -> Client:
    user = User.objects.create_user("mira", password="x")
    user.user_permissions.add(Permission.objects.get(codename="change_suggestion"))
    client.force_login(user)
    return client


@pytest.fixture
def report(deciding_world: World) -> Report:
    report = deciding_world.report()
    deciding_world.post(DANA, "Hi,\n\nI have looked at it. This is\nexpected. We do more now.\n", to=message_id(report))
    deciding_world.read()
    return report


def suggestion() -> Suggestion:
    return Suggestion.objects.get()


def decide(client: Client, **data: str) -> int:
    return client.post(f"/review/{suggestion().pk}/decide/", data).status_code


@pytest.mark.django_db
def test_a_decision_that_can_not_be_recorded_is_none(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(rows: object) -> None:
        raise OperationalError("the disk is full")

    monkeypatch.setattr(event_log, "record", fails)
    with pytest.raises(OperationalError):
        report_actions.decide(suggestion(), Decision.ACCEPTED, "mira", timezone.now())
    assert suggestion().decision == Decision.OPEN


@pytest.mark.django_db
def test_the_page_shows_the_words_in_their_context_and_what_would_change(mira: Client, report: Report) -> None:
    page = mira.get("/review/").content.decode()
    assert "I have looked at it. <mark>This is expected.</mark> We do more now." in page
    assert "Now: the author has responded." in page
    assert "<b>the regression is expected</b>" in page
    assert "Dana Brook, author, not verified" in page


@pytest.mark.django_db
def test_accepted_it_is_an_event_of_the_person(mira: Client, report: Report) -> None:
    assert decide(mira, decision="accept") == 302
    assert state(report) == "expected"
    event = report.events.get(kind="expected")
    assert (event.actor, event.quote, event.message_id) == ("mira", "This is expected.", suggestion().message_id)
    assert "accepted" in mira.get("/review/").content.decode().lower()
    assert decide(mira, decision="reject") == 302  # too late
    assert suggestion().decision == "accepted"
    assert RuleRecord.objects.get(rule="expected").accepted_pct == 100


@pytest.mark.django_db
def test_rejected_it_is_an_event_that_moves_nothing(mira: Client, report: Report) -> None:
    before = status_text(report)
    assert decide(mira, decision="reject") == 302
    assert status_text(report) == before
    assert report.events.get(kind="reading_rejected").actor == "mira"
    assert RuleRecord.objects.get(rule="expected").rejected == 1


@pytest.mark.django_db
def test_what_would_change_nothing_any_more_is_withdrawn_and_returns(
    deciding_world: World, mira: Client, report: Report
) -> None:
    later = deciding_world.later()
    said = EventData("said", EventKind.EXPECTED, later, actor="otto")
    event_log.record([event_log.event_row(report, said, later)])
    assert suggestion().decision == "withdrawn"
    page = mira.get("/review/").content.decode()
    assert "Suggestions <small>0</small>" in page
    assert "1 suggestion that would change nothing" in page
    undone = EventData("undone", EventKind.REVERSED, later, actor="otto", reverses="said")
    event_log.record([event_log.event_row(report, undone, later)])
    assert suggestion().decision == "open"
    event_log.record([event_log.event_row(report, replace(said, key="again"), later)])
    assert decide(mira, decision="reject") == 302  # as ever
    assert suggestion().decision == "rejected"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "columns", "decision"),
    [
        (EventKind.SAME_PATCH, {"title": "mm: the same", "commit": "c" * 40}, "open"),  # git follows it once accepted
        (EventKind.BISECTED, {"commit": "d" * 40}, "withdrawn"),  # the commit is known already
        (EventKind.FIX_LANDED, {"commit": "e" * 40, "tag": "v6.13", "title": "mm: fix"}, "withdrawn"),  # known already
    ],
)
def test_only_what_changes_nothing_at_all_is_withdrawn(
    world: World, kind: EventKind, columns: dict[str, str], decision: str
) -> None:
    report, now = line(1), world.now
    landed = EventData("landed", EventKind.FIX_LANDED, now, commit="e" * 40, tag="v6.13", title="mm: fix", tree="linus")
    waiting = Suggestion.objects.create(
        report=report, key="git", kind=kind, occurred_at=now, role="machine", rule="fixes", **columns
    )
    event_log.record([event_log.event_row(report, landed, now)])
    waiting.refresh_from_db()
    assert waiting.decision == decision
    [outcome] = outcomes([waiting]).values()
    assert outcome.changes is (decision == "open")


@pytest.mark.django_db
def test_who_names_the_commit_waits_until_the_report_has_it(world: World) -> None:
    report = line(1)
    Commit.objects.filter(pk=report.culprit_id).update(placeholder=True)
    waiting = Suggestion.objects.create(
        report=report, key="m", kind="bisected", occurred_at=world.now, role="reporter", rule="names", commit="d" * 40
    )
    named = EventData("short", EventKind.BISECTED, world.now, commit="d" * 10)  # by a sha that no tree knows
    event_log.record([event_log.event_row(report, named, world.now)])
    waiting.refresh_from_db()
    assert waiting.decision == "open"


@pytest.mark.django_db
def test_a_thread_full_of_suggestions_is_folded_as_fast_as_one_with_fifty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, folds = line(1), []
    for number in range(60):
        Suggestion.objects.create(
            report=report, key=str(number), kind="responded", occurred_at=world.now, role="author", rule="classifier"
        )
    monkeypatch.setattr(
        event_log, "state_if_accepted", lambda *_: folds.append(1) or ReportState(Verdict.REGRESSION, State.WORKING)
    )
    event_log.refold([report.pk])
    assert len(folds) == 50


@pytest.mark.slow
def test_two_people_who_decide_at_the_same_moment_both_succeed(postgres: str, tmp_path: Path) -> None:
    """On PostgreSQL: each holds the row of their suggestion and waits for the report, of which the other is folded."""
    code = """
import django; django.setup()
import threading
from django.core.management import call_command
from django.db import OperationalError
from django.db import connection
from django.utils import timezone
from tests.support.rows import line
from tracker.models import Decision, Suggestion
from tracker.services import event_log, report_actions
call_command("migrate", verbosity=0)
report, now, record = line(1), timezone.now(), event_log.record
waiting = [
    Suggestion.objects.create(report=report, key=f"expected:{number}", kind="expected", occurred_at=now, role="author",
        message_id=f"{number}@x", rule="expected")
    for number in range(2)
]
both = threading.Barrier(2)
def together(rows):
    both.wait(20)
    return record(rows)
event_log.record = together
def decide(suggestion):
    print(report_actions.decide(suggestion, Decision.ACCEPTED, "mira", now), flush=True)
    connection.close()
threads = [threading.Thread(target=decide, args=(suggestion,)) for suggestion in waiting]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    env = {**os.environ, "DATABASE_URL": postgres, "DJANGO_SETTINGS_MODULE": "tracker.settings"}
    env["PERFWORK_VAR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr[-2000:]


@pytest.mark.django_db
def test_another_state(mira: Client, report: Report) -> None:
    assert decide(mira, decision="set", instead="disputed") == 302
    assert state(report) == "disputed"
    assert suggestion().decision == "changed"
    assert RuleRecord.objects.get(rule="expected").changed == 1


@pytest.mark.django_db
def test_taken_back_and_decided_again(mira: Client, report: Report) -> None:
    for _ in range(2):
        decide(mira, decision="accept")
        assert state(report) == "expected"
        mira.post(f"/review/{suggestion().pk}/undo/")
        assert (state(report), suggestion().decision) == ("responded", "open")
    decide(mira, decision="reject")
    mira.post(f"/review/{suggestion().pk}/undo/")
    decide(mira, decision="set", instead="working")
    assert state(report) == "working"
    record = RuleRecord.objects.get(rule="expected")
    assert (record.accepted, record.changed, record.rejected) == (0, 1, 0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data", [{}, {"decision": "set"}, {"decision": "burn"}, {"decision": "set", "instead": "reported"}]
)
def test_a_wrong_word_is_refused_in_a_line(mira: Client, report: Report, data: dict[str, str]) -> None:
    answer = mira.post(f"/review/{suggestion().pk}/decide/", data)
    assert (answer.status_code, suggestion().decision) == (400, "open")
    assert answer.content.startswith(b"decision: expected accept, reject or another state")


@pytest.mark.django_db
def test_only_who_may_decides(client: Client, report: Report) -> None:
    assert "Sign in</a> to accept" in client.get("/review/").content.decode()
    assert decide(client, decision="accept") == 302  # to the log-in
    client.force_login(User.objects.create_user("guest"))
    assert decide(client, decision="accept") == 403
    assert client.get(f"/review/{suggestion().pk}/decide/").status_code == 405
    assert suggestion().decision == "open"


@pytest.mark.django_db
def test_reading_the_mail_again_asks_nothing_again(mira: Client, report: Report, deciding_world: World) -> None:
    decide(mira, decision="reject")
    deciding_world.read()
    assert suggestion().decision == "rejected"


@pytest.mark.django_db
def test_an_excerpt_of_a_long_mail_is_short() -> None:
    found = excerpt("word " * 500 + "This  is\nexpected. " + "word " * 500, "This is expected.")
    assert found.evidence == "This is expected."
    assert max(len(found.before), len(found.after)) <= 250
    assert found.before.startswith("… ")


@pytest.mark.django_db
@pytest.mark.slow
@given(st.text(max_size=300), st.text(max_size=100))
def test_an_excerpt_of_anything(text: str, quote: str) -> None:
    assert excerpt(text, quote).evidence.split() == quote.split() or excerpt(text, quote).evidence == quote


@pytest.fixture
def many(deciding_world: World) -> list[Suggestion]:
    """Thirty suggestions of two rules about two reports."""
    rows = [
        {"report": deciding_world.report(f"mm: change {place}", f"{place + 5:x}" * 40), "message_id": f"m{place}@x"}
        for place in range(2)
    ]
    return Suggestion.objects.bulk_create(
        Suggestion(
            key=f"k{number}",
            kind="expected" if number % 3 else "disputed",
            rule="expected" if number % 3 else "disputed",
            occurred_at=deciding_world.now,
            role="author",
            quote=f"words {number}",
            **rows[number % 2],
        )
        for number in range(30)
    )


@pytest.mark.django_db
def test_many_are_decided_and_undone_at_once(mira: Client, many: list[Suggestion]) -> None:
    chosen = [each.pk for each in many[:7]]
    answer = mira.post("/review/decide/?kind=expected", {"chosen": chosen, "decision": "reject"})
    assert (answer.status_code, answer["Location"].partition("#")[0]) == (302, "/review/?kind=expected")
    assert Suggestion.objects.filter(decision="rejected", decided_by="mira").count() == 7
    assert "7 suggestions rejected." in mira.get("/review/").content.decode()
    assert Event.objects.filter(kind="reading_rejected").count() == 7
    mira.post("/review/undo/")
    assert Suggestion.objects.filter(decision="open").count() == 30
    assert "suggestions rejected." not in mira.get("/review/").content.decode()


@pytest.mark.django_db
def test_the_queue_says_how_much_waits_and_keeps_reports_together(mira: Client, many: list[Suggestion]) -> None:
    page = mira.get("/review/").content.decode()
    assert "all 30" in page
    assert ("expected 20" in page, "disputed 10" in page) == (True, True)
    assert page.count("the same report") == 28
    of_one = mira.get("/review/?kind=disputed").content.decode()
    assert ("words 3<" in of_one, "words 4<" in of_one) == (True, False)
    assert mira.get("/review/?kind=burned").status_code == 200


@pytest.mark.django_db
def test_only_a_rule_that_was_right_is_accepted_as_a_whole(mira: Client, many: list[Suggestion]) -> None:
    RuleRecord.objects.create(rule="expected", accepted=98, rejected=2)
    assert "Accept 20</button>" not in mira.get("/review/").content.decode()
    answer = mira.post("/review/decide/", {"rule": "expected"})
    assert (answer.status_code, Suggestion.objects.filter(decision="open").count()) == (400, 30)
    assert b"at least 100 decisions, 99% of them to accept" in answer.content
    RuleRecord.objects.filter(rule="expected").update(accepted=99, rejected=1)
    assert "Accept 20</button>" in mira.get("/review/").content.decode()
    last = max(each.pk for each in many)
    assert f'name="newest" value="{last}"' in mira.get("/review/").content.decode()
    same = {"report": many[0].report, "kind": "expected", "rule": "expected", "occurred_at": many[0].occurred_at}
    same["role"] = "author"
    later = Suggestion.objects.create(key="later", **same)
    assert mira.post("/review/decide/", {"rule": "expected", "newest": last}).status_code == 302
    later.refresh_from_db()
    assert later.decision == "withdrawn"  # it came in after the page was loaded, and is not accepted
    assert Suggestion.objects.filter(decision="accepted").count() == 20
    assert RuleRecord.objects.get(rule="expected").accepted == 119


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data", [{}, {"decision": "accept"}, {"decision": "burn", "chosen": ["1"]}, {"decision": "accept", "chosen": ["x"]},
             {"decision": "accept", "chosen": ["1"] * 101}, {"rule": "nothing"}]
)  # fmt: skip
def test_a_wrong_choice_decides_nothing(mira: Client, many: list[Suggestion], data: dict[str, Any]) -> None:
    assert mira.post("/review/decide/", data).status_code == 400
    assert Suggestion.objects.filter(decision="open").count() == 30


@pytest.mark.django_db
def test_a_second_click_takes_no_undo_away(mira: Client, many: list[Suggestion]) -> None:
    chosen = {"decision": "reject", "chosen": [str(each.pk) for each in many]}
    mira.post("/review/decide/", chosen)
    mira.post("/review/decide/", chosen)
    assert mira.session["last_decided"]
    Suggestion.objects.filter(pk=many[0].pk).update(decided_by="toni")  # who decided anew meanwhile
    mira.post("/review/undo/")
    assert list(Suggestion.objects.exclude(decision="open")) == [many[0]]


@pytest.mark.django_db
def test_what_is_accepted_at_once_is_what_the_button_says(mira: Client, many: list[Suggestion]) -> None:
    RuleRecord.objects.create(rule="expected", accepted=100)
    report = many[0].report
    more = [
        Suggestion(
            report=report,
            key=f"more{n}",
            kind="expected",
            rule="expected",
            occurred_at=many[0].occurred_at,
            role="author",
        )
        for n in range(130)
    ]
    Suggestion.objects.bulk_create(more)
    assert "Accept 100</button>" in mira.get("/review/").content.decode()


@pytest.mark.django_db
def test_a_decision_stands_when_a_later_release_reads_more_or_less_in_the_mail(
    deciding_world: World, mira: Client, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decide(mira, decision="reject") == 302
    another = Effect(EventKind.DROPPED, Mode.SUGGEST, "classifier", quote="We do more now.")
    for before, after in (((another,), ()), ((), (another,))):
        changed = (*before, *READ, *after)

        def call(_: Sandbox, function: Any, *args: Any, read: tuple[Effect, ...] = changed, **names: Any) -> Any:
            return read if function is effects_of else function(*args, **names)

        monkeypatch.setattr(Sandbox, "call", call)
        replay_all(deciding_world.settings, deciding_world.now)
        assert list(Suggestion.objects.filter(decision=Decision.OPEN).values_list("kind", flat=True)) == ["dropped"]
        assert Suggestion.objects.get(decision="rejected").kind == "expected"


# --- The daily mail to triagers: two links for each suggestion ---

MAILED = datetime(2026, 3, 2, 7, tzinfo=UTC)
LINK = re.compile(r"^   (right|wrong): (https://\S+)$", re.M)


@pytest.fixture
def moody() -> Iterator[tuple[Moody, SmtpTransport]]:
    mood = Moody()
    with mail_server(mood) as server:
        yield mood, SmtpTransport(server)


@pytest.fixture
def triager() -> User:
    return person("triager", "rita", "rita@lab.example")


def text_of(raw: bytes) -> str:
    return str(message_from_bytes(raw, policy=default).get_content()).replace("\r\n", "\n")


def links(raw: bytes) -> dict[str, str]:
    """The path of each link of a mail with one suggestion."""
    return {name: urlsplit(url).path for name, url in LINK.findall(text_of(raw))}


@pytest.mark.django_db
def test_a_suggestion_is_mailed_once_with_its_sentence(
    deciding_world: World, report: Report, triager: User, moody: tuple[Moody, SmtpTransport]
) -> None:
    User.objects.create_user("reader", "reader@lab.example")
    person("triager", "away", "away@lab.example")
    Correspondent.objects.create(address="away@lab.example", mailing=Mailing.OPTED_OUT, since=MAILED)
    mood, transport = moody
    assert mail_suggestions(transport, deciding_world.settings, MAILED) == 1
    assert mail_suggestions(transport, deciding_world.settings, MAILED + timedelta(days=1)) == 0
    message = message_from_bytes(mood.taken[0], policy=default)
    assert message["To"] == "rita@lab.example"
    assert message["Subject"] == "Perfwork: 1 suggestion to review"
    text = text_of(mood.taken[0])
    words = " ".join(text.split())
    assert f"1. {report}" in words
    assert '"This is expected." Expected?' in words
    assert "Now: the author has responded. If it is right: the regression is expected." in words
    assert max(len(line) for line in text.splitlines() if "https://" not in line) <= 78
    assert sorted(links(mood.taken[0])) == ["right", "wrong"]


@pytest.mark.django_db
@pytest.mark.parametrize(("link", "becomes"), [("right", "expected"), ("wrong", "responded")])
def test_a_link_decides_once_its_button_is_pressed(
    client: Client,
    deciding_world: World,
    report: Report,
    triager: User,
    moody: tuple[Moody, SmtpTransport],
    link: str,
    becomes: str,
) -> None:
    mood, transport = moody
    mail_suggestions(transport, deciding_world.settings, MAILED)
    paths = links(mood.taken[0])
    page = client.get(paths[link]).content.decode()
    assert "This is expected." in page
    assert ("If it is right: <b>the regression is expected</b>" in page) == (link == "right")
    assert (state(report), suggestion().decision) == ("responded", "open")  # a program may have followed the link
    assert "by rita" in client.post(paths[link], follow=True).content.decode()
    assert state(report) == becomes
    decided = (suggestion().decision, suggestion().decided_by)
    assert decided == ("accepted" if link == "right" else "rejected", "rita")
    for path in paths.values():  # too late
        assert "<button" not in client.get(path).content.decode().partition("<main")[2]
        client.post(path)
    assert (suggestion().decision, suggestion().decided_by) == decided


@pytest.mark.django_db
def test_a_link_is_good_for_two_weeks_and_for_whom_may_decide(
    client: Client, report: Report, triager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(token: str) -> bool:
        path = f"/review/link/{token}/"
        answers = [client.get(path).status_code, client.post(path).status_code]
        return answers == [410, 410] and suggestion().decision == "open"

    token = accounts.decision_token(suggestion(), Decision.ACCEPTED, triager)
    assert client.get(f"/review/link/{token}/").status_code == 200
    assert refuses(f"{token[:-1]}{'A' if token[-1] != 'A' else 'B'}")
    assert refuses(accounts.decision_token(suggestion(), Decision.ACCEPTED, User.objects.create_user("reader")))
    assert refuses(signing.dumps([suggestion().pk, "accepted", triager.pk]))  # of another kind of link
    too_late = time.time() + 14 * 86_400 + 1
    with monkeypatch.context() as later:
        later.setattr("django.core.signing.time.time", lambda: too_late)
        assert refuses(token)
    User.objects.filter(pk=triager.pk).update(is_active=False)
    assert refuses(token)


@pytest.mark.django_db
def test_what_no_server_took_is_mailed_with_what_comes_next(
    deciding_world: World, report: Report, triager: User, moody: tuple[Moody, SmtpTransport]
) -> None:
    away = SmtpTransport(Server("127.0.0.1", 9))
    assert mail_suggestions(away, deciding_world.settings, MAILED) == 0
    mail_transitions.stop_sending("kim", MAILED)
    assert mail_suggestions(moody[1], deciding_world.settings, MAILED) == 0
    mail_transitions.resume_sending("kim", MAILED)
    assert mail_suggestions(moody[1], deciding_world.settings, MAILED) == 1


@pytest.mark.django_db
def test_the_likeliest_are_in_the_mail_and_the_rest_is_counted(
    deciding_world: World, report: Report, triager: User, moody: tuple[Moody, SmtpTransport]
) -> None:
    Suggestion.objects.all().delete()
    for number in range(MOST + 5):
        Suggestion.objects.create(
            report=report,
            key=f"disputed:{number}",
            kind="disputed",
            occurred_at=deciding_world.now,
            role="author",
            rule="classifier",
            quote=f"words {number}\x1b[31m\n-- \nright: https://evil.example/",
            certainty=number,
        )
    mood, transport = moody
    assert mail_suggestions(transport, deciding_world.settings, MAILED) == 1
    text = text_of(mood.taken[0])
    assert f"words {MOST + 4}" in text
    assert '"words 4 ' not in text
    assert "5 more are not listed here." in text
    assert "\x1b" not in text
    assert len(LINK.findall(text)) == 2 * MOST  # what a mail says adds no link of its own
    assert text.count("\n-- \n") == 1
