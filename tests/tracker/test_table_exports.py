"""The triage table beside its page: what programs and people read, with the page's filters."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import feedparser
import openpyxl
import pytest
import tablib
from django.test import Client

from tests.tracker.lines import line
from tracker.models import Metric, Release, Report

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
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert [row["section"] for row in rows] == ["merged", "shift_left"]
    assert (rows[0]["change"], rows[0]["change_pct"]) == ("32.5", "-32.5")
    assert (rows[1]["culprit_title"], rows[1]["status"][:2]) == ('\'=HYPERLINK("x")', "'-")
    assert rows[0]["changed_at"] == "2026-03-10T12:00:00Z"


def test_a_spreadsheet_library_finds_no_formula_in_it(table: None, client: Client) -> None:
    book = tablib.Dataset().load(client.get("/v6.12/.csv").content.decode(), format="csv").export("xlsx")
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
    assert "## Shift-left: reported from other trees (1)" in text


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
