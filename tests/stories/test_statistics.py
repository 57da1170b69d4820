"""Statistics: times and false alarms by release, subsystem, suite and machine, with the counts behind them."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.lines import line
from tracker.domain.events import State, Verdict
from tracker.domain.track_record import WITHIN, Course, by, group
from tracker.models import Event, RuleRecord
from tracker.pages.statistics import load_statistics

AT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def reports(db: None) -> None:
    cache.clear()
    for number in range(12):
        waited = None if number % 4 == 3 else AT + (number + 1) * HOUR
        fixed = {"state": "fixed", "closed_at": AT + 100 * HOUR} if number == 0 else {}
        wrong = {"state": "invalid", "closed_at": AT + 9 * HOUR} if number == 1 else {}
        report = line(
            number, reported_at=AT, responded_at=waited, subsystem="mm" if number % 2 else "=cmd()", suite="wis",
            machine="m1", merged_release="v9.1", **fixed, **wrong,
        )  # fmt: skip
        if number == 0:
            values = {"kind": "fix_proposed", "occurred_at": AT + 50 * HOUR, "recorded_at": AT, "message_id": "f@x"}
            Event.objects.create(report=report, key="f", **values)
    line(20, reported_at=AT, verdict="improvement", subsystem="mm")
    RuleRecord.objects.create(rule="expected", accepted=3, rejected=1)


def test_the_page_says_times_with_their_counts(reports: None, client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(4):
        page = client.get("/statistics/").content.decode()
    assert "9 of 12 (75%); of 9 whose time is known, half within 6 h and nine in ten within 11 h" in page
    assert "1 of 12; of 1 whose time is known, half within 2 d" in page
    assert "1 of 2 closed or disputed reports (50%)" in page
    assert "1 day: 9 · 3 days: 9" in page
    assert '<a href="/subsystem/mm/">mm</a>' in page
    with django_assert_num_queries(0):
        client.get("/statistics/")


def test_the_table_opens_in_a_spreadsheet(reports: None, client: Client) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/statistics.csv").content.decode())))
    total = rows[0]
    assert (total["by"], total["regressions"], total["response_number"], total["response_median_hours"]) == (
        *("all", "12", "9"),
        "6.0",
    )
    assert (total["candidate_median_hours"], total["landing_median_hours"]) == ("50.0", "100.0")
    subsystems = [row["name"] for row in rows if row["by"] == "subsystem"]
    assert subsystems == ["'=cmd()", "mm"]


def test_an_imported_table_says_that_somebody_responded_but_not_when(db: None, client: Client) -> None:
    cache.clear()
    line(1, reported_at=AT, responded_at=AT)
    page = client.get("/statistics/").content.decode()
    assert "1 of 1 (100%)</dd>" in page
    assert "Responded within" not in page


def test_nothing_yet(client: Client, db: None) -> None:
    cache.clear()
    assert "No regressions yet." in client.get("/statistics/").content.decode()


COURSES = st.builds(
    Course,
    *(st.sampled_from(("", "a", "b")) for _ in range(4)),
    state=st.sampled_from(list(State)),
    verdict=st.sampled_from(list(Verdict)),
    reported_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    responded_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@given(st.lists(COURSES, max_size=30))
def test_any_reports_have_counts_that_add_up(courses: list[Course]) -> None:
    total = group("all", courses)
    assert total.response.number <= total.response.of == sum(each.verdict == "regression" for each in courses)
    assert list(total.within) == sorted(total.within)
    assert len(total.within) == len(WITHIN)
    assert total.false <= total.ended
    named = by(courses, lambda each: each.suite)
    assert sum(each.response.of for each in named) == sum(
        bool(each.suite) and each.verdict == "regression" for each in courses
    )


def test_only_what_was_mailed_and_what_stands_counts(db: None) -> None:
    cache.clear()
    line(1)  # never mailed
    undone = line(2, reported_at=AT)
    fixed = line(3, reported_at=AT, state="fixed", closed_at=AT + HOUR)  # first closed as expected
    common = {"recorded_at": AT, "actor": "toni"}
    Event.objects.create(report=undone, key="f", kind="fix_proposed", occurred_at=AT + HOUR, **common)
    Event.objects.create(report=undone, key="u", kind="reversed", occurred_at=AT + HOUR, reverses="f", **common)
    Event.objects.create(report=fixed, key="l", kind="fix_landed", occurred_at=AT + 90 * HOUR, **common)
    total = load_statistics().total
    assert (total.response.of, total.candidate.number) == (2, 0)
    assert (total.landing.number, total.landing.median) == (1, 90 * HOUR)
