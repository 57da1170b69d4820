"""Benchmarks whose data is made row by row still run, and what falls short of a goal is said first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.proof import BEFORE, PAGE, SILENT, dates, rows, shortfalls, worse
from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "last"),
    [
        pytest.param(("search.py", "60", "100"), "search, common words", marks=pytest.mark.long),
        pytest.param(("comparisons.py", "10"), "the index, known", marks=pytest.mark.long),
    ],
)
def test_a_benchmark_runs_at_its_smallest(command: tuple[str, ...], last: str) -> None:
    script, *sizes = command
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *sizes],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert last in run.stdout.splitlines()[-1]


NOW = """\
### Replies

| what | right | share | judged by | unseen |
| --- | --- | --- | --- | --- |
| suggestions, all sets | 70 of 100 | 70.0% (60% to 78%) | readers | yes |
| the same, right or too thin | 9 of 10 | 90.0% (60% to 98%) | readers | yes |
| the same, right or too thin | 5 of 10 | 50.0% (24% to 76%) | readers | yes |

### Speed

| what | measured | budget | the yardstick beside it | over? |
| --- | --- | --- | --- | --- |
| mails a second | 1,300 | 300 or more | 2.0 × smtplib alone |  |
| rows a second | 900 | 1,000 or more |  | OVER |
| a page | 21 ms (19 to 30) | 40 or less |  |  |

| fault | heals |
| --- | --- |
| a table without figures | 3 s |
"""


def test_what_falls_short_is_named_with_its_goal() -> None:
    assert [(row.what, goal) for row, goal in shortfalls([*rows(NOW)])] == [
        ("suggestions, all sets", "75% or more"),
        ("rows a second", "1,000 or more"),
    ]


@pytest.mark.parametrize(
    ("was", "is_now", "found"),
    [
        ("50.0% (24% to 76%)", "44.0% (20% to 70%)", ["the same, right or too thin"]),  # the second of that name
        ("50.0% (24% to 76%)", "49.0% (23% to 75%)", []),
        ("21 ms (19 to 30)", "24 ms", ["a page"]),
        ("21 ms (19 to 30)", "20 ms", []),
        ("| 900 |", "| 700 |", ["rows a second"]),  # more is better
        ("| 900 |", "| 1,100 |", []),
        ("2.0 × smtplib", "2.3 × smtplib", ["mails a second"]),  # by its ratio, though as many a second
        ("1,300 |", "200 |", []),
    ],
)
def test_what_got_worse_is_named(was: str, is_now: str, found: list[str]) -> None:
    before = {row.key: row for row in rows(NOW)}
    assert [row.what for row, _ in worse([*rows(NOW.replace(was, is_now))], before)] == found


def test_the_page_says_of_when_and_what_its_figures_are() -> None:
    page = "\nCounted on 2026-11-28 at 3a9c93d6 with changes.\n\nMeasured on 2026-11-27 at 78ae734.\n"
    assert dates(page) == "Accuracy: 2026-11-28 at 3a9c93d6 with changes. Benchmarks: 2026-11-27 at 78ae734."
    page += "\nMeasured on 2026-11-25 at 9bc0de1 with changes.\n"
    assert dates(page).endswith("Benchmarks: 2026-11-25 at 9bc0de1 with changes to 2026-11-27 at 78ae734.")
    assert dates("") == "Accuracy: never. Benchmarks: never."


def test_no_row_of_this_page_is_without_words() -> None:
    """Nor of the figures of 1.1, which it is compared with."""
    text = PAGE.read_text(encoding="utf-8")
    assert SILENT not in text
    assert {row.section for row in rows(BEFORE.read_text(encoding="utf-8"))} <= {row.section for row in rows(text)}
