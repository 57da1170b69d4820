"""How the installation stands, for `status` and `/operating/`: what is wrong, what waits for a person, each duty, and
how much is stored.

A duty is a task that runs by itself: that it is fine is told by its last success, not by the broker's word.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from threading import Lock, Timer
from urllib.parse import urlencode

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from django.urls import reverse
from kombu.exceptions import OperationalError

from tracker.domain.lab_jobs import JobState
from tracker.domain.text import counted
from tracker.models import (
    BisectResult,
    Decision,
    LabJob,
    Mirror,
    OfferedReport,
    OutgoingMail,
    OutgoingState,
    SendingStop,
    StoredSize,
    Suggestion,
    TaskRun,
    Tree,
)
from tracker.services.faults import Fault, FaultKind, Run, faults, last_runs

log = logging.getLogger(__name__)

MOST = 999  # nothing is counted further


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that only a person can decide: "3 mails to approve", and the page for it."""

    number: int
    noun: str
    what: str
    url: str

    def __str__(self) -> str:
        return f"{counted(self.number, self.noun)} {self.what}"


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """How the installation stands at one moment."""

    problems: Sequence[Fault]
    waiting: Sequence[Waiting]
    duties: Sequence[Run]


def standing(now: datetime) -> InstallationStatus:
    """Return all of it, in a constant number of queries."""
    return InstallationStatus(faults(now), _waiting(), last_runs({run.task: run for run in TaskRun.objects.all()}))


def _waiting() -> list[Waiting]:
    """Return what waits for a person, without what does not."""
    held = BisectResult.objects.exclude(held="").filter(report__reported_at=None, report__isnull=False)
    unproven = LabJob.objects.filter(state=JobState.WAITING, proven=False).exclude(patch_mail="", branch="")
    kinds: Sequence[tuple[QuerySet, str, str, str, dict[str, str]]] = (  # type: ignore[type-arg]
        (OutgoingMail.objects.filter(state=OutgoingState.COMPOSED), "mail", "to approve", "outbox", {}),
        (OutgoingMail.objects.filter(state=OutgoingState.HELD), "mail", "on hold", "outbox", {"state": "held"}),
        (held, "result", "held", "results", {"held": "1"}),
        (Suggestion.objects.filter(decision=Decision.OPEN), "suggestion", "to decide", "review", {}),
        (OfferedReport.objects.filter(decision=Decision.OPEN), "report", "by people to decide", "review", {}),
        (unproven, "test", "asked for by somebody who is not verified", "lab", {}),
    )
    rows = []
    for stop in SendingStop.objects.filter(ended_at=None):
        reason = f": {stop.reason[:100]}" if stop.reason else ""
        what = f"on all sending since {stop.at:%Y-%m-%d %H:%M}, by {stop.by}{reason}"
        rows.append(Waiting(1, "hold", what, reverse("outbox")))
    for query, noun, what, page, parameters in kinds:
        if number := query.order_by().values("pk")[:MOST].count():
            url = reverse(page) + (f"?{urlencode(parameters)}" if parameters else "")
            rows.append(Waiting(number, noun, what, url))
    return rows


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file that labs handed in and that was rejected, with the first lines of the reason beside it."""

    name: str
    at: datetime
    reason: str


SHOWN_FILES, _REASON = 5, 600  # files, and bytes of a reason


def rejected_files(folder: Path) -> list[RejectedFile]:
    """Return the newest files that were rejected. No link is followed: labs write to the directory around it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # nothing was ever rejected
        return []
    try:
        names = [entry.name for entry in os.scandir(handle) if not entry.name.endswith(".reason")]
        times = {name: _changed_at(name, handle) for name in names}
        newest = sorted(names, key=lambda name: times[name], reverse=True)[:SHOWN_FILES]
        return [RejectedFile(name, times[name], _beginning(f"{name}.reason", handle)) for name in newest]
    finally:
        os.close(handle)


def _changed_at(name: str, folder: int) -> datetime:
    try:
        seconds = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except FileNotFoundError:  # dismissed meanwhile
        seconds = 0.0
    return datetime.fromtimestamp(seconds, UTC)


def _beginning(name: str, folder: int) -> str:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return ""
    try:
        return os.read(handle, _REASON).decode("utf-8", "replace").strip()
    except OSError:  # a folder
        return ""
    finally:
        os.close(handle)


class Tried(StrEnum):
    """What can be tried again at once, and the task that does."""

    ARCHIVE = "archive"
    TREE = "tree"


def try_now(kind: Tried, name: str) -> bool:
    """Make an archive or a tree due again that failed, and wake a worker; False if there is none of that name."""
    if kind is Tried.ARCHIVE:
        followed = Mirror.objects.filter(path=name).update(tried_at=None)
        enqueue("read_archives")
    else:
        followed = Tree.objects.filter(name=name).update(fetched_at=None)
        enqueue("track_trees")
    return bool(followed)


def try_all() -> int:
    """Make all archives and trees due again that failed, and wake a worker. Return how many these are."""
    number = Mirror.objects.exclude(error="").update(tried_at=None)
    number += Tree.objects.exclude(error="").update(fetched_at=None)
    enqueue("read_archives")
    enqueue("track_trees")
    return number


def triable(problems: Sequence[Fault]) -> set[Fault]:
    """Return the problems that `try_now` does something about: not those of an archive that was read by hand."""
    names = [fault.name for fault in problems if fault.kind is FaultKind.ARCHIVE]
    followed = set(Mirror.objects.filter(path__in=names).values_list("path", flat=True)) if names else set()
    return {fault for fault in problems if fault.kind is FaultKind.TREE or fault.name in followed}


# --- How much is stored, by table and directory, and how that grows: measured once a day, shown at `/operating/` ---

WEEK = timedelta(days=7)
KEPT = timedelta(days=60)  # measurements
LARGEST = 20  # of the tables and directories of one day
LEAST = 1 << 20  # bytes, below which nobody needs to look

# Indexes count with their table. Partitions, which have a parent, count with that.
_POSTGRESQL = """
SELECT COALESCE(parent.relname, part.relname), SUM(pg_total_relation_size(part.oid))
  FROM pg_class part
  LEFT JOIN pg_inherits ON pg_inherits.inhrelid = part.oid
  LEFT JOIN pg_class parent ON parent.oid = pg_inherits.inhparent
 WHERE part.relkind IN ('r', 'm') AND part.relnamespace = 'public'::regnamespace
 GROUP BY 1"""
_SQLITE = """
SELECT COALESCE(tbl_name, stored.name), SUM(pgsize)
  FROM dbstat AS stored LEFT JOIN sqlite_master ON sqlite_master.name = stored.name
 WHERE aggregate = TRUE GROUP BY 1"""


@dataclass(frozen=True, slots=True)
class Growth:
    """A table or directory: its bytes, and how many more than a week before; None if that is not known yet."""

    name: str
    size: int
    grown: int | None


def measure_sizes(directories: Mapping[str, Path]) -> dict[str, int]:
    """Return the bytes of the tables, and of directories by the name to show."""
    sizes = {name: _bytes_in(path) for name, path in directories.items() if path.is_dir()}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL if connection.vendor == "postgresql" else _SQLITE)
            sizes |= {f"table {name.removeprefix('tracker_')}": int(size) for name, size in cursor.fetchall()}
    except DatabaseError:  # an SQLite without dbstat
        sizes["database"] = Path(str(connection.settings_dict["NAME"])).stat().st_size
    return sizes


def _bytes_in(folder: Path) -> int:
    """Return the bytes of all files below; what vanishes meanwhile, or can't be read, counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def record_sizes(sizes: Mapping[str, int], now: datetime) -> None:
    """Store the largest of today's sizes, and forget those of long ago."""
    largest = sorted((name for name in sizes if sizes[name] >= LEAST), key=lambda name: (-sizes[name], name))[:LARGEST]
    with transaction.atomic():
        StoredSize.objects.filter(at__lt=now - KEPT).delete()
        StoredSize.objects.bulk_create(StoredSize(name=name, size=sizes[name], at=now) for name in largest)


def growth(now: datetime) -> list[Growth]:
    """Return what is stored by the last measurement, the largest first."""
    rows = list(StoredSize.objects.filter(at__gt=now - 2 * WEEK).order_by("-at", "-size", "name"))
    if not rows:
        return []
    newest = rows[0].at
    before = newest - WEEK + timedelta(hours=12)  # measurements are a day apart, more or less
    earlier = {row.name: row.size for row in reversed(rows) if row.at <= before}  # the last one of each name stays
    return [
        Growth(row.name, row.size, row.size - earlier[row.name] if row.name in earlier else None)
        for row in rows
        if row.at == newest
    ]


# --- A task before its time ---

_lock = Lock()
_soon: set[str] = set()  # the tasks that this process enqueues soon


def enqueue(task: str) -> None:
    """Enqueue a task by its name ("send_mail"). If the broker is down, log a warning and return."""
    try:
        current_app.send_task(task, retry=False, expires=max(10.0, settings.PERFWORK_PERIOD))
    except (OperationalError, OSError) as error:
        log.warning("%s: could not wake a worker: %s", task, error)


def enqueue_soon(task: str, seconds: float) -> None:
    """Enqueue a task once for all that asks for it in these seconds, without making the caller wait for the broker."""
    with _lock:
        if task in _soon:
            return
        _soon.add(task)
    timer = Timer(seconds, _enqueue_now, (task,))
    timer.daemon = True  # a server that stops does not wait: the scheduler finds what there is
    try:
        timer.start()
    except RuntimeError as error:  # no more threads
        log.warning("%s: could not wake a worker: %s", task, error)
        with _lock:
            _soon.discard(task)


def _enqueue_now(task: str) -> None:
    with _lock:
        _soon.discard(task)  # first, so that whoever comes meanwhile is not overlooked
    enqueue(task)
