"""The filters of the triage table: each with a value that matches, one that does not, and its negation."""

from __future__ import annotations

import base64
import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import feedparser
import openpyxl
import pytest
import tablib
from django.db.models import TextField
from django.http import QueryDict
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import NOW, line
from tracker.models import Metric, Release, Report
from tracker.models.reports import FILTER_COLUMNS
from tracker.pages.http import CursorError, Key, Order
from tracker.pages.triage.filters import ORDERS, InvalidQuery, TableFilters, TriageQuery
from tracker.pages.triage.table import COUNTED, TriageSection, counts, section, stamped
from tracker.services.report_summary import CLIP, CLIP_BYTES, FOLLOWING_COLUMNS, STATE_COLUMNS, SUMMARY_COLUMNS, clipped

# --- The filters of the triage table: each with a value that matches, one that does not, and its negation ---

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
    offered = counts(release).filters
    assert sorted(COUNTED) == sorted(name for name in COUNTED if offered[name])
    for name in COUNTED:
        for each in offered[name]:
            query = QueryDict(mutable=True)
            query.update({name: each.value, "improvements": "on"})
            if name != "state":  # of several states under one word
                assert len(shown(query.urlencode())) == each.number, (name, each)
            assert shown(query.urlencode()), (name, each)


# --- Keyset paging: all pages together are the whole table, in any order, from either end ---

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


# --- The triage table beside its page: what programs and people read, with the page's filters ---

MARCH = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def table(db: None) -> None:
    assert Release.objects.filter(version="v6.12").exists()  # of the seed
    Metric.objects.create(name="lat.us", direction="lower")
    first = {
        "subsystem": "mm",
        "metric": "lat.us",
        "change": 32.5,
        "scenario": "nr_task=16",
        "machine": "m1",
        "base": "v6.11",
    }
    line(1, merged_release="v6.12", title="mm: do <b>less</b> & <more>", changed_at=MARCH, reported_at=MARCH, **first)
    line(
        2, shift_left_release="v6.12", title='=HYPERLINK("x")', status="-1+1 \x1b[31m red", state="working", change=-4.0
    )
    line(3, merged_release="v6.13", title="another release")
    line(4, merged_release="v6.12", title="an improvement", verdict="improvement", change=50.0)


def test_json_has_the_shape_of_the_api(table: None, client: Client) -> None:
    answer = client.get("/v6.12.json").json()
    assert ([len(answer[name]) for name in ("merged", "shift_left")], answer["release"]) == ([1, 1], "v6.12")
    assert answer["merged"][0] == client.get(f"/api/v1/reports/{answer['merged'][0]['culprit']}").json()
    assert len(client.get("/v6.12/.json?improvements=on").json()["merged"]) == 2
    assert [len(client.get("/v6.12.json?state=working").json()[name]) for name in ("merged", "shift_left")] == [0, 1]


def test_csv_opens_in_a_spreadsheet_and_runs_nothing(table: None, client: Client) -> None:
    answer = client.get("/v6.12/.csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode(), newline="")))
    assert [row["section"] for row in rows] == ["merged", "shift_left"]
    assert (rows[0]["change"], rows[0]["change_pct"]) == ("32.5", "-32.5")
    assert (rows[1]["culprit_title"], rows[1]["status"][:2]) == ('\'=HYPERLINK("x")', "'-")
    assert rows[0]["changed_at"] == "2026-03-10T12:00:00Z"


def test_a_spreadsheet_library_finds_no_formula_in_it(table: None, client: Client) -> None:
    book = tablib.Dataset().load(client.get("/v6.12/.csv").getvalue().decode(), format="csv").export("xlsx")
    sheet = openpyxl.load_workbook(io.BytesIO(book)).active
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert "f" not in {cell.data_type for cell in cells}  # a formula
    assert any(cell.value == '\'=HYPERLINK("x")' for cell in cells)


def test_the_lines_for_regzbot(table: None, client: Client) -> None:
    Report.objects.filter(title="").update(fix_title="mm: do more\n#regzbot invalid: x")
    text = client.get("/v6.12/.regzbot?improvements=on").content.decode()
    commands = [each for each in text.splitlines() if each.startswith("#regzbot")]
    sha = Report.objects.get(culprit__title__startswith="mm: do").culprit.sha
    assert commands[:3] == [
        f"#regzbot introduced: {sha}",
        "#regzbot title: +32.5% lat.us: mm: do <b>less</b> & <more>",
        "#regzbot fix: mm: do more #regzbot invalid: x",
    ]
    assert len(commands) == 6  # no improvement, and no line of a stranger's
    assert client.get("/search.regzbot?q=subsystem:mm").status_code == 200


def test_text_has_78_columns(table: None, client: Client) -> None:
    line(5, merged_release="v6.12", title="a title of many words " * 12, status="a long status " * 20, change=-1.0)
    text = client.get("/v6.12/.txt").content.decode()
    assert max(map(len, text.splitlines())) <= 78
    assert "+32.5%  " in text
    assert "lat.us · nr_task=16 · m1 · v6.11" in text
    assert "\x1b" not in text
    assert "Merged in this release (2)" in text


def test_markdown_is_text(table: None, client: Client) -> None:
    text = client.get("/v6.12/.md").content.decode()
    assert "<b>" not in text.replace("\\<b\\>", "").replace("&lt;b", "")
    assert "## Reported in this cycle: other trees, people, version not known (1)" in text


def test_atom_is_read_by_a_feed_reader(table: None, client: Client) -> None:
    answer = client.get("/v6.12/.atom")
    feed = feedparser.parse(answer.content)
    assert (feed.bozo, feed.version) == (False, "atom10")
    assert [entry.title.split()[0] for entry in feed.entries] == ["+32.5%", "-4.0%"]
    assert feed.entries[0].updated == "2026-03-10T12:00:00+00:00"
    assert feed.entries[0].id == feed.entries[0].link
    assert feed.feed.link.endswith("/v6.12/")


@pytest.mark.parametrize("form", ["json", "csv", "txt", "md", "atom"])
def test_what_is_none(table: None, client: Client, form: str) -> None:
    assert client.get(f"/v9.9.{form}").status_code == 404
    assert client.get(f"/v6.12.{form}?state=sleeping").status_code == 400
    assert client.get(f"/v6.12.{form}?q=nothing-has-this-word").status_code == 200
