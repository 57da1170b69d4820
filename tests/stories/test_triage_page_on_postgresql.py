"""The tests of the triage, release and kernel pages again, on a real PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

AGAIN = (
    *("tests/stories/test_triage_page.py", "tests/stories/test_signing_in.py", "tests/tracker/test_paging.py"),
    *("tests/tracker/test_filters.py", "tests/tracker/test_report_actions.py", "tests/tracker/test_search.py"),
    *("tests/bot/results/test_curves.py", "tests/stories/test_measurements_over_time.py"),
    *("tests/stories/test_rights_and_floods.py", "tests/stories/test_who_may_do_what.py"),
    *(
        "tests/tracker/test_index.py",
        "tests/tracker/documents/test_release_report.py",
        "tests/stories/test_bulletins.py",
    ),
)


@pytest.mark.long
def test_the_triage_page_is_the_same_on_postgresql(postgres: str, tmp_path: Path) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**ours, "DATABASE_URL": postgres.replace("postgresql://", "postgres://", 1)}
    alone = ["-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", str(tmp_path / "again")]
    alone += ["-k", "not half_sent and not stop_reading"]  # servers with a database of their own
    command = [sys.executable, "-m", "pytest", *alone, *AGAIN]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
