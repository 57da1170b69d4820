"""Processes of this host: children that end with their parent, unique names, a supervisor.

A child gets SIGTERM when its parent dies, even by SIGKILL. A process's name is one that no other process has had: the
host with its boot and pid namespace, the pid and the start time. The supervisor runs several processes as one: it
starts them together, restarts one that dies, after a growing pause if it dies early, and stops them together. They are
forks of it, so that what all have imported is in memory once, and one that dies is back within milliseconds.
"""

import ctypes
import fcntl
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

# --- Children and names ---

log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_LIBC = ctypes.CDLL(None)


def start_child(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that gets SIGTERM when this one dies, even by SIGKILL. `options`: of Popen, which raises OSError.

    setpriv(1) asks for the signal, so that Python need not fork a copy of itself to do so: measured in a process of
    300 MB, 2 ms instead of 20.
    """
    prefix = _setpriv() if shutil.which(command[0]) else ()
    return subprocess.Popen([*prefix, *command], preexec_fn=None if prefix else end_with_parent, **options)


@cache
def _setpriv() -> tuple[str, ...]:
    """Return the beginning of a command line that asks for SIGTERM, or nothing where setpriv is missing or simpler."""
    prefix = ("setpriv", "--pdeathsig", "TERM", "--")
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return prefix


# Held from a pipe's making until the child has its end alone: the child of another thread would keep a copy of it, and
# nobody would see the pipe end. Of one thread's locks, a fork has its own.
FORKING = threading.RLock()


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a fork of this process, which ends with it; return its pid.

    It must use no connection to a database that was open before. multiprocessing refuses to do so in Celery's workers,
    which are daemons to it.
    """
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # else the parent's handler has it
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return pid
    code = 1
    try:
        end_with_parent()
        if os.getppid() == parent:  # it may have died before it could be noticed
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both; the parent ends this one
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            work()
            code = 0
    finally:
        os._exit(code)


def kill(pid: int) -> int:
    """Kill a forked process, wait for its end, and return its wait status: of an earlier end, if it had ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # somebody waits for all children
        return os.waitpid(pid, 0)[1]
    return 0


def end_with_parent() -> None:
    """As `preexec_fn`: let Linux send SIGTERM to this child when its parent dies, even by SIGKILL (prctl(2))."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def free_memory() -> None:
    """Give memory that is free back to Linux, as malloc_trim(3) does: a worker would keep that of its largest task."""
    with suppress(AttributeError):  # musl has none
        _LIBC.malloc_trim(0)


def own_memory() -> int:
    """Return the memory, in bytes, that this process shares with no fork; 0 where proc(5) does not say."""
    for line in _text(Path("/proc/self/smaps_rollup")).splitlines():
        if line.startswith("Private_Dirty:"):
            return 1024 * int(line.split()[1])
    return 0


def widen(pipe: int) -> None:
    """Let a pipe hold a megabyte, or what the kernel gives, so that neither end waits for the other at once."""
    with suppress(OSError, AttributeError):  # only slower; systems other than Linux have no such call
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)


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

_STABLE_AFTER = 10.0  # seconds; a process that lived longer is restarted at once
_LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Child:
    """One supervised process."""

    name: str
    work: Callable[[], None]
    pid: int = 0  # 0: it does not run
    started: float = 0.0
    deaths: int = 0
    not_before: float = 0.0


class Supervisor:
    """Keeps its children running until SIGTERM or SIGINT, then stops them within `patience` seconds.

    It sleeps until a signal arrives, SIGCHLD being one, or until a child is to start again.
    """

    def __init__(self, works: Mapping[str, Callable[[], None]], patience: float = 15.0) -> None:
        self.children = [Child(name, work) for name, work in works.items()]
        self.patience = patience
        self.ending = False

    def run(self) -> None:
        """Run until a signal arrives; return after all children have ended."""
        woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        try:
            while not self.ending:
                now = time.monotonic()
                for child in self.children:
                    self._check(child, now)
                waits = [child.not_before - now for child in self.children if not child.pid]
                select.select([woken], [], [], max(0.01, min(waits)) if waits else None)
                with suppress(BlockingIOError):
                    os.read(woken, 512)
        finally:
            self._end_all()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ending = True

    def _check(self, child: Child, now: float) -> None:
        if (code := _ended(child)) is not None:
            child.deaths = 0 if now - child.started > _STABLE_AFTER else child.deaths + 1
            wait = min(_LONGEST_WAIT, 0.5 * 2 ** min(child.deaths, 10)) if child.deaths else 0.0
            child.not_before = now + wait
            level = logging.WARNING if code else logging.INFO  # 0: it wanted to start anew
            log.log(level, "%s exited with %s; restarting in %.1f s", child.name, code, wait)
        if not child.pid and now >= child.not_before:
            child.pid = fork(partial(_run, child.name, child.work))
            child.started = now
            log.info("%s runs as process %d", child.name, child.pid)

    def _end_all(self) -> None:
        running = [child for child in self.children if child.pid and _ended(child) is None]
        for child in running:
            os.kill(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + self.patience
        for child in running:
            pid = child.pid
            while _ended(child) is None:
                if time.monotonic() > deadline:
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)  # what it has started ends, too
                time.sleep(0.02)
            log.info("%s ended", child.name)


def _run(name: str, work: Callable[[], None]) -> None:
    os.setsid()  # Ctrl-C reaches the supervisor only, and SIGKILL can be sent to what this one starts
    _LIBC.prctl(_PR_SET_NAME, f"perfwork-{name}"[:15].encode())
    try:
        work()
    except SystemExit as end:
        if isinstance(end.code, str):
            log.error("%s: %s", name, end.code)
        if end.code:
            raise
    except Exception:
        log.exception("%s", name)
        raise


def _ended(child: Child) -> int | None:
    """Return the exit code of a process that has ended, -9 for SIGKILL; None while it runs, and for none."""
    if not child.pid:
        return None
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if not pid:
        return None
    child.pid = 0
    return os.waitstatus_to_exitcode(status)
