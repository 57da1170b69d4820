"""Composed reports can be parsed again, by our and by common tools, without losing a number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.compose import report_data
from bot.compose.conventions import Conventions, SubjectForm
from bot.compose.mail import to_bytes
from bot.compose.report_data import FindingData, ReportData
from bot.compose.report_mail import compose
from bot.explain import explain
from bot.robot_reports.fields import read_subject
from tests.conftest import NOW
from tests.report_data import BOT, FINDING, REPORT, SLOWER
from tracker.domain.events import Grade, Verdict
from tracker.domain.statistics import change_pct, verdict_of


def explained(report: ReportData, conventions: Conventions = Conventions()) -> dict[str, Any]:  # noqa: B008
    (line,) = explain([to_bytes(compose(report, BOT, NOW, "", conventions))], BOT, rows=True)
    return dict(line)


def test_our_own_mail_is_read_like_a_robots() -> None:
    line = explained(REPORT)
    report = line["report"]
    assert (line["kind"], line["report_ids"], line["problems"]) == ("self", [REPORT.sha], [])
    assert report["culprit"] == REPORT.sha
    assert report["culprit_title"] == REPORT.title
    assert (report["metric"], report["verdict"], report["change_pct"]) == ("vm-scan.ops_per_sec", "regression", -12.4)
    assert (report["subsystem"], report["suite"], report["tbox_group"]) == ("mm/vmscan", "vm-scan", "lab7-m1")
    assert (report["repo_url"], report["repo_branch"]) == ("https://git.example.org/linux.git", "master")
    assert report["parameters"] == dict(FINDING.params)
    assert report["parent"] == REPORT.parent_sha[:16]
    assert (report["old"], report["new"]) == (
        {"mean": 184200.0, "stddev_pct": 3.0},
        {"mean": 161290.0, "stddev_pct": None},
    )
    assert report["config"] == "perf-9"
    assert report["compiler"] == "gcc-14"
    assert report["machine"] == FINDING.machine_text
    assert report["closes"].endswith("/r/202611211200.7d3e91c0-perfbot@bot.example.org")
    assert report["reported_by"] == "Perfwork <perfbot+7d3e91c0a45b28f6@bot.example.org>"
    assert report["preamble"] is None


def test_parameters_as_labs_name_them() -> None:
    odd = {"disk:nr_pmem": "1", "filesize": "1G/32t", "test": "a/b", "cpufreq governor": "x: y"}
    line = explained(replace(REPORT, findings=(replace(FINDING, params=odd),)))
    assert line["report"]["parameters"] == odd
    assert line["report"]["axes"]["filesize"] == "1G/32t"
    assert line["problems"] == []


def test_with_the_tree_in_front_tree_and_branch_are_read_too() -> None:
    report = explained(REPORT, Conventions(subject=SubjectForm.TREE))["report"]
    assert (report["tree"], report["branch"], report["subsystem"]) == ("linus", "master", "mm/vmscan")


def test_what_else_moved_is_read_from_the_box() -> None:
    elsewhere = replace(
        FINDING, suite="fsmark", metric="fsmark.files_per_sec", params={"fs": "xfs", "disk": "1SSD"}, change_pct=-31.0
    )
    report = explained(replace(REPORT, findings=(FINDING, elsewhere, replace(SLOWER, machine="lab7-m2"))))["report"]
    assert [
        (each["testcase"], each["metric"], each["verdict"], each["change_pct"]) for each in report["additional"]
    ] == [
        ("fsmark", "fsmark.files_per_sec", "regression", -31.0),
        ("vm-scan", "vm-scan.p99_ms", "regression", -22.0),
    ]
    assert report["additional"][0]["parameters"] == {"disk": "1SSD", "fs": "xfs"}
    assert report["additional"][1]["tbox_group"] == "lab7-m2"
    assert report["n_tables"] == 3


# --- generated findings ---

MEANS = st.one_of(
    st.floats(1e-8, 1e15), st.floats(-1e12, -1e-6), st.integers(1, 10**9).map(float), st.sampled_from([1.0, 999.995])
)
SPREADS = st.one_of(st.none(), st.floats(0, 300))
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,12}", fullmatch=True)
METRICS = st.builds(lambda a, b: f"{a}.{b}", NAMES, st.from_regex(r"[A-Za-z][\w./:-]{0,30}", fullmatch=True))
PARAMS = st.dictionaries(NAMES, st.from_regex(r"[A-Za-z0-9%._-]{1,12}", fullmatch=True), max_size=4)


@st.composite
def findings(draw: st.DrawFn) -> FindingData:
    old, new = draw(MEANS), draw(MEANS)
    direction = draw(st.sampled_from(["higher", "lower"]))
    grade = Grade(verdict_of(old, new, direction).value)
    return replace(
        FINDING,
        metric=draw(METRICS),
        direction=direction,
        verdict=grade,
        change_pct=change_pct(old, new),
        old_mean=old,
        new_mean=new,
        old_stddev_pct=draw(SPREADS),
        new_stddev_pct=draw(SPREADS),
        params=draw(PARAMS),
        machine=draw(st.sampled_from(["lab7-m1", "lab7-m2"])),
        suite=draw(st.sampled_from(["vm-scan", "fsmark"])),
        p_value=draw(st.one_of(st.none(), st.floats(0, 1))),
    )


def close(read: float | None, expected: float) -> bool:
    """To the five digits that are printed."""
    return read is not None and math.isclose(read, expected, rel_tol=1e-4)


def spread_is(read: float | None, expected: float | None) -> bool:
    return (
        read is None
        if expected is None or expected < 2
        else read is not None and abs(read - expected) <= 0.5 + expected * 0.05
    )


@pytest.mark.slow
@given(measured=st.lists(findings(), min_size=1, max_size=8, unique_by=lambda each: (each.metric, each.table_key)))
def test_every_number_that_went_in_comes_out(measured: list[FindingData]) -> None:
    head = measured[0]
    verdict = verdict_of(head.old_mean, head.new_mean, head.direction)
    assume(verdict is not Verdict.UNKNOWN and head.change_pct is not None and abs(head.change_pct) < 1e9)
    report = explained(replace(REPORT, findings=tuple(measured), verdict=verdict))["report"]
    assert report is not None
    assert (report["metric"], report["verdict"], report["suite"]) == (head.metric, verdict.value, head.suite)
    assert head.change_pct is not None
    assert abs(abs(report["change_pct"]) - abs(head.change_pct)) <= 0.05 + abs(head.change_pct) * 1e-6
    assert close(report["old"]["mean"], head.old_mean)
    assert close(report["new"]["mean"], head.new_mean)
    assert report["parameters"] == dict(head.params)
    rows = {
        (table["axes"]["testcase"], table["axes"]["tbox_group"], row["metric"]): row
        for table in report["tables"]
        for row in table["rows"]
    }
    assert sum(len(table["rows"]) for table in report["tables"]) == len(measured)
    for each in measured:
        if sum((each.suite, each.machine, each.metric) == (o.suite, o.machine, o.metric) for o in measured) > 1:
            continue  # told apart by their parameters alone
        row = rows[each.suite, each.machine, each.metric]
        assert close(row["old"], each.old_mean)
        assert close(row["new"], each.new_mean)
        assert spread_is(row["old_stddev_pct"], each.old_stddev_pct)
        assert spread_is(row["new_stddev_pct"], each.new_stddev_pct)
        assert row["change_text"] == report_data.moved(each)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_a_value_keeps_its_five_digits_in_its_column(number: float) -> None:
    text = report_data.value(number)
    assert math.isclose(float(text), number, rel_tol=6e-5, abs_tol=1e-300)
    assert len(text.lstrip("-")) <= 10 or abs(number) >= 1e99 or abs(number) < 1e-99


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.00"),
        (184200.0, "184200"),
        (161290.33, "161290"),
        (1000.0, "1000"),
        (1234.567, "1234.6"),
        (3.0975, "3.0975"),
        (3.1, "3.10"),
        (97.5, "97.50"),
        (0.01234, "0.01234"),
        (0.00012, "1.2000e-04"),
        (-12.5, "-12.50"),
        (1.5e12, "1.5000e+12"),
    ],
)
def test_values_as_the_lists_write_them(number: float, text: str) -> None:
    assert report_data.value(number) == text


@pytest.mark.parametrize("form", SubjectForm)
def test_a_reader_finds_the_subject_where_it_expects_it(form: SubjectForm) -> None:
    subject = read_subject(compose(REPORT, BOT, NOW, "", Conventions(subject=form)).subject)
    assert (subject.sha, subject.verdict, subject.subsystem) == (REPORT.sha[:10], "regression", "mm/vmscan")
    assert subject.percent.lstrip("-") == "12.4"
