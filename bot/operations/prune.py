"""Remove what nobody needs any more: raw mail that concerns nothing, files that were imported, old links and sessions.

What reports rest on is never removed: their mail, results and events. Rows go in slices, so that others are not kept
waiting.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet

from tracker.models import (
    FaultMail,
    Message,
    PasswordAttempt,
    PendingReference,
    RawMessage,
    Session,
    SignIn,
    WebhookDelivery,
)
from tracker.models.webhooks import DeliveryState
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

_AT_ONCE = 500  # rows of one transaction
_LINKS = timedelta(days=30)  # their counts limit how often somebody may ask; the longest limit is a day


@dataclass(frozen=True, slots=True)
class Retention:
    """How long to keep what nothing rests on."""

    pending: timedelta = timedelta(days=365)  # mail that waits for a report that never came
    unrelated: timedelta = timedelta(days=90)  # stored mail that concerns nothing, bounces included
    done: timedelta = timedelta(days=30)  # files of imported results, which the database holds
    rejected: timedelta = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be."""

    what: str
    number: int


def prune(drop: Path, now: datetime, keep: Retention = Retention(), *, dry_run: bool = False) -> list[Pruned]:
    """Remove what is older than `keep` says. Returns all kinds with their numbers; `dry_run` only counts."""
    remove_rows = _count if dry_run else _delete
    found = [Pruned(name, remove_rows(rows)) for name, rows in _outdated(now, keep)]
    for name, folder, age in (("imported files", "done", keep.done), ("rejected files", "refused", keep.rejected)):
        old = list(_old_entries(drop / folder, now - age))
        if not dry_run:
            _remove(old)
        found.append(Pruned(name, len(old)))
    return found


def _outdated(now: datetime, keep: Retention) -> Iterator[tuple[str, QuerySet[Model]]]:
    waits = PendingReference.objects.filter(source=OuterRef("pk"))
    filed = Message.objects.filter(source=OuterRef("pk"))
    unfiled: QuerySet[Model] = RawMessage.objects.filter(~Exists(filed), error="", erased_at=None)
    yield "pending mails", unfiled.filter(Exists(waits), received_at__lt=now - keep.pending)
    yield "unrelated mails", unfiled.filter(~Exists(waits), received_at__lt=now - keep.unrelated)
    yield "sign-in links", SignIn.objects.filter(asked_at__lt=now - _LINKS)
    yield "sessions", Session.objects.filter(expire_date__lt=now)
    yield "password attempts", PasswordAttempt.objects.filter(at__lt=now - timedelta(days=1))
    yield "mails about problems", FaultMail.objects.filter(at__lt=now - timedelta(days=90))
    done = WebhookDelivery.objects.exclude(state=DeliveryState.WAITING)
    yield "deliveries of webhooks", done.filter(created_at__lt=now - timedelta(days=30))


def _count(rows: QuerySet[Model]) -> int:
    return rows.count()


def _delete(rows: QuerySet[Model]) -> int:
    number = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE]):
        with transaction.atomic():
            locks.take(Lock.FILING)  # whatever is filed or quarantined meanwhile is needed again, …
            number += rows.filter(pk__in=keys).delete()[1].get(rows.model._meta.label, 0)  # … and left out here
    return number


def _old_entries(folder: Path, before: datetime) -> Iterator[Path]:
    """Yield files and directories that were moved there before a time; a reason goes with its file."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        if path.lstat().st_mtime < before.timestamp() and path.lstat().st_ctime < before.timestamp():
            yield path


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
