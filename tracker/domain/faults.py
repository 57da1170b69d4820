"""What does not work or stalls, as a function of a snapshot: each fault says what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tracker.domain.text.english import counted


class FaultKind(StrEnum):
    """The part that does not work; docs/operating.md has a section for each, and an alert is named after it."""

    SCHEDULER = "scheduler"
    TASK = "task"
    DISK = "disk"
    OUTBOX = "outbox"
    IN_DOUBT = "in_doubt"
    QUARANTINE = "quarantine"
    REJECTED = "rejected"
    ARCHIVE = "archive"
    TREE = "tree"


@dataclass(frozen=True, slots=True)
class Fault:
    """One line: what fails, why and what to do, and since when, if that is known."""

    kind: FaultKind
    name: str
    error: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something counts as stalled."""

    scheduler: timedelta = timedelta(minutes=5)  # without a running scheduler
    task: timedelta = timedelta(minutes=15)  # since a periodic task last ended
    outbox: timedelta = timedelta(hours=1)  # since approved mail became due
    archive: timedelta = timedelta(hours=6)  # since an archive was last fetched and read
    tree: timedelta = timedelta(hours=6)
    disk_share: float = 0.05  # of the disk that should be free, …
    disk_bytes: int = 2 << 30  # … or this much, if that is less


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a task that is expected to run every `period`."""

    task: str
    at: datetime | None
    error: str
    period: timedelta


@dataclass(frozen=True, slots=True)
class Followed:
    """An archive or a tree: when it was last read, and why it could not be."""

    name: str
    at: datetime | None
    error: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How an installation stands at one moment. Times are aware; `None` means never, or none."""

    now: datetime
    scheduler_until: datetime | None = None  # until when a scheduler holds its lease
    runs: Sequence[Run] = ()
    disk_free: int = 0  # bytes
    disk_total: int = 0  # 0: unknown
    sending: bool = True  # whether mail is to be sent at all
    oldest_due: datetime | None = None  # approved mail: since when the longest waiting one could have been sent
    in_doubt: int = 0
    quarantined: int = 0
    rejected: int = 0  # files in the folder of rejected input
    archives: Sequence[Followed] = ()
    trees: Sequence[Followed] = ()
    interval: timedelta = timedelta(0)  # between two fetches of an archive or a tree


def faults(snapshot: Snapshot, limits: Limits = Limits()) -> list[Fault]:
    """Return all faults, those that stop most first."""
    return [
        *_scheduler(snapshot, limits),
        *_tasks(snapshot, limits),
        *_disk(snapshot, limits),
        *_mail(snapshot, limits),
        *_input(snapshot),
        *_followed(FaultKind.ARCHIVE, snapshot.archives, snapshot.now, max(limits.archive, 2 * snapshot.interval)),
        *_followed(FaultKind.TREE, snapshot.trees, snapshot.now, max(limits.tree, 2 * snapshot.interval)),
    ]


def _scheduler(snapshot: Snapshot, limits: Limits) -> Iterator[Fault]:
    until = snapshot.scheduler_until
    if until is None:
        yield Fault(FaultKind.SCHEDULER, "scheduler", "has never run: start it (manage.py up --only beat)")
    elif snapshot.now - until > limits.scheduler:
        yield Fault(FaultKind.SCHEDULER, "scheduler", "does not run: nothing is read, tracked or sent; start it", until)


def _tasks(snapshot: Snapshot, limits: Limits) -> Iterator[Fault]:
    for run in snapshot.runs:
        if run.at is None:
            continue  # new, or the scheduler has never run, which is said above
        if run.error:
            yield Fault(FaultKind.TASK, run.task, f"failed: {run.error}", run.at)
        elif snapshot.now - run.at > limits.task + run.period:
            yield Fault(FaultKind.TASK, run.task, "does not run: is there a worker for its queue?", run.at)


def _disk(snapshot: Snapshot, limits: Limits) -> Iterator[Fault]:
    if snapshot.disk_total and snapshot.disk_free < min(limits.disk_bytes, limits.disk_share * snapshot.disk_total):
        yield Fault(
            FaultKind.DISK, "disk", f"only {snapshot.disk_free >> 20} MiB are free: free some, or run manage.py prune"
        )


def _mail(snapshot: Snapshot, limits: Limits) -> Iterator[Fault]:
    due = snapshot.oldest_due
    if snapshot.sending and due and snapshot.now - due > limits.outbox:
        yield Fault(FaultKind.OUTBOX, "outbox", "approved mail is not sent: see /outbox/ and the mail server", due)
    if snapshot.in_doubt:
        yield Fault(FaultKind.IN_DOUBT, "outbox", f"{counted(snapshot.in_doubt, 'mail')} in doubt: decide at /outbox/")


def _input(snapshot: Snapshot) -> Iterator[Fault]:
    if snapshot.quarantined:
        number = counted(snapshot.quarantined, "mail")
        yield Fault(FaultKind.QUARANTINE, "quarantine", f"{number} could not be read: see /inbox/")
    if snapshot.rejected:
        number = counted(snapshot.rejected, "file")
        yield Fault(FaultKind.REJECTED, "results", f"{number} rejected: see refused/ in the drop directory")


def _followed(kind: FaultKind, rows: Sequence[Followed], now: datetime, limit: timedelta) -> Iterator[Fault]:
    for row in rows:
        if row.error:
            yield Fault(kind, row.name, row.error, row.since)
        elif row.at and now - row.at > limit:
            yield Fault(kind, row.name, "was not read lately: is there a worker for its queue?", row.at)
