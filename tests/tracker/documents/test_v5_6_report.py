"""The 0-Day report of v5.6, from the fixture's events to the table, compared with the published one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.conftest import ROOT
from tracker.documents.blocks import PrintedRow, PrintedTable
from tracker.models import Release
from tracker.pages.triage.table import table

# What may differ, and why. All else is equal to the letter.
TYPO = {"52262ee567": ("merged at at v5.6-rc2", "merged at v5.6-rc2")}
# Listed in both tables with contradicting statuses; ours is one report, shown in both.
TWICE = "fda31c5029"


@pytest.fixture
def v5_6_report_v5_6(v5_6_loaded: None, db: None) -> PrintedTable:
    return table(Release.objects.get(version="v5.6"))


@pytest.fixture
def v5_6_report_source(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "v5.6-report.json").read_text())  # type: ignore[no-any-return]


def test_both_sections_are_complete(v5_6_report_v5_6: PrintedTable) -> None:
    assert (len(v5_6_report_v5_6.merged), len(v5_6_report_v5_6.shift_left)) == (11, 43)


def test_every_cell_is_that_of_the_published_report(
    v5_6_report_v5_6: PrintedTable, v5_6_report_source: dict[str, Any]
) -> None:
    compare(v5_6_report_v5_6.merged, v5_6_report_source["release_test"])
    compare(v5_6_report_v5_6.shift_left, v5_6_report_source["shift_left"])


def compare(rows: tuple[PrintedRow, ...], published: list[dict[str, Any]]) -> None:
    ours = {row.sha: row for row in rows}
    assert ours.keys() == {each["short_sha"] for each in published}
    for each in published:
        row = ours[each["short_sha"]]
        expected = each["status_text"].removesuffix(".")
        wrong, right = TYPO.get(row.sha, (expected, expected))
        assert expected == wrong
        assert row.status == ("merged at v5.6-rc4" if row.sha == TWICE else right)
        assert (row.indicator, row.report, row.machine) == (each["indicator"], each["report"], each["machine"])
        assert dict(row.scenario) == each["scenario"]
        assert row.verdict == each["verdict"]
        if "base" in each:
            assert row.base == each["base"]


def test_the_fixture_is_what_its_maker_makes(v5_6_report_source: dict[str, Any], shared: Path) -> None:
    maker = [sys.executable, str(ROOT / "fixtures" / "make_v5_6.py"), str(shared / "v5.6-report.json")]
    made = subprocess.run(maker, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "fixtures" / "v5_6.json").read_text()


def test_the_fixture_can_be_loaded_twice(v5_6_report_v5_6: PrintedTable) -> None:
    call_command("loaddata", "v5_6", verbosity=0)
    call_command("refold", verbosity=0)
    assert table(Release.objects.get(version="v5.6")) == v5_6_report_v5_6


def test_the_page_takes_a_constant_number_of_queries(
    v5_6_report_v5_6: PrintedTable, client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(5):  # the release, two sections, the counts of filters, saved views
        page = client.get("/v5.6/?improvements=on").content.decode()
    assert page.count("data-row=") == 54
    assert client.get("/v5.6/").content.decode().count("data-row=") == 28
    with django_assert_num_queries(3):  # once more: nothing has changed, so nothing is counted
        client.get("/v5.6/?improvements=on&section=merged")
    with django_assert_num_queries(6):
        assert ">v5.6</a>" in client.get("/").content.decode()
    with django_assert_num_queries(13):
        client.get("/report/8019ad13ef/")


def test_a_wrong_filter_is_named(v5_6_report_v5_6: PrintedTable, client: Client) -> None:
    answer = client.get("/v5.6/?state=sleeping")
    assert answer.status_code == 400
    assert "sleeping" in answer.content.decode()
    only = client.get("/v5.6/?state=working").content.decode()
    assert only.count("data-row=") == 2


@pytest.mark.parametrize("path", ["/v9.9/", "/report/0000000000/", "/report/not-a-sha/"])
def test_what_is_not_there_is_404(v5_6_report_v5_6: PrintedTable, client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.content.decode()
