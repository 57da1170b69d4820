"""Read a source into the database: stage one looks at bytes only, stage two files what passed, many per transaction.

A bad mail affects no other (DESIGN rule 6): it is stored whole with its error, and the cursor moves on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from bot.archives.batch import Passed, claim_pending, take
from bot.archives.filing import MailFiler
from bot.archives.filing.known_reports import awaited_keys, keys_of_culprit, tracked_keys
from bot.archives.prefilter import Passes, Prefilter, key_of_message
from bot.archives.sources import Source
from bot.archives.sources.raw import RawMail, head_of
from bot.archives.tally import ReadTally
from bot.errors import Unreadable
from bot.leases import acquire, extend, release
from bot.mail.identity import BotIdentity
from bot.mail.message import parse
from tracker.models import Archive, Message, OutgoingMail, Report
from tracker.services import locks
from tracker.services.locks import Lock

EVERY = 2.0  # seconds of reading that a crash may lose
MOST = 500  # mails filed per transaction
MOST_BYTES = 16 << 20  # of these mails


def read_source(
    source: Source,
    identity: BotIdentity,
    now: datetime,
    progress: Callable[[int], None] = lambda seen: None,
    *,
    again: bool = False,
    lease: timedelta = timedelta(minutes=5),
) -> ReadTally:
    """Read what is new in a source. The cursor is saved in the same transaction as the mails up to it.

    `again` reads from the beginning; mail that is filed already is not changed. `lease`: after which a worker's lease
    expires, unless it is extended. Raises Busy while another worker reads the source, Unreadable if it can't be read.
    """
    archive, _ = Archive.objects.get_or_create(path=source.name)
    if not source.exclusive:
        return _read(source, archive, identity, now, progress, again, None)
    acquire(archive, lease)
    try:
        return _read(source, archive, identity, now, progress, again, lease)
    finally:
        release(archive)


def _read(
    source: Source,
    archive: Archive,
    identity: BotIdentity,
    now: datetime,
    progress: Callable[[int], None],
    again: bool,
    lease: timedelta | None,
) -> ReadTally:
    try:
        goal = source.goal()
        if goal and not again and source.is_done(archive.cursor, goal):
            Archive.objects.filter(pk=archive.pk).update(read_at=now, error="")
            return ReadTally()
        archive.cursor = "" if again else source.resume(archive.cursor)
        reading = _Reading(source, archive, identity, now, lease)
        try:
            for mail in source.mails(archive.cursor, goal):
                if reading.take(mail):
                    progress(reading.tally.seen)
        except (Unreadable, OSError):
            reading.flush()  # save what was read before the failure
            raise
        reading.finish(goal)
    except Exception as error:
        Archive.objects.filter(pk=archive.pk).update(error=" ".join(str(error).split())[:1000])
        raise
    return reading.tally


class _Reading:
    """One pass over a source: stage one for each mail, stage two for many at once, and the saved position."""

    def __init__(
        self, source: Source, archive: Archive, identity: BotIdentity, now: datetime, lease: timedelta | None
    ) -> None:
        self.source, self.archive, self.now, self.lease = source, archive, now, lease
        self.prefilter = Prefilter(tracked_keys(), identity, awaited_keys())
        self.filer = MailFiler(identity, now)
        self.newest, self.newest_report, self.newest_sent = (_last(model) for model in (Message, Report, OutgoingMail))
        self.tally = ReadTally()
        self.passed: list[Passed] = []
        self.size = 0  # bytes in `passed`
        self.last: RawMail | None = None
        self.saved = 0  # mails up to the saved cursor
        self.flush_at = time.monotonic() + EVERY

    def take(self, mail: RawMail) -> bool:
        """Take one mail, without a query if it does not concern us. Returns whether mails and the cursor were saved."""
        self.tally.seen += 1
        self.last = mail
        why = self.prefilter.passes(mail.raw)
        if why is not Passes.NOT:
            self.passed.append(Passed(mail, why))
            self.size += len(mail.raw)
        if len(self.passed) < MOST and self.size < MOST_BYTES and time.monotonic() < self.flush_at:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """File what passed, and save the cursor with it. Workers file one at a time, so that each sees others' mail."""
        self._warm()
        with transaction.atomic():
            locks.take(Lock.FILING)
            self._learn()
            tally = take(self.passed, self.archive, self.filer, self.prefilter)
            position = (self.last.position if self.last.read_to is None else self.last.read_to) if self.last else ""
            if position and self.source.resumes:
                self.archive.cursor = self.source.after(self.archive.cursor, position, self.tally.seen - self.saved)
            self._save(tally)

    def finish(self, goal: str) -> None:
        """File the rest, and move the cursor to `goal`, past whatever follows the last mail."""
        self._warm()
        with transaction.atomic():
            locks.take(Lock.FILING)
            self._learn()
            tally = take(self.passed, self.archive, self.filer, self.prefilter)
            tally += claim_pending(self.filer, self.prefilter)
            self.archive.read_at, self.archive.error = self.now, ""
            if goal:
                self.archive.cursor = self.source.after(self.archive.cursor, goal, self.tally.seen - self.saved)
            self._save(tally)

    def _warm(self) -> None:
        """Fetch the keys that the mails are signed with, before the transaction."""
        self.filer.identity.trust_anchors.warm((passed.mail.raw for passed in self.passed), self.now)

    def _learn(self) -> None:
        """Track what other workers have filed in the meantime."""
        newer = Message.objects.filter(pk__gt=self.newest).order_by("pk").values_list("pk", "message_id")
        for pk, message_id in newer:
            self.newest = pk
            self.prefilter.tracked.add(key_of_message(message_id))
        reports = Report.objects.filter(pk__gt=self.newest_report).order_by("pk")
        for pk, sha, title in reports.values_list("pk", "culprit__sha", "culprit__title"):
            self.newest_report = pk
            for key in keys_of_culprit(sha, title):
                self.prefilter.tracked.add(key)
        sent = OutgoingMail.objects.filter(pk__gt=self.newest_sent).order_by("pk").values_list("pk", "message_id")
        for pk, message_id in sent:
            self.newest_sent = pk
            self.prefilter.tracked.add(key_of_message(message_id))

    def _save(self, tally: ReadTally) -> None:
        archive = self.archive
        if self.lease:
            extend(archive, self.lease)
        archive.seen += self.tally.seen - self.saved
        archive.kept += tally.kept
        if self.last:
            moments = (archive.newest_at, parse(head_of(self.last.raw) + b"\n\n").date)
            archive.newest_at = max((each for each in moments if each), default=None)
        archive.save(update_fields=["cursor", "seen", "kept", "newest_at", "read_at", "error"])
        self.tally += tally
        self.saved = self.tally.seen
        self.passed, self.size, self.last = [], 0, None
        self.flush_at = time.monotonic() + EVERY


def _last(model: type[Message] | type[Report] | type[OutgoingMail]) -> int:
    """Return the highest primary key of a table, 0 if it is empty."""
    return model.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
