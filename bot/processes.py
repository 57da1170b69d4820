"""Processes of this host: children that end with their parent, unique names, a supervisor.

A child gets SIGTERM when its parent dies, even by SIGKILL. A process's name is one that no other process has had: the
host with its boot and pid namespace, the pid and the start time. The supervisor runs several processes as one: it
starts them together, restarts one that dies, after a growing pause if it dies early, and stops them together.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO

# --- Children and names ---

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

_Stream = int | IO[bytes] | None


def start_child(
    command: Sequence[str],
    *,
    stdin: _Stream = None,
    stdout: _Stream = None,
    stderr: _Stream = None,
    env: Mapping[str, str] | None = None,
    bufsize: int = -1,
    new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process that gets SIGTERM when this one dies, even by SIGKILL. Raises OSError as Popen does.

    setpriv(1) asks for the signal, so that Python need not fork a copy of itself to do so: measured in a process of
    300 MB, 2 ms instead of 20.
    """
    prefix = _setpriv() if shutil.which(command[0]) else ()
    return subprocess.Popen(
        [*prefix, *command],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        bufsize=bufsize,
        start_new_session=new_session,
        preexec_fn=None if prefix else end_with_parent,
    )


@cache
def _setpriv() -> tuple[str, ...]:
    """Return the beginning of a command line that asks for SIGTERM, or nothing where setpriv is missing or simpler."""
    prefix = ("setpriv", "--pdeathsig", "TERM", "--")
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return prefix


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a fork of this process, which ends with it; return its pid. It must use no database.

    multiprocessing refuses to do so in Celery's workers, which are daemons to it.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        end_with_parent()
        if os.getppid() == parent:  # it may have died before it could be noticed
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the parent ends this one
            work()
            code = 0
    finally:
        os._exit(code)


def kill(pid: int) -> None:
    """Kill a forked process, and wait for its end."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # somebody waits for all children
        os.waitpid(pid, 0)


def end_with_parent() -> None:
    """As `preexec_fn`: let Linux send SIGTERM to this child when its parent dies, even by SIGKILL (prctl(2))."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def process_name(pid: int) -> str:
    """Return host, pid and start time (proc(5)) of a process of this host: a later one may have the same pid.

    The host is named by its boot and its pid namespace: containers may share a hostname, and a hostname may return.
    """
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return f"{_host()} {pid} {fields[19] if len(fields) > 19 else ''}"


def has_died(name: str) -> bool:
    """Whether a process is known to have ended; False for one on another host."""
    host, _, pid = name.rpartition(" ")[0].rpartition(" ")
    return host == _host() and pid.isdecimal() and process_name(int(pid)) != name


def _host() -> str:
    """Return the hostname for people to read, the id of this boot (random(4)) and the pid namespace (namespaces(7))."""
    boot = _text(Path("/proc/sys/kernel/random/boot_id"))
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {boot} {namespace}"


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


# --- The supervisor ---

log = logging.getLogger(__name__)
_STABLE_AFTER = 10.0  # seconds; a process that lived longer is restarted at once
_LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Child:
    """One supervised process."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    not_before: float = 0.0


class Supervisor:
    """Keeps its children running until SIGTERM or SIGINT, then stops them within `patience` seconds."""

    def __init__(self, commands: Mapping[str, Sequence[str]], patience: float = 15.0) -> None:
        self.children = [Child(name, command) for name, command in commands.items()]
        self.patience = patience
        self.ending = False

    def run(self) -> None:
        """Run until a signal arrives; return after all children have ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        try:
            while not self.ending:
                for child in self.children:
                    self._check(child)
                time.sleep(0.2)
        finally:
            self._end_all()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ending = True

    def _check(self, child: Child) -> None:
        now = time.monotonic()
        if child.process and child.process.poll() is not None:
            code = child.process.returncode
            child.process = None
            child.deaths = 0 if now - child.started > _STABLE_AFTER else child.deaths + 1
            wait = min(_LONGEST_WAIT, 0.5 * 2 ** min(child.deaths, 10)) if child.deaths else 0.0
            child.not_before = now + wait
            log.warning("%s exited with %s; restarting in %.1f s", child.name, code, wait)
        if child.process is None and now >= child.not_before:
            child.process = start_child(child.command, new_session=True)
            child.started = now
            log.info("%s runs as process %d", child.name, child.process.pid)

    def _end_all(self) -> None:
        running = [child for child in self.children if child.process and child.process.poll() is None]
        for child in running:
            self._signal(child, signal.SIGTERM)
        deadline = time.monotonic() + self.patience
        for child in running:
            assert child.process
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._signal(child, signal.SIGKILL)
                child.process.wait()
            log.info("%s ended", child.name)

    def _signal(self, child: Child, number: signal.Signals) -> None:
        """Signal the process; SIGKILL goes to its whole process group."""
        assert child.process
        with suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(child.process.pid, number)
            else:
                child.process.send_signal(number)
