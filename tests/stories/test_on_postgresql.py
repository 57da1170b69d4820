"""The tests of pages, search and curves again, on a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

AGAIN = (
    "tests/stories/test_triage_page.py",
    "tests/stories/test_shared_pages.py",
    "tests/stories/test_accounts.py",
    "tests/stories/test_measurements.py",
    "tests/stories/test_rights.py",
    "tests/stories/test_subscriptions.py",
    "tests/tracker/pages/test_triage.py",
    "tests/tracker/pages/test_search.py",
    "tests/tracker/pages/test_index.py",
    "tests/tracker/services/test_report_actions.py",
    "tests/tracker/documents/test_release_report.py",
    "tests/bot/results/test_curves.py",
)


@pytest.mark.long
def test_pages_are_the_same_on_postgresql(postgres: str, tmp_path: Path) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**ours, "DATABASE_URL": postgres.replace("postgresql://", "postgres://", 1)}
    alone = ["-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", str(tmp_path / "again")]
    alone += ["-k", "not half_sent and not stop_reading"]  # servers with a database of their own
    command = [sys.executable, "-m", "pytest", *alone, *AGAIN]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
