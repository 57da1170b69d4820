"""Workers that are killed while sending lose no mail and send none twice. `make crash-test` is the long version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

MAILS = 2_500  # 10,000 in `make crash-test`


def crash(*command: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("database", "broker"), [("sqlite", "filesystem"), ("postgresql", "redis")])
def test_killed_at_random_moments(database: str, broker: str, request: pytest.FixtureRequest) -> None:
    where = request.getfixturevalue("postgres") if database == "postgresql" else database
    broker = request.getfixturevalue(broker) if broker == "redis" else broker
    arguments = ("--mails", "60", "--kills", "10", "--seed", "7", "--database", where, "--broker", broker)
    figures = crash("tests.crash.run", *arguments)
    assert figures["kills"] >= 5  # fewer than ten where the mails ran out
    assert [figures[name] for name in ("lost", "twice_unasked", "other_bytes", "unrecorded")] == [0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.long
def test_three_workers_send_thousands_of_mails_once(postgres: str) -> None:
    """Two from the beginning, a third midway; on PostgreSQL, where they claim at the same time."""
    figures = crash("tests.crash.several", "--mails", str(MAILS), "--database", postgres)
    assert figures["workers"] == 3
    assert figures["least"] > 100  # each had its share
    assert [figures[name] for name in ("mails", "lost", "twice", "in_doubt", "unrecorded")] == [MAILS, 0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.long
def test_killed_between_statements() -> None:
    figures = crash("tests.crash.statements", "--every", "23")
    assert figures["killed"] > 20
    assert figures["in_doubt"] >= 1  # some died between the last dot and the record
    assert [figures[name] for name in ("lost", "left_to_a_person", "twice", "unrecorded")] == [0, 0, 0, 0]
