"""Read stored mail again with the current code: the quarantined mail, or all of it (DESIGN rule 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from bot.archives.batch import Passed, take
from bot.archives.filing import MailFiler
from bot.archives.filing.known_reports import awaited_keys, tracked_keys
from bot.archives.prefilter import Passes, Prefilter
from bot.archives.sources.raw import RawMail
from bot.archives.tally import ReadTally
from bot.mail.identity import BotIdentity
from bot.replies.sender_kind import SenderKind
from bot.second_opinion.asking import suggest_stored
from tracker.models import Finding, Message, PendingReference, RawMessage, Report
from tracker.services.reports import event_log, report_summary
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

AT_ONCE = 200  # mails


@dataclass(frozen=True, slots=True)
class Replayed:
    """The number of mails that were read again, the tally, and the culprits of reports whose state changed."""

    mails: int
    tally: ReadTally
    changed: tuple[str, ...]


def replay_quarantine(
    identity: BotIdentity, now: datetime, progress: Callable[[int], None] = lambda count: None
) -> Replayed:
    """Read quarantined mail again. Each slice is a transaction."""
    before = _states()
    rows = RawMessage.objects.exclude(error="")
    tally, mails = _read_again(rows, identity, now, progress)
    return Replayed(mails, tally, _changed(before))


@transaction.atomic
def replay_all(identity: BotIdentity, now: datetime, progress: Callable[[int], None] = lambda count: None) -> Replayed:
    """Delete what was read from mail, and read all mail again, in one transaction. What people decided stays."""
    locks.take(Lock.FILING)
    before = _states()
    mails = Message.objects.exclude(kind=SenderKind.SELF).filter(source__erased_at=None)  # those can't be read again
    ids = mails.values("message_id")
    reported = mails.filter(author_email__in=identity.robots).values("report")
    Finding.objects.filter(result=None, report__in=reported).delete()  # findings from results stay
    event_log.forget_mail(ids)
    PendingReference.objects.all().delete()
    mails.delete()
    rows = RawMessage.objects.exclude(message__kind=SenderKind.SELF).filter(erased_at=None)
    tally, count = _read_again(rows, identity, now, progress)
    suggest_stored()
    event_log.refold(Report.objects.values_list("pk", flat=True))
    report_summary.refresh(Report.objects.values_list("pk", flat=True))
    return Replayed(count, tally, _changed(before))


def _read_again(
    rows: QuerySet[RawMessage], identity: BotIdentity, now: datetime, progress: Callable[[int], None]
) -> tuple[ReadTally, int]:
    prefilter, filer = Prefilter(tracked_keys(), identity, awaited_keys()), MailFiler(identity, now)
    tally, count = ReadTally(), 0
    for chunk in _slices(rows):
        passed = [Passed(RawMail(row.raw, row.position), Passes.REPORT, row) for row in chunk]
        with transaction.atomic():
            locks.take(Lock.FILING)
            tally += take(passed, None, filer, prefilter)
        filer.clear_cache()
        count += len(chunk)
        progress(count)
    return tally, count


def _slices(rows: QuerySet[RawMessage]) -> Iterator[list[RawMessage]]:
    """Yield rows in the order of arrival, a slice at a time; a mail that is quarantined again is not read twice."""
    last = 0
    while chunk := list(rows.filter(pk__gt=last).order_by("pk")[:AT_ONCE]):
        last = chunk[-1].pk
        yield chunk


def _states() -> dict[str, str]:
    return dict(Report.objects.values_list("culprit__sha", "status"))


def _changed(before: dict[str, str]) -> tuple[str, ...]:
    return tuple(sorted(sha for sha, status in _states().items() if before.get(sha) != status))
