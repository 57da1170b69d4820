"""Tables as CSV: their columns, their digits, and that a long one is never held as a whole."""

from __future__ import annotations

import csv
import io
import math
import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.support.rows import line
from tracker.documents import csv_tables
from tracker.documents.csv_tables import _joined, csv_lines, digits
from tracker.models import Finding, Machine, Metric, Release, Report, Scenario
from tracker.pages import statistics

REPORTS = """\
section,culprit,culprit_title,culprit_author,author,subsystem,verdict,state,status,awaited,awaited_since,silence_days,\
metric,suite,scenario,machine,base,change,change_low,change_high,change_pct,noise_pct,landing,fix_sha,fix_title,\
fix_landing,reported_by,reporter,reported_at,responded_at,changed_at,closed_at,url\r
merged,SHA,mm: change 0,Dana Brook,dana@example.org,mm,regression,no_response,\
no response from author yet,author,2026-03-02T04:05:06Z,40,aim7.jobs-per-min,aim7,aim7 load=600,box1,v6.11,-12.3,\
-14.2,-10.5,-12.3,1.8,v6.12-rc1,,,,robot,,2026-03-02T04:05:06Z,,,,http://testserver/report/SHA/\r
"""
FINDINGS = """\
report,metric,unit,suite,scenario,machine,headline,verdict,change,change_low,change_high,change_pct,p_value,effect,\
old_mean,old_stddev_pct,old_runs,old_samples,new_mean,new_stddev_pct,new_runs,new_samples\r
SHA,aim7.jobs-per-min,jobs/min,aim7,"aim7, load=600",box1,yes,regression,-12.3,\
-14.2,-10.5,-12.3,0.00012,6.9,1000,1.8,3,990.25 1000 1011,877.2,1.1,3,870 880 881.5\r
"""
COMPARISON = """\
kernel,metric,unit,direction,suite,scenario,machine,mean,stddev,runs,verdict,change,change_low,change_high,p_value,\
samples\r
v5.5,vm-scalability.throughput,,higher,vm-scalability,"runtime=300s, size=1T, test=lru-shm",\
"Broadwell-EX, 160 CPUs, 256G",100,,1,,,,,,\r
v5.6,vm-scalability.throughput,,higher,vm-scalability,"runtime=300s, size=1T, test=lru-shm",\
"Broadwell-EX, 160 CPUs, 256G",91.32,,1,regression,-8.68,,,,\r
"""


def made() -> Report:
    """A report of v6.12 with its headline."""
    Release.objects.get_or_create(version="v6.12", defaults={"number": 60_012})
    at = datetime(2026, 3, 2, 4, 5, 6, 789, tzinfo=UTC).replace(microsecond=0)
    report = line(
        0,
        merged_release="v6.12",
        subsystem="mm",
        author="dana@example.org",
        metric="aim7.jobs-per-min",
        suite="aim7",
        scenario="aim7 load=600",
        machine="box1",
        base="v6.11",
        change=-12.3456,
        noise_pct=1.8,
        landing="v6.12-rc1",
        awaited_since=at,
        reported_at=at,
        last_human_reply_at=timezone.now() - timedelta(days=40, hours=1),
    )
    report.culprit.author_name = "Dana Brook"
    report.culprit.save()
    Finding.objects.create(
        report=report,
        headline=True,
        verdict="regression",
        metric=Metric.objects.create(name="aim7.jobs-per-min", unit="jobs/min", direction="higher"),
        scenario=Scenario.objects.create(key="aim7", suite="aim7", params={"load": "600"}),
        machine=Machine.objects.create(name="box1"),
        change_pct=-12.3456,
        change_pct_raw=-12.3456,
        low_pct=-14.2,
        high_pct=-10.51,
        p_value=0.00012,
        effect=6.859,
        old_mean=1000.4166,
        old_stddev_pct=1.8,
        old_runs=3,
        old_samples=[990.25, 1000, 1011],
        new_mean=877.1666,
        new_stddev_pct=1.1,
        new_runs=3,
        new_samples=[870, 880, 881.5],
    )
    return report


def sent(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return answer.getvalue().decode()  # type: ignore[no-any-return]


def test_the_reports_of_a_release(db: None, client: Client) -> None:
    sha = made().culprit.sha
    assert sent(client, "/v6.12/.csv") == REPORTS.replace("SHA", sha)


def test_the_findings_of_a_report_and_of_a_release(db: None, client: Client) -> None:
    sha = made().culprit.sha
    golden = FINDINGS.replace("SHA", sha)
    assert sent(client, f"/report/{sha}.csv") == golden
    assert sent(client, "/v6.12/findings.csv") == golden
    assert client.get("/v9.9/findings.csv").status_code == 404


def test_kernels_side_by_side(v5_6_loaded: None, db: None, client: Client) -> None:
    text = sent(client, "/compare.csv?of=v5.5&of=v5.6")
    assert text.startswith(COMPARISON)
    assert len(text.splitlines()) == 1 + 2 * 20
    assert client.get("/compare.csv").status_code == 400


def test_the_index_and_the_parts_of_a_point(v5_6_loaded: None, db: None, client: Client) -> None:
    first, second = list(csv.DictReader(io.StringIO(sent(client, "/index.csv"))))
    assert (first["kernel"], first["index"], first["left_out"]) == ("v5.5", "100", "")
    assert (second["kernel"], second["index"], second["benchmarks"]) == ("v5.6", "107.911", second["basket"])
    parts = list(csv.DictReader(io.StringIO(sent(client, "/index/v5.6.csv"))))
    assert sum(float(part["points"]) for part in parts) == pytest.approx(float(second["index"]) - 100, abs=0.1)
    assert client.get("/index/v9.9.csv").status_code == 404


@given(st.floats(), st.none() | st.floats())
def test_a_number_has_two_of_the_digits_in_doubt(value: float, error: float | None) -> None:
    number = digits(value, error)
    if not math.isfinite(value):
        assert number is None
        return
    assert isinstance(number, Decimal)
    assert not str(number).startswith("-0") or number
    if error is not None and 1e-13 < error < math.inf and abs(value) < 1e15:
        assert abs(float(number) - value) <= max(error / 10, abs(value) * 1e-14)
        assert len(number.as_tuple().digits) <= 16 or "E" in str(number), "no digits that a float has not"
        decimals = -int(number.as_tuple().exponent)
        assert decimals <= max(0, 2 - math.floor(math.log10(error)))  # no more than two of them, and a rounding
    else:
        assert abs(float(number) - value) <= abs(value) * 5.1e-6 or abs(value) < 1e-300


def test_numbers_of_ours_are_no_formulas_and_words_of_others_may_be() -> None:
    columns = {"samples": lambda _: _joined([-1.5, 2]), "words": lambda _: "-1"}
    assert b"".join(csv_lines(columns, [0])) == b"samples,words\r\n-1.5 2,'-1\r\n"


def test_a_hundred_thousand_rows_take_the_memory_of_some_hundred() -> None:
    columns = {"name": lambda row: f"row {row}", "value": lambda row: row / 3}
    tracemalloc.start()
    size = sum(map(len, csv_lines(columns, iter(range(100_000)))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 1_500_000
    assert peak < 1_000_000


TABLES = {
    "reports": csv_tables.REPORTS,
    "findings": csv_tables.FINDINGS,
    "curves": csv_tables.BUILDS,
    "comparisons": csv_tables.COMPARISON,
    "index": csv_tables.INDEX,
    "a point": csv_tables.CONTRIBUTIONS,
    "statistics": statistics.CSV,
}


def test_every_column_of_every_table_is_explained() -> None:
    explained: set[tuple[str, str]] = set()
    of_csv = (ROOT / "docs" / "api.md").read_text().partition("### CSV")[2]
    for columns, of in re.findall(r"^\| (`.*?`) \| ([^|]*?) \| ", of_csv, re.M):
        for table in of.split(", "):
            explained |= {(table, name) for name in re.findall(r"`(\w+)`", columns)}
    missing = [(table, name) for table, columns in TABLES.items() for name in columns if (table, name) not in explained]
    assert missing == []
    wrong = [(table, name) for table, name in explained if table in TABLES and name not in TABLES[table]]
    assert wrong == []
