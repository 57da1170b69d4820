"""Who reads an archive or a tree: a lease in its row, that a worker which died here does not keep from others."""

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
    """Take the row, or raise Busy. `length`: how long a worker that gives no sign of life keeps others away."""
    rows: QuerySet[NamedLease] = type(row)._default_manager.filter(pk=row.pk)
    before = rows.get()
    if before.lease_until and _has_died(before.holder):
        rows.filter(lease_until=before.lease_until, holder=before.holder).update(lease_until=None)
    now = timezone.now()
    free = rows.filter(Q(lease_until=None) | Q(lease_until__lt=now))
    if not free.update(lease_until=now + length, holder=_name(os.getpid()), attempts=F("attempts") + 1):
        raise Busy(f"{row}: another worker reads it; try again when it is done, or {length} after it died")
    row.refresh_from_db()  # it may have been read to another place meanwhile


def extend(row: NamedLease, length: timedelta) -> None:
    """Hold it longer, in the transaction of what was read: whoever has lost it raises Busy, and saves nothing."""
    if not _mine(row).update(lease_until=timezone.now() + length):
        raise Busy(f"{row}: another worker took over, since this one gave no sign of life for {length}")


def release(row: NamedLease) -> None:
    """Give it back, unless somebody else has it by now."""
    _mine(row).update(lease_until=None, attempts=0, holder="")


def _mine(row: NamedLease) -> QuerySet[NamedLease]:
    return type(row)._default_manager.filter(pk=row.pk, holder=_name(os.getpid()), lease_until__isnull=False)


def _name(pid: int) -> str:
    """A process of this machine, told from a later one of the same number by when it began (proc(5))."""
    try:
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = ""
    return f"{socket.gethostname()} {pid} {began}"


def _has_died(holder: str) -> bool:
    """Whether a process is known not to be there any more; of another machine nothing is known."""
    host, _, rest = holder.partition(" ")
    pid = rest.partition(" ")[0]
    return host == socket.gethostname() and pid.isdecimal() and _name(int(pid)) != holder
