"""Leases: one worker at a time reads an archive or a tree. The lease of a worker that died on this host is freed."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from pathlib import Path

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from bot.errors import Busy
from tracker.models.base import NamedLease


def acquire(row: NamedLease, length: timedelta) -> None:
    """Take the lease of a row, or raise Busy. `length`: after which the lease expires, unless it is extended."""
    rows: QuerySet[NamedLease] = type(row)._default_manager.filter(pk=row.pk)
    before = rows.get()
    if before.lease_until and _has_died(before.holder):
        rows.filter(lease_until=before.lease_until, holder=before.holder).update(lease_until=None)
    now = timezone.now()
    free = rows.filter(Q(lease_until=None) | Q(lease_until__lt=now))
    if not free.update(lease_until=now + length, holder=_holder_name(os.getpid()), attempts=F("attempts") + 1):
        raise Busy(f"{row}: another worker is reading it; try again later (its lease expires within {length})")
    row.refresh_from_db()  # another worker may have read on meanwhile


def extend(row: NamedLease, length: timedelta) -> None:
    """Extend the lease, in the transaction that saves what was read. Raises Busy if it is lost: nothing is saved."""
    if not _own_lease(row).update(lease_until=timezone.now() + length):
        raise Busy(f"{row}: another worker took over, since this one did not extend its lease for {length}")


def release(row: NamedLease) -> None:
    """Release the lease, unless another worker has it by now."""
    _own_lease(row).update(lease_until=None, attempts=0, holder="")


def _own_lease(row: NamedLease) -> QuerySet[NamedLease]:
    return type(row)._default_manager.filter(pk=row.pk, holder=_holder_name(os.getpid()), lease_until__isnull=False)


def _holder_name(pid: int) -> str:
    """Return host, pid and start time (proc(5)) of a local process: a later one may have the same pid."""
    try:
        start_time = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        start_time = ""
    return f"{socket.gethostname()} {pid} {start_time}"


def _has_died(holder: str) -> bool:
    """Whether the process is known to have ended; False for one on another host."""
    host, _, rest = holder.partition(" ")
    pid = rest.partition(" ")[0]
    return host == socket.gethostname() and pid.isdecimal() and _holder_name(int(pid)) != holder
