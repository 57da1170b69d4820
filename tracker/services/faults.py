"""What does not work or stalls in the installation, and what to do about it.

`snapshot` says how the installation stands, from the database and the disk, in a constant number of queries.
`list_faults` is a function of a snapshot: each fault says what fails, why, and what to do about it, those that stop
most first. docs/operating.md has a section for each kind, and an alert is named after it. Mail that is meant to wait,
for the mail of its report, for the rates or for a daily limit, is not a fault.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from celery import current_app
from django.conf import settings
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Q

from tracker.domain.text import counted
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
from tracker.services.lab_jobs import NOT_TAKEN_FOR, not_taken

# --- Faults of a snapshot ---


class FaultKind(StrEnum):
    """The part that does not work.

    To add one: its generator below, a row in docs/operating.md, an alert in deploy/prometheus/alerts.yaml, and its
    cause and end in tests/stories/test_operating.py.
    """

    SCHEDULER = "scheduler"
    TASK = "task"
    DISK = "disk"
    BACKUP = "backup"
    OUTBOX = "outbox"
    IN_DOUBT = "in_doubt"
    FAILED = "failed"
    CLOCK = "clock"
    QUARANTINE = "quarantine"
    REJECTED = "rejected"
    JOB = "job"
    ARCHIVE = "archive"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class Fault:
    """One line: what fails, why and what to do, and since when, if that is known."""

    kind: FaultKind
    name: str
    error: str
    since: datetime | None = None


# From when on something counts as stalled
_NO_SCHEDULER = timedelta(minutes=5)
_LATE = timedelta(minutes=5)  # beyond its period; a task of a longer period may be late by that
_AHEAD = timedelta(minutes=5)  # of a stored time: clocks of several machines
_OLD_BACKUP = timedelta(days=2)
_MAIL_DUE = timedelta(hours=1)  # since approved mail became due
_NOT_READ = timedelta(hours=6)  # since an archive or a tree was last fetched and read
_FREE_SHARE, _FREE_BYTES = 0.05, 2 << 30  # of the disk that should be free, or this much, if that is less

# What each task does, as operators say it.
_DOES = {
    "send_mail": "send mail",
    "take_results": "take results from the drop directory",
    "read_archives": "read the archives",
    "track_trees": "walk the git trees",
    "open_lab_jobs": "open jobs for requests to the lab",
    "call_webhooks": "tell other programs of events",
    "fold_reports": "fold reports after an upgrade",
    "ask_second_opinions": "ask for second opinions",
    "compose_reminders": "compose reminders and digests",
    "suggest_closings": "suggest what may be closed",
    "mail_faults": "mail operators about problems",
    "mail_suggestions": "mail triagers what is suggested",
    "prune": "remove what no report needs any more, and measure what is stored",
}


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a task that is expected to run every `period`. `at`: when it ended, None if never; `error`: why
    it failed then, or "".
    """

    task: str
    at: datetime | None
    error: str
    period: timedelta

    @property
    def does(self) -> str:
        return _DOES.get(self.task, self.task.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system that something is stored on, named after what. `free` and `total` are in bytes, for this user."""

    name: str
    free: int
    total: int
    is_read_only: bool = False
    has_inodes: bool = True

    @property
    def why_full(self) -> str:
        """Return why nothing can be stored on it; "" if something can."""
        if self.is_read_only:
            return "is read-only"
        if not self.has_inodes:
            return "has no inodes left"
        return "is full" if self.free < LEAST_FREE else ""


LEAST_FREE = 1 << 20  # bytes, below which a transaction may fail


@dataclass(frozen=True, slots=True)
class Followed:
    """An archive or a tree: when it was last read, and why it could not be."""

    name: str
    at: datetime | None
    error: str
    since: datetime | None = None


STARTED = "scheduler"  # the row among the tasks that says when a scheduler began after a silence
SILENCE = timedelta(minutes=5)  # without any task; as long, after it, what is late is not a fault


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How an installation stands at one moment. Times are aware; `None` means never, or none."""

    now: datetime
    scheduler_until: datetime | None = None  # until when a scheduler holds its lease
    started: datetime | None = None  # when a scheduler last began after a silence
    runs: Sequence[Run] = ()
    disks: Sequence[Disk] = ()  # each file system once, that of var/ first
    backups: str = ""  # the folder that gets them, if one is named
    backup_at: datetime | None = None  # the newest one
    sending: bool = True  # whether mail is to be sent at all
    has_server: bool = True  # to send through
    oldest_due: datetime | None = None  # approved mail: since when the longest waiting one could have been sent
    in_doubt: int = 0
    failed: int = 0
    quarantined: int = 0
    rejected: int = 0  # files in the folder of rejected input
    jobs_opened: Sequence[datetime] = ()  # of the lab's jobs that no runner took in time
    archives: Sequence[Followed] = ()
    trees: Sequence[Followed] = ()
    interval: timedelta = timedelta(0)  # between two fetches of an archive or a tree

    @property
    def is_catching_up(self) -> bool:
        """Whether what is late may only be late because nothing ran for a time, and is about to run."""
        return self.started is not None and self.now - self.started < SILENCE


def list_faults(snapshot: Snapshot) -> list[Fault]:
    """Return all faults, those that stop most first."""
    return [
        *_processes(snapshot),
        *_stores(snapshot),
        *_followed(FaultKind.ARCHIVE, snapshot.archives, snapshot),
        *_followed(FaultKind.TREE, snapshot.trees, snapshot),
    ]


def _processes(snapshot: Snapshot) -> Iterator[Fault]:
    until = snapshot.scheduler_until
    if until is None or snapshot.now - until > _NO_SCHEDULER:
        yield Fault(FaultKind.SCHEDULER, "scheduler", "does not run: nothing is read, tracked or sent; start it", until)
    for run in snapshot.runs:
        if run.at is None:
            continue  # new, or the scheduler has never run, which is said above
        if run.at > snapshot.now + _AHEAD:
            yield Fault(
                FaultKind.CLOCK, run.task, "last ran in the future: this machine's clock was or is wrong", run.at
            )
        elif run.error:
            yield Fault(FaultKind.TASK, run.task, f"failed: {run.error}", run.at)
        elif snapshot.is_catching_up:
            continue
        elif snapshot.now - run.at > max(2 * run.period, run.period + _LATE):
            yield Fault(FaultKind.TASK, run.task, "does not run: is there a worker for its queue?", run.at)


def _stores(snapshot: Snapshot) -> Iterator[Fault]:
    for disk in snapshot.disks:
        if disk.why_full:
            yield Fault(FaultKind.DISK, disk.name, f"the disk {disk.why_full}: nothing can be stored")
        elif disk.free < min(_FREE_BYTES, _FREE_SHARE * disk.total):
            free = f"only {disk.free >> 20} MiB are free"
            yield Fault(FaultKind.DISK, disk.name, f"{free}: free some, or run `{settings.PROGRAM} prune`")
    if snapshot.backups and (snapshot.backup_at is None or snapshot.now - snapshot.backup_at > _OLD_BACKUP):
        problem = "no backup of the last two days: `systemctl status perfwork-daily` says why"
        yield Fault(FaultKind.BACKUP, snapshot.backups, problem, snapshot.backup_at)
    due = snapshot.oldest_due
    if snapshot.sending and due and not snapshot.has_server:
        yield Fault(FaultKind.OUTBOX, "outbox", "approved mail can't be sent: EMAIL_URL names no mail server", due)
    elif snapshot.sending and due and snapshot.now - due > _MAIL_DUE:
        yield Fault(FaultKind.OUTBOX, "outbox", "approved mail is not sent: see /outbox/ and the mail server", due)
    if snapshot.in_doubt:
        yield Fault(FaultKind.IN_DOUBT, "outbox", f"{counted(snapshot.in_doubt, 'mail')} in doubt: decide at /outbox/")
    if snapshot.failed:
        number = counted(snapshot.failed, "mail")
        yield Fault(FaultKind.FAILED, "outbox", f"{number} refused by a server: see /outbox/?state=failed")
    if snapshot.quarantined:
        number = counted(snapshot.quarantined, "mail")
        yield Fault(FaultKind.QUARANTINE, "quarantine", f"{number} could not be read: see /review/")
    if snapshot.rejected:
        number = counted(snapshot.rejected, "file")
        yield Fault(
            FaultKind.REJECTED, "results", f"{number} rejected: see /operating/, and refused/ in the drop directory"
        )
    if opened := snapshot.jobs_opened:
        jobs = f"{counted(len(opened), 'job')} waited for more than a day"
        yield Fault(FaultKind.JOB, "lab", f"{jobs}: start a runner, or decide at /lab/", max(opened) + NOT_TAKEN_FOR)


def _followed(kind: FaultKind, rows: Sequence[Followed], snapshot: Snapshot) -> Iterator[Fault]:
    limit = max(_NOT_READ, 2 * snapshot.interval)
    for row in rows:
        if row.error:
            yield Fault(kind, row.name, row.error.removeprefix(f"{row.name}: "), row.since)
        elif row.at and snapshot.now - row.at > limit and not snapshot.is_catching_up:
            yield Fault(kind, row.name, "was not read lately: is there a worker for its queue?", row.at)


# --- The snapshot ---

MOST = 100  # of each kind


def faults(now: datetime) -> list[Fault]:
    """Return all that does not work now."""
    return list_faults(take_snapshot(now))


def take_snapshot(now: datetime) -> Snapshot:
    """Return how the installation stands."""
    lease = ServiceLease.objects.filter(name="scheduler").first()
    by_task = {run.task: run for run in TaskRun.objects.all()}
    stops = SendingStop.objects.filter(ended_at=None)
    # What is configured, and what was read by hand and failed
    mirrors = Mirror.objects.order_by("path")[:MOST]
    epochs = Archive.objects.exclude(error="").order_by("path")[:MOST]
    # A tree that is no longer configured keeps its row, which reports refer to.
    trees = Tree.objects.filter(name__in=settings.PERFWORK_TREES).exclude(path="").defer("cursor").order_by("name")
    return Snapshot(
        now=now,
        scheduler_until=lease.lease_until if lease else None,
        started=by_task[STARTED].at if STARTED in by_task else None,
        runs=last_runs(by_task),
        disks=disks(),
        backups=settings.PERFWORK_BACKUPS,
        backup_at=_newest_backup(Path(settings.PERFWORK_BACKUPS)) if settings.PERFWORK_BACKUPS else None,
        sending=settings.PERFWORK_SENDING and not stops.exists(),
        has_server=bool(settings.EMAIL_URL),
        oldest_due=_oldest_due(now),
        in_doubt=OutgoingMail.objects.filter(state=OutgoingState.IN_DOUBT)[: MOST * 10].count(),
        failed=OutgoingMail.objects.filter(state=OutgoingState.FAILED)[: MOST * 10].count(),
        quarantined=RawMessage.objects.exclude(error="")[: MOST * 10].count(),
        rejected=_files(settings.PERFWORK_DROP / "refused"),
        jobs_opened=list(not_taken(now).order_by("-opened_at").values_list("opened_at", flat=True)[:MOST]),
        archives=[
            *(Followed(mirror.path, mirror.tried_at, mirror.error, mirror.failing_since) for mirror in mirrors),
            *(Followed(epoch.path, None, epoch.error) for epoch in epochs),
        ],
        trees=[Followed(tree.name, tree.looked_at, tree.error) for tree in trees[:MOST]],
        interval=timedelta(seconds=settings.PERFWORK_FETCH_EVERY),
    )


def last_runs(by_task: Mapping[str, TaskRun]) -> list[Run]:
    """Return the tasks that run by themselves, each with its last run."""
    runs = []
    for entry in current_app.conf.beat_schedule.values():
        run, period = by_task.get(entry["task"]), timedelta(seconds=float(entry["schedule"]))
        runs.append(Run(entry["task"], run.at if run else None, run.error if run else "", period))
    return runs


def disks() -> list[Disk]:
    """Return the file systems that are stored on, each once. What PostgreSQL stores on, its own errors tell."""
    database = settings.DATABASES["default"]
    places = {"var": settings.VAR, "drop": settings.PERFWORK_DROP}
    if database["ENGINE"].endswith("sqlite3"):
        places["database"] = Path(database["NAME"]).parent
    by_device: dict[int, Disk] = {}
    for name, path in places.items():
        try:
            device, at = path.stat().st_dev, os.statvfs(path)
        except OSError:  # not made yet
            continue
        by_device.setdefault(
            device,
            Disk(
                name,
                free=at.f_bavail * at.f_frsize,
                total=at.f_blocks * at.f_frsize,
                is_read_only=bool(at.f_flag & os.ST_RDONLY),
                has_inodes=at.f_favail > 0 or at.f_files == 0,  # some file systems don't count them
            ),
        )
    return list(by_device.values())


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


def _newest_backup(folder: Path) -> datetime | None:
    """Return when the newest backup was made; without any, when the database was; None if the folder can't be read."""
    try:
        times = [path.stat().st_mtime for path in folder.iterdir() if path.suffix == ".tar"]
    except OSError:
        return None
    if times:
        return datetime.fromtimestamp(max(times), UTC)
    return MigrationRecorder.Migration.objects.order_by("applied").values_list("applied", flat=True).first()


def _files(folder: Path) -> int:
    """Return the number of rejected files, without the reasons beside them."""
    try:
        return sum(not path.name.endswith(".reason") for path in folder.iterdir())
    except OSError:
        return 0
