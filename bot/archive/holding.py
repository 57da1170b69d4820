"""Who reads an archive: a lease in its row, that a worker which died on this machine does not keep from others."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from bot.errors import Busy
from tracker.models import Archive, lease


def hold(archive: Archive, length: timedelta) -> None:
    """Take the archive, or raise Busy. `length`: how long a worker that gives no sign of life keeps others away."""
    rows = Archive.objects.all()
    before = Archive.objects.get(pk=archive.pk)
    if before.lease_until and _has_died(before.holder):
        rows.filter(pk=archive.pk, lease_until=before.lease_until).update(lease_until=None)
    if not lease.claim(rows, archive.pk, timezone.now(), length):
        raise Busy(
            f"{archive.path}: another worker is reading it; try again when it is done, or {length} after it died"
        )
    rows.filter(pk=archive.pk).update(holder=_name(os.getpid()))
    archive.refresh_from_db()  # it may have been read to another place meanwhile


def hold_on(archive: Archive, length: timedelta) -> None:
    """Hold it longer, in the transaction of what was read: whoever has lost it raises Busy, and saves nothing."""
    until = timezone.now() + length
    if not archive.lease_until or not lease.extend(Archive.objects.all(), archive.pk, archive.lease_until, until):
        raise Busy(f"{archive.path}: another worker took over, since this one gave no sign of life for {length}")
    archive.lease_until = until


def let_go(archive: Archive) -> None:
    """Give it back, unless somebody else has it by now."""
    lease.release(Archive.objects.filter(lease_until=archive.lease_until), archive.pk)


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
