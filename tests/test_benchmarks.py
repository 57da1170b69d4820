"""The benchmarks whose data is made row by row still run: a table that changed stops them without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "last"),
    [
        pytest.param(("search.py", "60", "100"), "search, common words", marks=pytest.mark.long),
        (("comparisons.py", "10"), "the index, known"),
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
