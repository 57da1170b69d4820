"""How the installation stands, from the database and the disk, in a constant number of queries."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from celery import current_app
from django.conf import settings
from django.db.models import Q

from tracker.domain.faults import Fault, Followed, Run, Snapshot
from tracker.domain.faults import faults as faults_of
from tracker.models import (
    Archive,
    MailTransition,
    Mirror,
    OutgoingMail,
    OutgoingState,
    Purpose,
    RawMessage,
    SendingStop,
    ServiceLease,
    TaskRun,
    Tree,
)

MOST = 100  # of each kind


def faults(now: datetime) -> list[Fault]:
    """Return all that does not work now."""
    return faults_of(snapshot(now))


def snapshot(now: datetime) -> Snapshot:
    """Return how the installation stands."""
    disk = shutil.disk_usage(settings.VAR)
    lease = ServiceLease.objects.filter(name="scheduler").first()
    return Snapshot(
        now=now,
        scheduler_until=lease.lease_until if lease else None,
        runs=_runs(),
        disk_free=disk.free,
        disk_total=disk.total,
        sending=_sends(),
        oldest_due=_oldest_due(now),
        in_doubt=OutgoingMail.objects.filter(state=OutgoingState.IN_DOUBT)[: MOST * 10].count(),
        quarantined=RawMessage.objects.exclude(error="")[: MOST * 10].count(),
        rejected=_files(settings.PERFWORK_DROP / "refused"),
        archives=_archives(),
        trees=_trees(),
    )


def _runs() -> Sequence[Run]:
    """Return the last run of each periodic task."""
    known = {run.task: run for run in TaskRun.objects.all()}
    found = []
    for entry in current_app.conf.beat_schedule.values():
        run = known.get(entry["task"])
        period = timedelta(seconds=float(entry["schedule"]))
        found.append(Run(entry["task"], run.at if run else None, run.error if run else "", period))
    return found


def _sends() -> bool:
    wanted = settings.PERFWORK_SENDING and bool(settings.EMAIL_URL)
    return wanted and not SendingStop.objects.filter(ended_at=None).exists()


def _oldest_due(now: datetime) -> datetime | None:
    """Return when the oldest mail that could be sent was approved. Further mails of a report wait for their report's,
    and a mail with a later turn waits for the rate limits: both are meant to.
    """
    first = Q(purpose=Purpose.REPORT) | Q(purpose__startswith=Purpose.ANSWER)
    turn = Q(turn_at=None) | Q(turn_at__lte=now)
    oldest = OutgoingMail.objects.filter(first, turn, state=OutgoingState.APPROVED, stale=False).order_by("pk")[:MOST]
    approvals = MailTransition.objects.filter(mail__in=list(oldest.values_list("pk", flat=True)))
    approvals = approvals.filter(became=OutgoingState.APPROVED).exclude(was=OutgoingState.SENDING)
    return approvals.order_by("at").values_list("at", flat=True).first()


def _files(folder: Path) -> int:
    """Return the number of rejected files, without the reasons beside them."""
    try:
        return sum(not each.name.endswith(".reason") for each in folder.iterdir())
    except OSError:
        return 0


def _archives() -> Sequence[Followed]:
    """Return what is configured, and what was read by hand and failed."""
    mirrors = Mirror.objects.order_by("path")[:MOST]
    epochs = Archive.objects.exclude(error="").order_by("path")[:MOST]
    return [
        *(Followed(each.path, each.tried_at, each.error, each.failing_since) for each in mirrors),
        *(Followed(each.path, None, each.error) for each in epochs),
    ]


def _trees() -> Sequence[Followed]:
    trees = Tree.objects.exclude(path="").defer("cursor").order_by("name")[:MOST]
    return [Followed(each.name, each.walked_at, each.error) for each in trees]
