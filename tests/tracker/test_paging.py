"""Keyset paging: all pages together are the whole table, in any order, from either end."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.lines import NOW, line
from tracker.models import Report
from tracker.pages.http import CursorError, Key, Order
from tracker.pages.triage.filters import ORDERS, InvalidQuery, TriageQuery
from tracker.pages.triage.table import TriageSection, section

ORDER = Order((Key("subsystem"), Key("reported_at", descending=True, nullable=True), Key("pk")))


@pytest.fixture
def forty(db: None) -> list[int]:
    """Lines with many equal values, and some empty ones."""
    made = []
    for number in range(40):
        at = None if number % 5 == 0 else NOW - timedelta(days=number % 4)
        made.append(
            line(
                number,
                merged_release="v5.6",
                subsystem=("mm", "", "fs")[number % 3],
                metric=("a", "b")[number % 2],
                machine=f"m{number % 4}",
                author=f"a{number % 3}@dev.example",
                reported_at=at,
                last_human_reply_at=at,
                weight=number % 6,
                urgency=number % 7,
                state=("no_response", "working")[number % 2],
            ).pk
        )
    return made


def page(query: str, size: int) -> TriageSection:
    question = TriageQuery.from_query(QueryDict(query), NOW)
    return section("merged", "", Report.objects.filter(merged_release="v5.6"), question, NOW, size)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("group", ["", "subsystem", "state"])
def test_pages_put_together_are_the_whole(forty: list[int], order: str, group: str) -> None:
    query = f"order={order}&group={group}&section=merged"
    all_rows = [row.pk for row in page(query, 100).rows]
    assert sorted(all_rows) == sorted(forty)
    forth: list[int] = []
    position = ""
    for _ in range(20):
        found = page(f"{query}{position}", 7)
        forth += [row.pk for row in found.rows]
        if not found.after:
            break
        position = f"&after={found.after}"
    assert forth == all_rows
    back: list[int] = []
    position = "&end=1"
    for _ in range(20):
        found = page(f"{query}{position}", 7)
        back = [row.pk for row in found.rows] + back
        if not found.before:
            break
        position = f"&before={found.before}"
    assert back == all_rows


def test_a_page_knows_its_neighbours(forty: list[int]) -> None:
    first = page("section=merged", 7)
    assert (bool(first.before), bool(first.after)) == (False, True)
    second = page(f"section=merged&after={first.after}", 7)
    assert (bool(second.before), bool(second.after)) == (True, True)
    again = page(f"section=merged&before={second.before}", 7)
    assert [row.pk for row in again.rows] == [row.pk for row in first.rows]
    last = page("section=merged&end=1", 7)
    assert (bool(last.before), bool(last.after)) == (True, False)


def test_a_cursor_holds_the_values_of_a_row() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    for values in (["mm", at, 7], ["", None, 1], ["ünï/%", at, 2**40]):
        cursor = ORDER.cursor(dict(zip(("subsystem", "reported_at", "pk"), values, strict=True)))
        assert ORDER.values(cursor, Report) == values


def _text(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "AAAA", "%%%", "ü", _text({}), _text([]), _text(["mm", None]), _text(["mm", "tomorrow", 1])),
        *(_text(["mm", None, "one"]), _text(["m\0m", None, 1]), _text(["mm", None, 2**70]), _text([["mm"], None, 1])),
        *(_text([1.5, True, 1]), _text("[[[" * 400), _text(["\ud800", None, 1])),
        *(_text(["mm", "0001-01-01T00:00:00+14:00", 1]), _text(["mm", "9999-12-31T23:59:59-14:00", 1])),
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(CursorError):
        ORDER.values(cursor, Report)


@given(st.text(max_size=60) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(_text))
def test_junk_is_a_cursor_or_refused(cursor: str) -> None:
    try:
        assert len(ORDER.values(cursor, Report)) == 3
    except CursorError:
        pass


@given(
    st.dictionaries(
        st.sampled_from(["state", "order", "after", "section", "age", "q", "machine!"]), st.text(max_size=40)
    )
)
def test_junk_is_a_question_or_mistaken(params: dict[str, str]) -> None:
    query = QueryDict(mutable=True)
    query.update(params)
    try:
        question = TriageQuery.from_query(query, NOW)
    except InvalidQuery:
        return
    again = TriageQuery.from_query(QueryDict(question.text), NOW)
    assert (again.active_filters, again.order, again.group) == (question.active_filters, question.order, question.group)
