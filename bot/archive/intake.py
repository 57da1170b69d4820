"""From raw mail to the database: stage one looks at bytes only, stage two files what passed, a batch a transaction.

One bad mail harms one mail (DESIGN rule 6): it is kept whole with its error, and the cursor moves on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from bot.archive.batch import Passed, claim_orphans, take
from bot.archive.filing import Desk
from bot.archive.lookup import awaited_keys, tracked_keys
from bot.archive.raw import RawMail
from bot.archive.sieve import Passes, Sieve, key_of_message
from bot.archive.sources import Source
from bot.archive.tally import Tally
from bot.errors import Unreadable
from bot.identity import Identity
from bot.replies.mail import parse
from tracker.models import Archive, Message

BATCH = 500
BATCH_BYTES = 32 << 20  # of mails that are held at once
EVERY = 2.0  # seconds: how much reading a crash may cost, where nothing was found to be filed


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
    tally = Tally()
    try:
        goal = source.goal()
        if goal and not again and source.is_done(archive.cursor, goal):
            Archive.objects.filter(pk=archive.pk).update(read_at=now, error="")
            return tally
        reading = _Reading(source, archive, identity, now)
        for batch in _batches(source.mails("" if again else archive.cursor, goal)):
            tally += reading.take(batch)
            progress(tally.seen)
        tally += reading.finish(goal)
    except Exception as error:
        Archive.objects.filter(pk=archive.pk).update(error=" ".join(str(error).split())[:1000])
        raise
    return tally


@dataclass(slots=True)
class _Unsaved:
    """What was read since the cursor was saved."""

    seen: int = 0
    kept: int = 0
    last: RawMail | None = None


class _Reading:
    """One reading of a source: the sieve, the desk, and how far it is saved."""

    def __init__(self, source: Source, archive: Archive, identity: Identity, now: datetime) -> None:
        self.source, self.archive, self.now = source, archive, now
        self.sieve = Sieve(tracked_keys(), identity, awaited_keys())
        self.desk = Desk(identity, now)
        self.newest = self._newest()
        self.unsaved = _Unsaved()
        self.saved_at = time.monotonic()

    def take(self, batch: list[RawMail]) -> Tally:
        """One batch. No query where nothing passes, but for saving the cursor now and then."""
        passed = [Passed(mail, why) for mail in batch if (why := self.sieve.passes(mail.raw)) is not Passes.NOT]
        self.unsaved.seen += len(batch)
        self.unsaved.last = batch[-1]
        tally = Tally(seen=len(batch))
        if not passed and time.monotonic() - self.saved_at < EVERY:
            return tally
        self._learn()
        with transaction.atomic():
            if passed:
                tally += take(passed, self.archive, self.desk, self.sieve)
            self.unsaved.kept += tally.kept
            self._save(batch[-1].position)
        return tally

    def finish(self, goal: str) -> Tally:
        """All is read: save that, with what the mails of no interest at its end add up to."""
        with transaction.atomic():
            tally = claim_orphans(self.desk, self.sieve)
            self.archive.read_at, self.archive.error = self.now, ""
            if goal:
                self.archive.cursor = self.source.after(self.archive.cursor, goal, self.unsaved.seen)
            self._save("")
        return tally

    def _learn(self) -> None:
        """Track what other workers have filed meanwhile."""
        newer = Message.objects.filter(pk__gt=self.newest).order_by("pk").values_list("pk", "message_id")
        for pk, message_id in newer:
            self.newest = pk
            self.sieve.tracked.add(key_of_message(message_id))

    def _newest(self) -> int:
        return Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0

    def _save(self, position: str) -> None:
        archive, unsaved = self.archive, self.unsaved
        if position and self.source.resumes:
            archive.cursor = self.source.after(archive.cursor, position, unsaved.seen)
        archive.seen += unsaved.seen
        archive.kept += unsaved.kept
        if unsaved.last:
            archive.newest_at = parse(unsaved.last.raw).date or archive.newest_at
        archive.save(update_fields=["cursor", "seen", "kept", "newest_at", "read_at", "error"])
        self.unsaved = _Unsaved()
        self.saved_at = time.monotonic()


def _batches(mails: Iterable[RawMail]) -> Iterator[list[RawMail]]:
    """Batches of mails; what was read before the reader fails is filed all the same, then it fails."""
    batch: list[RawMail] = []
    size = 0
    try:
        for mail in mails:
            batch.append(mail)
            size += len(mail.raw)
            if len(batch) >= BATCH or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except (Unreadable, OSError):
        if batch:
            yield batch
        raise
    if batch:
        yield batch
