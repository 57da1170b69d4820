"""Child processes that end with their parent, and names of processes that no other one has had."""

from __future__ import annotations

import ctypes
import signal
import socket
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def end_with_parent() -> None:
    """As `preexec_fn`: let Linux send SIGTERM to this child when its parent dies, even by SIGKILL (prctl(2))."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def process_name(pid: int) -> str:
    """Return host, pid and start time (proc(5)) of a process of this host: a later one may have the same pid.

    The host is named by its boot and its pid namespace: containers may share a hostname, and a hostname may return.
    """
    return f"{_host()} {pid} {_start_time(pid)}"


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


def _start_time(pid: int) -> str:
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
