"""Actions on reports: one event each, in few statements, can be undone, and never overwrite another user's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.rows import NOW, line
from tracker.domain.events import EventKind, Role
from tracker.models import Commit, Event, OutgoingMail, Report, Tree
from tracker.services import event_log, report_actions
from tracker.services.report_actions import ACTION_KEYS, InvalidInput, ReportAction

H = EventKind
BATCH = "0123456789ab"
OTHER = "00000abcde" * 4  # the culprit of another report, line(0xABCDE - 1)


def anybody(report: Report) -> Role:
    return Role.REPORTER


def act(kind: EventKind, argument: str = "", batch: str = BATCH, **more: Any) -> ReportAction:
    return ReportAction(kind, "kim", batch, NOW, argument, **more)


def seen(*reports: Report) -> dict[int, int]:
    return {report.pk: Report.objects.get(pk=report.pk).revision for report in reports}


@pytest.fixture
def report(db: None) -> Report:
    made = line(1, merged_release="v5.6", cycle="v5.6")
    event_log.refold([made.pk])
    return made


def status(report: Report) -> str:
    return Report.objects.get(pk=report.pk).status


def test_text_for_an_action_that_takes_none_is_refused(report: Report) -> None:
    with pytest.raises(InvalidInput, match="takes no text: choose Note for it"):
        report_actions.change(seen(report), act(H.INVALID, "the machine was broken"), anybody)
    assert status(report) == "not reported yet"


@pytest.mark.parametrize(
    ("kind", "argument", "sentence"),
    [
        (H.RESPONDED, "", "the author has responded"),
        (H.WORKING, "", "the author is working on it"),
        (H.ASKED, "", "more information was asked for"),
        (H.DISPUTED, "", "the report is disputed"),
        (H.FIX_PROPOSED, "mm: charge once", "a fix is proposed"),
        (H.FIX_CONFIRMED, "mm: charge once", "a fix is proposed and confirmed"),
        (H.FIX_QUEUED, "akpm", "a fix is queued in akpm"),
        (H.FIX_LANDED, "v5.6-rc4", "the regression has been fixed in v5.6-rc4"),
        (H.FIX_LANDED, "", "the regression has been fixed"),
        (H.DROPPED, "", "the commit has been dropped"),
        (H.EXPECTED, "", "the regression is expected"),
        (H.INVALID, "", "the report was withdrawn"),
        (H.DUPLICATE, OTHER[:13].upper(), f"a duplicate of {OTHER[:10]}"),
        (H.DISAPPEARED, "v5.6-rc5", "the regression has disappeared in v5.6-rc5"),
        (H.NOTED, "cache  align\nissue", "cache align issue"),
    ],
)
def test_an_act_is_an_event_with_the_person(report: Report, kind: EventKind, argument: str, sentence: str) -> None:
    line(0xABCDE - 1)
    Tree.objects.create(name="akpm")
    outcome = report_actions.change(seen(report), act(kind, argument), anybody)
    assert outcome.changed == [report.pk]
    assert outcome.summary() == "1 report changed."
    assert status(report) == sentence
    event = Event.objects.get()
    assert (event.actor, event.role, event.occurred_at, event.batch, event.notify_thread) == (
        "kim",
        "reporter",
        NOW,
        BATCH,
        False,
    )
    assert report_actions.undo(BATCH, "lee", NOW, anybody, of_others=True) == [report.pk]
    assert status(report) == "not reported yet"
    assert report_actions.undo(BATCH, "lee", NOW, anybody, of_others=True) == []
    reversal = Event.objects.get(kind="reversed")
    assert (reversal.actor, reversal.reverses) == (
        "lee",
        report_actions.ReportAction(EventKind.NOTED, "kim", BATCH, NOW).key,
    )
    assert report_actions.reverse_event([report.pk], reversal.key, "kim", NOW, anybody, of_others=True) == [
        report.pk
    ]  # and back again
    assert status(report) == sentence


def test_every_verb_is_tried_above() -> None:
    tried = {
        *[
            "responded",
            "working",
            "asked",
            "disputed",
            "fix_proposed",
            "fix_confirmed",
            "fix_queued",
            "fix_landed",
            "dropped",
            "expected",
        ]
    }
    tried |= {*["invalid", "duplicate", "disappeared", "noted", "reopened", "blocks", "unblocked", "assigned"]}
    tried |= {"corrected", "tagged", "succeeded"}  # in tests/stories/test_corrections.py
    assert {action.kind.value for action in ACTION_KEYS} == tried
    keys = [action.key for action in ACTION_KEYS]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & set("jkxXus/?")


def test_blocking_assigning_and_reopening(report: Report) -> None:
    report_actions.change(seen(report), act(H.BLOCKS), anybody, "v5.7")
    report_actions.change(seen(report), act(H.ASSIGNED, "me", "b" * 12), anybody)
    found = Report.objects.get()
    assert (found.blocks, found.assignee) == ("v5.7", "kim")
    assert found.urgency >> 52 == 3
    report_actions.change(seen(report), act(H.EXPECTED, "", "c" * 12), anybody)
    found = Report.objects.get()
    assert (found.urgency >> 52, found.closed_at) == (0, NOW)  # what is closed blocks nothing
    report_actions.change(seen(report), act(H.REOPENED, "", "d" * 12), anybody)
    found = Report.objects.get()
    assert (found.urgency >> 52, found.closed_at, found.state) == (3, None, "no_response")
    report_actions.change(seen(report), act(H.UNBLOCKED, "", "e" * 12), anybody)
    report_actions.change(seen(report), act(H.ASSIGNED, "nobody", "f" * 12), anybody)
    found = Report.objects.get()
    assert (found.blocks, found.assignee, found.urgency >> 52) == ("", "", 2)


@pytest.mark.parametrize(
    ("kind", "argument", "message"),
    [
        (H.FIX_LANDED, "soon", "expected a version like v6.12-rc4; found 'soon'"),
        (H.DUPLICATE, "", "expected the sha of another report's culprit; found ''"),
        (H.DUPLICATE, "mm: charge", "expected the sha of another report's culprit; found 'mm: charge'"),
        (H.DUPLICATE, "fedcba9876", "no report has fedcba9876"),
        (H.DUPLICATE, "0000000002", "0000000002 is the report itself"),
        (H.NOTED, " \n ", "expected some text; found none"),
        (H.ASSIGNED, "", "expected some text; found none"),
        (H.ASSIGNED, "nosuchperson", "a user's name, or an address that a report knows; found 'nosuchperson'"),
        (H.FIX_LANDED, "v99.9", "v99.9 can't be released yet: the newest version is v6.19"),
        (H.DISAPPEARED, "v8.0-rc1", "v8.0-rc1 can't be released yet"),
        (H.BLOCKS, "v6.40", "there is no v6.40"),
        (H.FIX_LANDED, "v5.66", "there is no v5.66"),
        (H.FIX_LANDED, "v6.119", r"there is no v6.119; did you mean v6.19\?"),
        (H.FIX_QUEUED, "akmp", r"found 'akmp'; did you mean akpm\?"),
        (H.FIX_LANDED, "v6.19-rc99", "v6.19-rc99 can't be released yet"),
        (H.FIX_LANDED, "v6.19-rc0", "expected a version like v6.12-rc4"),
        (H.FIX_LANDED, "v06.19", "expected a version like v6.12-rc4"),
        (H.FIX_LANDED, "v６.１９", "expected a version like v6.12-rc4"),
        (H.FIX_QUEUED, "net", r"expected a followed tree \(akpm\); found 'net'"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_done(
    report: Report, kind: EventKind, argument: str, message: str
) -> None:
    Tree.objects.create(name="akpm")
    with pytest.raises(InvalidInput, match=message):
        report_actions.change(seen(report), act(kind, argument), anybody)
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("tag", "now", "taken"),
    [
        ("v5.6-rc1", NOW, True),
        ("v4.19.3", NOW, True),
        ("v6.20", NOW, True),  # the one after v6.19, the newest that is known
        ("v7.0-rc1", NOW, True),
        ("v7.2", datetime(2026, 1, 8, tzinfo=UTC), False),
        ("v7.3", datetime(2026, 11, 26, tzinfo=UTC), True),  # a year after v6.18, and no tree was walked
        ("v7.9", datetime(2026, 11, 26, tzinfo=UTC), False),
    ],
)
def test_a_version_that_may_be_released_by_now_is_taken(report: Report, tag: str, now: datetime, taken: bool) -> None:
    fixed = replace(act(H.FIX_LANDED, tag), at=now)
    if taken:
        assert report_actions.change(seen(report), fixed, anybody).changed == [report.pk]
    else:
        with pytest.raises(InvalidInput, match="can't be released yet"):
            report_actions.change(seen(report), fixed, anybody)


@pytest.mark.parametrize(
    ("tag", "is_older"), [("v6.18", True), ("v6.19-rc1", True), ("v6.19-rc2", False), ("v6.12.9", False)]
)
def test_no_mainline_version_before_the_culprits_has_the_fix(report: Report, tag: str, is_older: bool) -> None:
    Report.objects.update(landing="v6.19-rc2")
    if is_older:
        with pytest.raises(InvalidInput, match=r"older than the culprit, which landed in v6\.19-rc2"):
            report_actions.change(seen(report), act(H.FIX_LANDED, tag), anybody)
    else:
        assert report_actions.change(seen(report), act(H.FIX_LANDED, tag), anybody).changed == [report.pk]


def test_a_report_is_assigned_to_whom_a_report_knows(report: Report, django_user_model: Any) -> None:
    django_user_model.objects.create_user("lee", "Lee@perf.example")
    Commit.objects.create(sha="f" * 40, author_email="dana@dev.example")
    for number, name in enumerate(("Lee", "lee@perf.example", "Dana@dev.example", "kim", "nobody")):
        change = replace(act(H.ASSIGNED, name, f"{number:012x}"), at=NOW + timedelta(minutes=number))
        assert report_actions.change(seen(report), change, anybody).changed == [report.pk], name


def test_who_saw_an_older_state_changes_nothing_and_is_told(report: Report) -> None:
    old = seen(report)
    report_actions.change(old, act(H.DISPUTED), anybody)
    outcome = report_actions.change(old, act(H.WORKING, batch="b" * 12), anybody)
    assert (outcome.changed, [each.pk for each in outcome.overtaken]) == ([], [report.pk])
    assert "0 reports changed. 0000000002 was changed in the meantime, so this action was not" in outcome.summary()
    assert "now: the report is disputed" in outcome.summary()
    assert Event.objects.count() == 1


def test_what_moves_nothing_is_not_written_down(report: Report) -> None:
    report_actions.change(seen(report), act(H.FIX_PROPOSED, "mm: a"), anybody)
    outcome = report_actions.change(seen(report), act(H.WORKING, batch="b" * 12), anybody)  # no promise moves it back
    assert [each.pk for each in outcome.idle] == [report.pk]
    assert "is unchanged: this action has no effect there" in outcome.summary()
    again = report_actions.change(seen(report), act(H.UNBLOCKED, batch="c" * 12), anybody)
    assert again.idle
    assert Event.objects.count() == 1


def test_who_may_not_is_told(report: Report) -> None:
    other = line(2)
    mine = {report.pk: Role.AUTHOR}
    outcome = report_actions.change(seen(report, other), act(H.WORKING), lambda each: mine.get(each.pk))
    assert (outcome.changed, [each.pk for each in outcome.forbidden]) == ([report.pk], [other.pk])
    assert "is unchanged: you do not have permission" in outcome.summary()
    assert Event.objects.get().role == "author"
    assert report_actions.undo(BATCH, "eve", NOW, lambda each: None, of_others=True) == []


def test_a_long_note_is_kept_whole_and_short_in_the_sentence(report: Report) -> None:
    note = "first line\n\n- **a** list\n" + "and more words " * 40
    report_actions.change(seen(report), act(H.NOTED, note), anybody)
    event = Event.objects.get()
    assert event.quote == note.strip()
    assert len(event.remark) <= report_actions.IN_A_SENTENCE + 2
    assert event.remark.startswith("first line - **a** list")
    assert "\n" not in status(report)


def test_a_hundred_reports_are_changed_in_six_statements(db: None) -> None:
    reports = [line(number) for number in range(100)]
    event_log.refold([report.pk for report in reports])
    for number, report in enumerate(reports[:50]):
        OutgoingMail.objects.create(
            report=report,
            message_id=f"m{number}",
            raw=b"",
            sender="a@b.example",
            recipients=[],
            subject="",
            composed_at=NOW,
        )
    with CaptureQueriesContext(connection) as queries:
        outcome = report_actions.change(seen_all(reports), act(H.WORKING), anybody)
    assert len(outcome.changed) == 100
    statements = [
        each["sql"] for each in queries.captured_queries if not each["sql"].startswith(("SAVEPOINT", "RELEASE"))
    ]
    assert len(statements) <= 6 + 1, statements  # the first of them is `seen_all`
    assert set(Report.objects.values_list("state", flat=True)) == {"working"}
    assert OutgoingMail.objects.filter(stale=True).count() == 50
    later = report_actions.undo(BATCH, "kim", NOW + timedelta(hours=1), anybody, of_others=False)
    assert len(later) == 100


def seen_all(reports: list[Report]) -> dict[int, int]:
    return dict(Report.objects.filter(pk__in=[each.pk for each in reports]).values_list("pk", "revision"))
