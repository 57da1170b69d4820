"""Who is reminded, and when: the clock of a report, and what keeps a reminder back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy import Action, QuietReport, ReminderPolicy, batches, is_due, read_policy
from tracker.domain.deadlines import (
    DeadlinePolicy,
    ReportClock,
    Stage,
    after_working_days,
    before_working_days,
    report_clock,
)
from tracker.domain.events import Awaited, State, Verdict
from tracker.domain.report_state import ReportState

FRIDAY = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = ReminderPolicy()


def state(name: str, awaited: str, verdict: str = "regression", **more: object) -> ReportState:
    return ReportState(Verdict(verdict), State(name), awaited=Awaited(awaited), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("since", "days", "expected"),
    [
        ("2026-11-20", 1, "2026-11-23"),  # a Friday
        ("2026-11-21", 1, "2026-11-24"),
        ("2026-11-22", 5, "2026-11-30"),
        ("2026-11-23", 5, "2026-11-30"),
        ("2026-11-20", 10, "2026-12-04"),
        ("2026-12-23", 1, "2027-01-04"),  # nobody works from Christmas to the new year
        ("2026-12-31", 2, "2027-01-06"),
        ("2026-11-20", 0, "2026-11-20"),
    ],
)
def test_working_days(since: str, days: int, expected: str) -> None:
    at = datetime.fromisoformat(f"{since}T09:00+00:00")
    assert after_working_days(at, days) == datetime.fromisoformat(f"{expected}T09:00+00:00")


@pytest.mark.parametrize(
    ("report", "serious", "near", "stage", "due"),
    [
        (state("no_response", "author"), False, False, Stage.RESPONSE, "2026-11-27"),
        (state("no_response", "author"), True, False, Stage.RESPONSE, "2026-11-25"),
        (state("no_response", "author"), False, True, Stage.RESPONSE, "2026-11-24"),
        (state("no_response", "author"), True, True, Stage.RESPONSE, "2026-11-23"),
        (state("no_response", "author", blocks="v9.1"), False, False, Stage.RESPONSE, "2026-11-25"),
        (state("responded", "author"), False, False, Stage.FIX, "2026-12-04"),
        (state("working", "author"), False, True, Stage.FIX, "2026-11-27"),
        (state("fix_confirmed", "author"), False, False, Stage.LANDING, "2026-12-04"),
        (state("fix_queued", "maintainer"), False, False, Stage.LANDING, "2026-12-04"),
        (state("fix_proposed", "reporter"), False, False, None, ""),  # the lab measures it
        (state("needs_info", "reporter"), False, False, None, ""),
        (state("disputed", "reporter"), False, False, None, ""),
        (state("expected", "nobody"), False, False, None, ""),
        (state("fixed", "nobody"), False, False, None, ""),
        (state("no_response", "author", "improvement"), False, False, None, ""),
        (state("no_response", "author", "unknown"), False, False, None, ""),
    ],
)
def test_the_clock_of_a_report(report: ReportState, serious: bool, near: bool, stage: Stage | None, due: str) -> None:
    clock = report_clock(report, [None, FRIDAY, FRIDAY - DAY], serious=serious, near_release=near)
    assert (clock.stage if clock else None) == stage
    assert (f"{clock.due_at:%Y-%m-%d}" if clock else "") == due


def test_without_any_word_there_is_no_clock() -> None:
    assert report_clock(state("no_response", "author"), [None], serious=False, near_release=False) is None


@given(st.integers(0, 900_000), st.integers(1, 60), st.integers(1, 60))
def test_more_days_are_later_and_never_on_a_day_off(hours: int, days: int, more: int) -> None:
    since = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    policy = DeadlinePolicy()
    early, late = (after_working_days(since, each) for each in (days, days + more))
    assert early < late
    assert policy.is_working_day(early.date())
    assert early - since >= timedelta(days=days)


@given(st.integers(0, 90_000), st.integers(-2000, 2000), st.integers(1, 20))
def test_what_is_due_is_what_began_early_enough(hours: int, since_then: int, days: int) -> None:
    """A table of what is late is a query, a reminder goes by a clock: both agree."""
    since = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    until = since + timedelta(hours=since_then)
    assert (after_working_days(since, days) <= until) == (since <= before_working_days(until, days))


CLOCK = ReportClock(Stage.RESPONSE, Awaited.AUTHOR, FRIDAY, FRIDAY + 7 * DAY)
QUIET = QuietReport(1, "dana@dev.example", State.NO_RESPONSE, CLOCK, -12.0, 100)
NOW = FRIDAY + 8 * DAY


@pytest.mark.parametrize(
    ("report", "due"),
    [
        (QUIET, True),
        (replace(QUIET, clock=None), False),
        (replace(QUIET, person=""), False),
        (replace(QUIET, silenced="opted out"), False),
        (replace(QUIET, change_pct=-4.9), False),
        (replace(QUIET, change_pct=None), True),  # from zero
        (replace(QUIET, change_pct=90.0), True),
        (replace(QUIET, state=State.DISPUTED), False),
        (replace(QUIET, clock=replace(CLOCK, due_at=NOW)), False),
        (replace(QUIET, reminded=(NOW - 13 * DAY,)), False),
        (replace(QUIET, reminded=(NOW - 14 * DAY,)), True),
        (replace(QUIET, reminded=(NOW - 90 * DAY, NOW - 60 * DAY)), False),  # two are enough
    ],
)
def test_who_is_due(report: QuietReport, due: bool) -> None:
    assert is_due(report, POLICY, NOW) is due


def test_a_person_gets_one_mail_about_all_their_reports() -> None:
    reports = [replace(QUIET, key=1), replace(QUIET, key=2, urgency=900), replace(QUIET, key=3, person="lee@x.example")]
    found = batches(reports, {}, POLICY, NOW)
    assert [(each.person, [report.key for report in each.reports]) for each in found] == [
        ("dana@dev.example", [2, 1]),
        ("lee@x.example", [3]),
    ]
    assert [each.person for each in batches(reports, {"dana@dev.example": NOW - 6 * DAY}, POLICY, NOW)] == [
        "lee@x.example"
    ]


def test_the_policy_file_sets_the_deadlines() -> None:
    text = '[reminders]\naction = "send"\nresponse_days = 7\nserious_days = 2\nat_least_pct = 10\n'
    policy = read_policy(text).reminders
    assert (policy.action, policy.deadlines.response_days, policy.deadlines.serious_days) == (Action.SEND, 7, 2)
    assert (policy.at_least_pct, policy.deadlines.fix_days) == (10.0, 10)
    assert read_policy("").reminders == ReminderPolicy()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reminders = 3", "reminders: expected a [reminders] table"),
        ("[reminders]\ndaily = 1", "reminders: daily: unknown setting"),
        ('[reminders]\naction = "shout"', "reminders: action: expected send, approve or hold"),
        ("[reminders]\nfix_days = 0", "reminders: fix_days: expected 1 to 250 working days, found 0"),
        ("[reminders]\nfix_days = 2.5", "fix_days: expected a whole number"),
    ],
)
def test_a_wrong_setting_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("[", r"\[")):
        read_policy(text)
