"""A machine is cut off in the middle of a transaction: PostgreSQL frees its locks, and the others go on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT, clean_environment

PERIOD = 5  # seconds, the shortest time after which PostgreSQL ends an idle transaction
HOLD = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
django.setup()
from django.db import DatabaseError, transaction
from tracker.services import database as locks
from tracker.services.database import is_interruption
from tracker.unavailable import reason_of
try:
    with transaction.atomic():
        locks.take(locks.Lock.CURVES)
        print("holds it", flush=True)
        sys.stdin.read()
        locks.take(locks.Lock.FILING)
except DatabaseError as error:
    assert is_interruption(error)
    print("lost it:", reason_of(error), flush=True)
"""


def start(url: str) -> subprocess.Popen[str]:
    """Start a process that takes a lock and holds it until its input ends."""
    clean = clean_environment()
    env = {**clean, "DATABASE_URL": url, "PERFWORK_PERIOD": str(PERIOD)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True)


@pytest.mark.slow
def test_its_locks_are_free_again_and_it_notices(postgres: str) -> None:
    vanished = start(postgres)
    try:
        assert vanished.stdout
        assert vanished.stdout.readline() == "holds it\n"
        vanished.send_signal(signal.SIGSTOP)  # says nothing more, and its connection stays: as if cut off
        began = time.monotonic()
        other = start(postgres)
        try:
            said = other.communicate("", timeout=20)[0]
        except subprocess.TimeoutExpired:
            pytest.fail("the lock was not freed")
        finally:
            other.kill()
        waited = time.monotonic() - began
        vanished.send_signal(signal.SIGCONT)
        late = vanished.communicate("", timeout=20)[0]
    finally:
        vanished.kill()
        vanished.wait()
    assert said == "holds it\n"
    assert waited > 0.8 * PERIOD, "the lock was free before, so this proves nothing"
    assert late == "lost it: the database can't be reached\n"
