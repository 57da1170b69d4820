"""Leases: one worker at a time reads an archive or a tree.

The lease of a worker that died on this host is freed. A worker may be one of several threads of a process.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db.models import F, Q, QuerySet

from bot.git.repository import Busy
from bot.processes import has_died, process_name
from tracker.models import ServiceLease
from tracker.models.base import NamedLease
from tracker.services.database import database_now


def acquire(row: NamedLease, length: timedelta) -> None:
    """Take the lease of a row, or raise Busy. `length`: after which the lease expires, unless it is extended."""
    rows: QuerySet[NamedLease] = type(row)._default_manager.filter(pk=row.pk)
    before = rows.get()
    if before.lease_until and holder_has_died(before):
        rows.filter(lease_until=before.lease_until, holder=before.holder).update(lease_until=None)
    now = database_now()
    free = rows.filter(Q(lease_until=None) | Q(lease_until__lt=now))
    if not free.update(lease_until=now + length, holder=_holder(), attempts=F("attempts") + 1):
        raise Busy(f"{row}: another worker is reading it; try again later (its lease expires within {length})")
    row.refresh_from_db()  # another worker may have read on meanwhile


def extend(row: NamedLease, length: timedelta) -> None:
    """Extend the lease, in the transaction that saves what was read. Raises Busy if it is lost: nothing is saved."""
    if not _held(row).filter(holder=_holder()).update(lease_until=database_now() + length):
        raise Busy(f"{row}: another worker took over, since this one did not extend its lease for {length}")


def release(row: NamedLease, *, of_any_thread: bool = False) -> None:
    """Release the lease, unless another worker has it by now. `of_any_thread`: also that of another thread of ours."""
    ours = process_name(os.getpid()) + _THREAD
    held = _held(row).filter(holder__startswith=ours) if of_any_thread else _held(row).filter(holder=_holder())
    held.update(lease_until=None, attempts=0, holder="")


def holder_has_died(row: NamedLease) -> bool:
    """Whether the process that holds, or held, the lease is known to have ended; False for one on another host."""
    return has_died(row.holder.partition(_THREAD)[0])


@contextmanager
def service_lease(name: str, length: timedelta) -> Iterator[None]:
    """Hold the lease of a service that only one worker does at a time. Raises Busy if another one has it."""
    row, _ = ServiceLease.objects.get_or_create(name=name)
    acquire(row, length)
    try:
        yield
    finally:
        release(row)


_THREAD = " thread "


def _holder() -> str:
    return f"{process_name(os.getpid())}{_THREAD}{threading.get_native_id()}"


def _held(row: NamedLease) -> QuerySet[NamedLease]:
    return type(row)._default_manager.filter(pk=row.pk, lease_until__isnull=False)
