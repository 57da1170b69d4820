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
        interval=timedelta(seconds=settings.PERFWORK_FETCH_EVERY),
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
    """Return since when the mail that waits longest could have been sent.

    Further mails of a report wait for their report's, and a mail with a later turn or day waits for the rates or the
    daily limits: all of these are meant to. A mail that was tried and put off is not.
    """
    first = Q(purpose=Purpose.REPORT) | Q(purpose__startswith=Purpose.ANSWER)
    turn = Q(turn_at=None) | Q(turn_at__lte=now)
    tried = Q(tries__gt=0) | Q(connection_attempts__gt=0)
    due = tried | Q(not_before=None) | Q(not_before__lte=now)
    waiting = OutgoingMail.objects.filter(first, turn, due, state=OutgoingState.APPROVED, stale=False)
    mails = list(waiting.only("turn_at", "not_before", "tries", "connection_attempts").order_by("pk")[:MOST])
    states = (OutgoingState.APPROVED, OutgoingState.SENDING)
    moves = MailTransition.objects.filter(mail__in=mails, became__in=states).order_by("at", "pk")
    history: dict[int, list[MailTransition]] = {mail.pk: [] for mail in mails}
    for move in moves.only("mail_id", "was", "became", "at"):
        history[move.mail_id].append(move)
    return min((since for mail in mails if (since := _due_since(mail, history[mail.pk]))), default=None)


def _due_since(mail: OutgoingMail, moves: Sequence[MailTransition]) -> datetime | None:
    """Return since when an approved mail could have been sent: its first attempt, or its approval, day and turn."""
    approved, sending = OutgoingState.APPROVED, OutgoingState.SENDING
    approvals = [move.at for move in moves if move.became == approved and move.was != sending]
    if not approvals:
        return None
    attempts = [move.at for move in moves if move.became == sending and move.at >= approvals[-1]]
    if attempts and (mail.tries or mail.connection_attempts):
        return attempts[0]
    return max(at for at in (approvals[-1], mail.turn_at, mail.not_before) if at)


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
    """Return those that are configured: a tree that no longer is keeps its row, which reports refer to."""
    trees = Tree.objects.filter(name__in=settings.PERFWORK_TREES).exclude(path="").defer("cursor").order_by("name")
    return [Followed(each.name, each.looked_at, each.error) for each in trees[:MOST]]
