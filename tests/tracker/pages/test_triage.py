"""The filters of the triage table: each with a value that matches, one that does not, and its negation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import TextField
from django.http import QueryDict

from tests.tracker.lines import NOW, line
from tracker.models import Release, Report
from tracker.models.reports import FILTER_COLUMNS
from tracker.pages.triage.filters import InvalidQuery, TableFilters, TriageQuery
from tracker.pages.triage.table import COUNTED, counts, stamped
from tracker.services.report_summary import CLIP, CLIP_BYTES, FOLLOWING_COLUMNS, STATE_COLUMNS, SUMMARY_COLUMNS, clipped

LONG = "suite." + "very-" * 60 + "long"


def shown(query: str) -> str:
    """Which of the rows a query shows, by their letters."""
    question = TriageQuery.from_query(QueryDict(query), NOW)
    return "".join(sorted(question.filtered(Report.objects.all()).values_list("scenario", flat=True)))


@pytest.fixture
def rows(db: None) -> None:
    """Row i is an improvement."""
    line(1, scenario="a", state="working", subsystem="mm/slub", suite="fio", metric="fio.iops", machine="m 1/2%",
         author="dana@dev.example", assignee="kim", blocks="v5.6", words="abc def",
         reported_at=NOW - timedelta(days=30), last_human_reply_at=NOW - timedelta(days=2))  # fmt: skip
    line(2, scenario="b", state="fixed", subsystem="fs", suite="aim7", metric=clipped(LONG), machine="mäschine",
         awaited="nobody", lacks_fix=True, words="abc 100% ghi",
         reported_at=NOW - timedelta(days=3), last_human_reply_at=NOW - timedelta(hours=5))  # fmt: skip
    line(3, scenario="i", verdict="improvement", state="no_action", awaited="nobody")
    line(4, scenario="c", verdict="unknown")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "abc"),
        ("improvements=on", "abci"),
        ("kind=improvement", "i"),
        ("kind!=regression", "ci"),
        ("kind=unknown&kind=improvement", "ci"),
        ("state=working", "a"),
        ("state=working&state=fixed", "ab"),
        ("state=open", "ac"),
        ("state!=open", "b"),
        ("state=closed", "b"),
        ("state!=working&state!=fixed", "c"),
        ("awaiting=nobody", "b"),
        ("subsystem=mm/slub", "a"),
        ("subsystem=mm%2Fslub&subsystem=fs", "ab"),
        ("suite!=fio", "bc"),
        (f"metric={LONG}", "b"),
        ("machine=m+1/2%25", "a"),
        ("machine=m%C3%A4schine", "b"),
        ("machine=Mäschine", ""),
        ("author=dana@dev.example", "a"),
        ("assigned=kim", "a"),
        ("assigned=nobody", "bc"),
        ("assigned!=nobody", "a"),
        ("blocking=yes", "a"),
        ("blocking!=yes", "bc"),
        ("stable=missing", "b"),
        ("stable!=missing", "ac"),
        ("age=2w", "a"),
        ("age=1d", "ab"),
        ("age!=2w", "bc"),  # what was never reported is of no age
        ("silence=1d", "a"),
        ("silence=99999y", ""),
        ("q=ABC", "ab"),
        ("q=abc&q=DEF", "a"),
        ("q=100%25", "b"),
        ("q=_", ""),
        ("q!=def", "bc"),
        ("q!=def&q!=ghi", "c"),
        ("q=abc+ghi", "b"),
        ("q=+", "abc"),
        ("q!=+", "abc"),
        ("author=Dana@Dev.example", "a"),
        ("state=&q=", "abc"),
    ],
)
def test_a_filter_shows(rows: None, query: str, expected: str) -> None:
    assert shown(query) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("state=sleeping", "state: expected open, closed, no_response"),
        ("state!=sleeping", "state!: expected open"),
        ("kind=worse", "kind: expected regression, improvement, unknown; found 'worse'"),
        ("awaiting=god", "awaiting: expected author"),
        ("age=soon", "age: expected a duration like 36h, 3d, 2w, 6m or 1y; found 'soon'"),
        ("blocking=maybe", "blocking: expected yes; found 'maybe'"),
        ("stable=there", "stable: expected missing"),
        ("order=beauty", "order: expected one of urgency, effect"),
        ("group=colour", "group: expected one of state, subsystem"),
        ("section=middle", "section: expected one of merged, shifted"),
        ("after=x", "section: expected one of merged, shifted together with after"),
        ("after=x&section=merged", "after: expected a cursor of this table; found 'x'"),
        ("before=eyJ9&section=merged", "before: expected a cursor of this table"),
        ("colour=red", "'colour': there is no such filter; expected one of state, kind"),
        ("machine=" + "x" * 501, "machine: expected one name"),
        ("machine=a%00b", "machine: expected one name"),
        ("&".join(f"suite=s{n}" for n in range(51)), "suite: expected at most 50 values; found 51"),
        ("state=a&kind=b", "state: expected open, closed"),
    ],
)
def test_what_is_wrong_is_named(query: str, message: str) -> None:
    with pytest.raises(InvalidQuery) as error:
        TriageQuery.from_query(QueryDict(query), NOW)
    assert str(error.value).startswith(message)


def test_every_filter_has_its_opposite() -> None:
    names = set(TableFilters.base_filters) - {"improvements"}
    assert {name for name in names if not name.endswith("!")} == {name[:-1] for name in names if name.endswith("!")}


def test_a_question_is_written_as_it_was_read() -> None:
    query = "state=working&state=fixed&machine!=m%2F1&order=effect&group=suite"
    question = TriageQuery.from_query(QueryDict(f"{query}&section=merged&end=1"), NOW)
    assert question.text == query
    assert question.url(group="") == f"?{query.removesuffix('&group=suite')}"


def test_long_names_are_told_apart() -> None:
    one, other = clipped(LONG + "1"), clipped(LONG + "2")
    assert one != other
    assert len(one) == len(other) == CLIP


def test_the_longest_names_fit_the_index_of_every_database(db: None) -> None:
    """Six names of 120 letters of four bytes each were more than an entry of a PostgreSQL index."""
    line(1, merged_release="v5.6")
    named = [name for name in FILTER_COLUMNS if isinstance(Report._meta.get_field(name), TextField)]
    chosen = [name for name in named if not Report._meta.get_field(name).choices and name != "awaited"]
    assert len(chosen) > 6
    incompressible = "".join(chr(0x20000 + (each * 7919) % 40000) for each in range(500))
    longest = {name: clipped(incompressible[number * 50 :]) for number, name in enumerate(chosen)}
    assert all(len(each.encode()) > CLIP_BYTES - 4 for each in longest.values())
    assert len(chosen) * CLIP_BYTES + 300 < 2704, "an entry of a PostgreSQL index, and what else is in it"
    Report.objects.update(**longest)
    assert clipped(clipped(incompressible)) == clipped(incompressible)


def test_every_column_that_is_filtered_by_is_written(db: None) -> None:
    """A row that a test sets by itself would pass, though nothing ever writes the column."""
    written = {*SUMMARY_COLUMNS, *FOLLOWING_COLUMNS, *STATE_COLUMNS}
    assert set(FILTER_COLUMNS) - written <= {"subsystem", "verdict"}, "these are given with the report"


def test_each_value_that_a_filter_offers_shows_a_row(rows: None) -> None:
    """What is counted, what is offered and what is filtered by are one thing."""
    Report.objects.update(merged_release="v5.6")
    release = stamped(Release.objects.filter(version="v5.6")).get()
    offered = counts(release)
    assert sorted(COUNTED) == sorted(name for name in COUNTED if offered[name])
    for name in COUNTED:
        for each in offered[name]:
            query = QueryDict(mutable=True)
            query.update({name: each.value, "improvements": "on"})
            if name != "state":  # of several states under one word
                assert len(shown(query.urlencode())) == each.number, (name, each)
            assert shown(query.urlencode()), (name, each)
