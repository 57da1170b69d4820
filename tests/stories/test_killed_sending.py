"""Workers that are killed while sending lose no mail and send none twice. `make crash-test` is the long version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def crash(*command: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


@pytest.mark.parametrize(("database", "broker"), [("sqlite", "filesystem"), ("postgresql", "redis")])
def test_killed_at_random_moments(database: str, broker: str, request: pytest.FixtureRequest) -> None:
    where = request.getfixturevalue("postgres") if database == "postgresql" else database
    broker = request.getfixturevalue(broker) if broker == "redis" else broker
    asked = ("--mails", "60", "--kills", "10", "--seed", "7", "--database", where, "--broker", broker)
    told = crash("tests.crash.run", *asked)
    assert told["kills"] >= 5  # fewer than ten where the mails ran out
    assert [told[name] for name in ("lost", "twice_unasked", "other_bytes", "unrecorded")] == [0, 0, 0, 0]


def test_three_workers_send_ten_thousand_mails_once(postgres: str) -> None:
    """Two from the beginning, a third midway; on PostgreSQL, where they claim at the same time."""
    told = crash("tests.crash.several", "--mails", "10000", "--database", postgres)
    assert told["workers"] == 3
    assert told["least"] > 100  # each had its share
    assert [told[name] for name in ("mails", "lost", "twice", "doubtful", "unrecorded")] == [10_000, 0, 0, 0, 0]


def test_killed_between_statements() -> None:
    told = crash("tests.crash.statements", "--every", "23")
    assert told["killed"] > 20
    assert told["doubtful"] >= 1  # some died between the last dot and the record
    assert [told[name] for name in ("lost", "left_to_a_person", "twice", "unrecorded")] == [0, 0, 0, 0]
