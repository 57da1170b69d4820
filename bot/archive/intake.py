"""From raw mail to the database: batches of one transaction, a savepoint for each mail that concerns us.

One bad mail harms one mail (DESIGN rule 6): it is kept whole with its error, and the cursor moves on.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, transaction

from bot.archive.filing import Desk, Filed
from bot.archive.raw import RawMail
from bot.archive.sieve import Sieve
from bot.archive.sources import Source
from bot.errors import Unreadable
from bot.identity import Identity
from bot.replies.mail import parse
from tracker.models import Archive, Message, RawMessage

BATCH = 500
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What a reading did: mails seen, and of those: report mails (and how many of these repeat a culprit), replies,
    known before, quarantined.
    """

    seen: int = 0
    reports: int = 0
    repeated: int = 0
    replies: int = 0
    known: int = 0
    quarantined: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def read_source(
    source: Source,
    identity: Identity,
    now: datetime,
    progress: Callable[[int], None] = lambda seen: None,
    *,
    again: bool = False,
) -> Tally:
    """Read what is new in a source. The cursor is saved in the transaction of what was read up to it.

    `again` reads from the beginning; what is known already stays as it is.
    """
    archive, _ = Archive.objects.get_or_create(path=source.name)
    fingerprint = source.fingerprint
    if fingerprint and archive.cursor == fingerprint and not again:
        return Tally()
    desk = Desk(identity, now)
    sieve = Sieve(desk.known.by_message, identity)
    tally = Tally()
    try:
        for batch in _batches(source.mails(archive.cursor if source.has_cursor and not again else "")):
            with transaction.atomic():
                tally += _read_batch(batch, archive, desk, sieve)
                if source.has_cursor:
                    archive.cursor = batch[-1].position
                    archive.save(update_fields=["cursor"])
            progress(tally.seen)
    except Exception as error:
        Archive.objects.filter(pk=archive.pk).update(error=str(error)[:1000])
        raise
    archive.read_at, archive.error = now, ""
    archive.cursor = fingerprint or archive.cursor
    archive.save(update_fields=["read_at", "error", "cursor"])
    return tally


def _batches(mails: Iterable[RawMail]) -> Iterator[list[RawMail]]:
    """Batches of mails; what was read before the reader fails is filed all the same, then it fails."""
    batch: list[RawMail] = []
    try:
        for mail in mails:
            batch.append(mail)
            if len(batch) >= BATCH:
                yield batch
                batch = []
    except (Unreadable, OSError):
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _read_batch(batch: list[RawMail], archive: Archive, desk: Desk, sieve: Sieve) -> Tally:
    tally = Tally(seen=len(batch))
    for mail in batch:
        if not sieve.passes(mail.raw):
            continue
        try:
            with transaction.atomic():
                filed = _take(mail, archive, desk)
        except (OperationalError, SoftTimeLimitExceeded, MemoryError):
            raise  # the machine's trouble is no mail's: nothing may be skipped for it
        except Exception as error:  # whatever a hostile mail can do: it is kept, and the next one is read
            log.warning("quarantined %s %s: %s", archive.path, mail.position, error)
            with transaction.atomic():
                _keep(mail, archive, desk.now, error=f"{type(error).__name__}: {error}")
            tally.quarantined += 1
            desk.forget()  # what it learned from this mail was rolled back
            continue
        if filed.message_id:
            sieve.add(filed.message_id)
        tally.reports += filed.is_report
        tally.repeated += filed.is_repeated
        tally.replies += filed.is_reply
        tally.known += filed.was_known
    desk.refold()
    return tally


def _take(raw: RawMail, archive: Archive, desk: Desk) -> Filed:
    mail = parse(raw.raw)
    if not mail.message_id:
        if desk.concerns(mail):
            raise ValueError("the mail has no Message-ID, so it can't be filed")
        return Filed()
    if Message.objects.filter(message_id=mail.message_id).exists():
        return Filed(message_id=mail.message_id, was_known=True)
    return desk.file(mail, lambda: _keep(raw, archive, desk.now))


def _keep(raw: RawMail, archive: Archive, now: datetime, error: str = "") -> RawMessage:
    """Store the bytes, once."""
    row, made = RawMessage.objects.get_or_create(
        digest=hashlib.sha256(raw.raw).hexdigest(),
        defaults={
            "archive": archive,
            "position": raw.position,
            "compressed": zlib.compress(raw.raw),
            "error": error[:1000],
            "received_at": now,
        },
    )
    if not made and row.error and not error:
        row.error = ""  # understood at last
        row.save(update_fields=["error"])
    return row
