"""The supervisor, in a process of its own: what dies runs again, and all ends together; and leases of threads."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from bot.git.repository import Busy
from bot.leases import acquire, extend, release
from bot.processes import has_died, own_memory, process_name
from bot.web.server import listen
from tests.conftest import ROOT
from tracker.models import ServiceLease

SUPERVISED = """
import logging, os, signal, sys, time
from pathlib import Path
from bot.processes import Supervisor
logging.basicConfig(level="INFO", format="%(message)s")
folder = Path(sys.argv[1])

def dies_once():
    if not (folder / "died").exists():
        (folder / "died").touch()
        raise ValueError("the first time")
    signal.pause()

def stubborn():
    signal.signal(signal.SIGTERM, lambda *_: None)
    child = os.fork()  # which ends with it
    (folder / "child").write_text(str(child or os.getpid()))
    while True:
        time.sleep(60)

def starts_anew():
    if not (folder / "anew").exists():
        (folder / "anew").touch()
        sys.exit(0)
    signal.pause()

Supervisor({"dies": dies_once, "stubborn": stubborn, "anew": starts_anew}, patience=1.0).run()
"""


@pytest.fixture
def supervised(tmp_path: Path) -> Callable[[str, Callable[[str], bool]], str]:
    log = tmp_path / "log"
    with log.open("wb") as out:
        command = [sys.executable, "-c", SUPERVISED, str(tmp_path)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)

    def wait(end: str, holds: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + 30
        while not holds(log.read_text()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        process.send_signal(getattr(signal, end))
        assert process.wait(20) == 0
        return log.read_text()

    return wait


@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT"])
def test_what_dies_runs_again_and_all_ends_together(
    supervised: Callable[[str, Callable[[str], bool]], str], tmp_path: Path, end: str
) -> None:
    text = supervised(end, lambda log: log.count("runs as process") == 5 and (tmp_path / "child").exists())
    assert text.count("ValueError: the first time") == 1
    assert "dies exited with 1; restarting in 1.0 s" in text
    assert "anew exited with 0; restarting in 1.0 s" in text
    for pid in (*re.findall(r"runs as process (\d+)", text), (tmp_path / "child").read_text()):
        stat = Path(f"/proc/{pid}/stat")
        assert (
            not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
        )  # nobody has asked for its end


def test_processes_have_names_that_no_other_had() -> None:
    assert not has_died(process_name(os.getpid()))
    with subprocess.Popen(["true"]) as gone:
        name = process_name(gone.pid)
    assert has_died(name)
    assert own_memory() > 1 << 20


@pytest.mark.django_db
def test_a_thread_that_lost_its_lease_to_another_one_does_not_keep_it() -> None:
    row = ServiceLease.objects.create(name="x")
    acquire(row, timedelta(seconds=-1))  # it has expired when …
    native = threading.get_native_id
    with pytest.MonkeyPatch.context() as other:
        other.setattr("bot.leases.threading.get_native_id", lambda: native() + 1)
        acquire(row, timedelta(minutes=1))  # … another thread of this process takes it
    with pytest.raises(Busy, match="another worker took over"):
        extend(row, timedelta(minutes=1))
    release(row)  # which frees nothing of the other one's
    with pytest.raises(Busy):
        acquire(row, timedelta(minutes=1))
    release(row, of_any_thread=True)
    acquire(row, timedelta(minutes=1))


def test_connections_wait_while_what_serves_them_starts_again() -> None:
    """The socket belongs to who started the web server, so that nobody is refused."""
    with listen("127.0.0.1:0") as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname(), timeout=5) as client:  # before anybody serves it
            with pytest.raises(OSError, match="in use"):
                listen(f"127.0.0.1:{listening.getsockname()[1]}")
            served, _ = listening.accept()
            with served:
                served.sendall(b"x")
                assert client.recv(1) == b"x"
