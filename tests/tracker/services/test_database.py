"""What counts as a fault: a table of snapshots."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import DataError, InternalError, OperationalError

from tracker.services.database import is_interruption
from tracker.services.faults import Disk, FaultKind, Followed, Run, Snapshot, list_faults

# --- Only what may work if tried again is an interruption; a hostile mail or a bug is not ---


def caused(cause: Exception) -> InternalError:
    """Return the error as Django raises it, which keeps psycopg's own as its cause."""
    error = InternalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationalError("database is locked"), True),
        (caused(psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")), True),
        (caused(psycopg.errors.InFailedSqlTransaction("current transaction is aborted")), False),
        (InternalError("no cause"), False),
        (DataError("value too long"), False),
        (ValueError("terminating connection"), False),
        (None, False),
    ],
)
def test_what_may_be_tried_again(error: BaseException | None, expected: bool) -> None:
    assert is_interruption(error) is expected


# --- What counts as a fault: a table of snapshots ---

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
WELL = Snapshot(
    now=NOW,
    scheduler_until=NOW + MINUTE,
    runs=[Run("send_mail", NOW - MINUTE, "", MINUTE), Run("mail_faults", None, "", HOUR)],
    disks=(Disk("var", 50 << 30, 100 << 30), Disk("database", 50 << 30, 100 << 30)),
    oldest_due=NOW - MINUTE,
    archives=[Followed("/srv/lkml", NOW - HOUR, "")],
    trees=[Followed("linus", NOW - HOUR, "")],
)


def test_a_healthy_installation_has_none() -> None:
    assert list_faults(WELL) == []


@pytest.mark.parametrize(
    ("snapshot", "kind", "words"),
    [
        (replace(WELL, scheduler_until=None), FaultKind.SCHEDULER, "does not run"),
        (replace(WELL, scheduler_until=NOW - 6 * MINUTE), FaultKind.SCHEDULER, "does not run"),
        (replace(WELL, runs=[Run("t", NOW - 20 * MINUTE, "", MINUTE)]), FaultKind.TASK, "does not run"),
        (
            replace(WELL, started=NOW - 6 * MINUTE, runs=[Run("t", NOW - HOUR, "", MINUTE)]),
            FaultKind.TASK,
            "does not run",
        ),
        (replace(WELL, runs=[Run("t", NOW, "ValueError: x", MINUTE)]), FaultKind.TASK, "failed: ValueError: x"),
        (replace(WELL, disks=[Disk("var", 1 << 30, 100 << 30)]), FaultKind.DISK, "only 1024 MiB are free"),
        (replace(WELL, disks=[Disk("database", 9 << 10, 9 << 30)]), FaultKind.DISK, "the disk is full: nothing can be"),
        (replace(WELL, disks=[Disk("drop", 9 << 30, 9 << 30, has_inodes=False)]), FaultKind.DISK, "has no inodes left"),
        (replace(WELL, disks=[Disk("var", 9 << 30, 9 << 30, is_read_only=True)]), FaultKind.DISK, "is read-only"),
        (replace(WELL, oldest_due=NOW - 2 * HOUR), FaultKind.OUTBOX, "is not sent"),
        (replace(WELL, has_server=False), FaultKind.OUTBOX, "EMAIL_URL names no mail server"),
        (replace(WELL, in_doubt=1), FaultKind.IN_DOUBT, "1 mail in doubt"),
        (replace(WELL, quarantined=2), FaultKind.QUARANTINE, "2 mails could not be read"),
        (replace(WELL, rejected=3), FaultKind.REJECTED, "3 files rejected"),
        (replace(WELL, jobs_opened=[NOW - 30 * HOUR]), FaultKind.JOB, "1 job waited for more than a day"),
        (replace(WELL, archives=[Followed("a", NOW, "no such path")]), FaultKind.ARCHIVE, "no such path"),
        (replace(WELL, archives=[Followed("a", NOW - 7 * HOUR, "")]), FaultKind.ARCHIVE, "was not read lately"),
        (replace(WELL, trees=[Followed("t", None, "t: not a git repository")]), FaultKind.TREE, "not a git repository"),
        (replace(WELL, trees=[Followed("t", NOW - 7 * HOUR, "")]), FaultKind.TREE, "was not read lately"),
    ],
)
def test_each_fault_is_said_once_with_its_reason(snapshot: Snapshot, kind: FaultKind, words: str) -> None:
    (fault,) = list_faults(snapshot)
    assert fault.kind is kind
    assert words in fault.error
    assert not fault.error.startswith("t: ")  # its name is said before


@pytest.mark.parametrize(
    "snapshot",
    [
        replace(WELL, runs=[Run("t", NOW - 70 * MINUTE, "", HOUR)]),  # an hourly task may be an hour and more ago
        replace(WELL, sending=False, oldest_due=NOW - 2 * HOUR),  # nothing is to be sent
        replace(WELL, disks=[Disk("var", 1 << 30, 10 << 30)]),  # of a small disk, 5% are enough
        replace(WELL, archives=[Followed("new", None, "")]),  # not read yet
        # All of it was off for a day, and began a minute ago
        replace(
            WELL,
            started=NOW - MINUTE,
            runs=[Run("t", NOW - 20 * HOUR, "", MINUTE)],
            archives=[Followed("a", NOW - 20 * HOUR, "")],
            trees=[Followed("t", NOW - 20 * HOUR, "")],
        ),
        replace(WELL, trees=[Followed("t", NOW - 7 * HOUR, "")], interval=6 * HOUR),
    ],
)
def test_what_is_meant_to_be_is_no_fault(snapshot: Snapshot) -> None:
    assert list_faults(snapshot) == []
