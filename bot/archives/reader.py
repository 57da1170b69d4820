"""Read a source into the database: stage one looks at bytes only, stage two files what passed, many per transaction.

A bad mail affects no other (DESIGN rule 6): it is stored whole with its error, and the cursor moves on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Model, Q, QuerySet, Sum

from bot.archives.batch import Passed, claim_pending, parsed, take
from bot.archives.filing import MailFiler
from bot.archives.filing.known_reports import awaited_keys, keys_of_culprit, tracked_keys
from bot.archives.looking_ahead import Looked, looked_at
from bot.archives.name_index import NameIndex
from bot.archives.prefilter import Passes, Prefilter, key_of_message
from bot.archives.sources import Source
from bot.archives.sources.public_inbox import EpochSource
from bot.archives.sources.raw import RawMail, head_of
from bot.archives.tally import ReadTally
from bot.errors import Unreadable
from bot.mail.identity import BotIdentity
from bot.mail.message import parse
from bot.runtime.leases import acquire, extend, release
from tracker.models import Archive, Message, OutgoingMail, RawMessage, Report
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

EVERY = 2.0  # seconds of reading that a crash may lose
MOST = 500  # mails filed per transaction
MOST_BYTES = 16 << 20  # of these mails
WORTH_FILING = 16  # mails that are filed while the next ones are being unpacked
AT_ONCE = 100  # mails that the index found, read together
WINDOW = 1000  # rows: more than transactions beside each other add
NAMED: Mapping[str, type[Model]] = {"message": Message, "report": Report, "sent": OutgoingMail}


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
        done = bool(goal) and not again and source.is_done(archive.cursor, goal)
        if done and not has_names_to_search(source, archive):
            Archive.objects.filter(pk=archive.pk).update(read_at=now, error="")
            return ReadTally()
        archive.cursor = "" if again else source.resume(archive.cursor)
        reading = _Reading(source, archive, identity, now, lease)
        try:
            for each in reading.mails(goal) if not done else ():
                if reading.take(each) if each else reading.use_wait():
                    progress(reading.tally.seen)
        except (Unreadable, OSError):
            reading.flush()  # save what was read before the failure
            raise
        reading.finish(goal)
    except Exception as error:
        Archive.objects.filter(pk=archive.pk).update(error=" ".join(str(error).split())[:1000])
        raise
    return reading.tally


def has_names_to_search(source: Source, archive: Archive) -> bool:
    """Whether something was filed since the index of an archive was last searched."""
    return isinstance(source, EpochSource) and bool(archive.cursor) and archive.searched != newest_names()


class _Reading:
    """One pass over a source: stage one for each mail, stage two for many at once, and the saved position."""

    def __init__(
        self, source: Source, archive: Archive, identity: BotIdentity, now: datetime, lease: timedelta | None
    ) -> None:
        self.source, self.archive, self.now, self.lease = source, archive, now, lease
        self.learnt = newest_names()  # the rows whose keys the prefilter has, and perhaps newer ones
        self.prefilter = Prefilter(tracked_keys(), identity, awaited_keys())
        self.filer = MailFiler(identity, now)
        self.index: NameIndex | None = None
        if isinstance(source, EpochSource):
            self.index = _index_of(source, archive)
            self.learnt = archive.searched
        self.tally = ReadTally()
        self.passed: list[Passed] = []
        self.size = 0  # bytes in `passed`
        self.unsent: list[str] = []  # positions of others that passed, whose bytes are only in the archive
        self.last: RawMail | Looked | None = None
        self.newest = b""  # the last mail whose bytes are here
        self.saved = 0  # mails up to the saved cursor
        self.flush_at = time.monotonic() + EVERY

    def mails(self, goal: str) -> Iterator[RawMail | Looked | None]:
        """Yield the new mails, with what the prefilter sees in them where there is an index; None: none is ready."""
        if isinstance(self.source, EpochSource):
            return looked_at(self.source, self.archive.cursor, goal, self.prefilter)
        return self.source.mails(self.archive.cursor, goal)

    def take(self, mail: RawMail | Looked) -> bool:
        """Take one mail, without a query if it does not concern us. Returns whether mails and the cursor were saved."""
        self.tally.seen += 1
        self.last = mail
        if isinstance(mail, RawMail):
            why, size = self.prefilter.passes(mail.raw), len(mail.raw)
        else:
            assert self.index is not None
            why, size = self.prefilter.judge(mail.look), mail.size
            self.index.add(mail.position, mail.look.names)
        self.newest = mail.raw or self.newest
        if why is not Passes.NOT:
            if mail.raw is None:
                self.unsent.append(mail.position)
            else:
                self.passed.append(Passed(RawMail(mail.raw, mail.position, mail.read_to), why))
            self.size += size
        full = len(self.passed) + len(self.unsent) >= MOST or self.size >= MOST_BYTES
        if not full and time.monotonic() < self.flush_at:
            return False
        self.flush()
        return True

    def use_wait(self) -> bool:
        """File what passed while no mail is ready. Returns whether mails and the cursor were saved."""
        if len(self.passed) + len(self.unsent) < WORTH_FILING:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """File what passed, and save the cursor with it. Workers file one at a time, so that each sees others' mail."""
        self._prepare()
        with transaction.atomic():
            tally = self._take()
            position = (self.last.position if self.last.read_to is None else self.last.read_to) if self.last else ""
            if position and self.source.resumes:
                self.archive.cursor = self.source.after(self.archive.cursor, position, self.tally.seen - self.saved)
            self._save(tally)

    def finish(self, goal: str) -> None:
        """File the rest, and move the cursor to `goal`, past whatever follows the last mail."""
        self._prepare()
        with transaction.atomic():
            tally = self._take()
            if self.index is None:
                tally += claim_pending(self.filer, self.prefilter)
            self.archive.read_at, self.archive.error = self.now, ""
            if goal:
                self.archive.cursor = self.source.after(self.archive.cursor, goal, self.tally.seen - self.saved)
            self._save(tally)

    def _prepare(self) -> None:
        """Fetch the keys that the mails are signed with, and parse them, before the transaction."""
        if self.unsent:
            assert isinstance(self.source, EpochSource)
            self.passed += [Passed(mail, Passes.TRACKED) for mail in self.source.at(self.unsent)]
        self.filer.identity.trust_anchors.warm((passed.mail.raw for passed in self.passed), self.now)
        self.passed = [parsed(each, self.filer.identity) for each in self.passed]

    def _take(self) -> ReadTally:
        """File what passed, and what the index finds by the names that matter now."""
        locks.take(Lock.FILING)
        self.filer.clear_cache()  # others may have changed what it knows of reports
        learnt = self._learn()
        if self.index is None:
            return take(self.passed, self.archive, self.filer, self.prefilter)
        self.index.save()
        tally = take(self.passed, self.archive, self.filer, self.prefilter, self._search, learnt)
        # Of messages all that are new are its own: it has the lock. A report may be of others, and is searched again.
        self.learnt["message"] = _newest("message")
        self.archive.searched = self.learnt
        return tally

    def _search(self, keys: Sequence[str]) -> Iterator[list[Passed]]:
        """Yield the mails of this archive that name one of these keys, and are not filed from it."""
        assert self.index is not None
        assert isinstance(self.source, EpochSource)
        positions = self.index.find(map(key_of_message, keys))
        for start in range(0, len(positions), AT_ONCE):
            chunk = positions[start : start + AT_ONCE]
            stored = RawMessage.objects.filter(archive=self.archive, position__in=chunk)
            done = stored.filter(Q(message__isnull=False) | ~Q(error="") | ~Q(erased_at=None))  # or in quarantine
            known = set(done.values_list("position", flat=True))
            chunk = [each for each in chunk if each not in known]
            yield [Passed(mail, Passes.NAMED) for mail in self.source.at(chunk)]

    def _learn(self) -> list[str]:
        """Track what others have filed in the meantime. Returns its keys."""
        newest = newest_names()
        newer = {name: _rows_since(name, self.learnt.get(name, 0)) for name in NAMED}
        keys = [key_of_message(each) for each in newer["message"].values_list("message_id", flat=True)]
        keys += [key_of_message(each) for each in newer["sent"].values_list("message_id", flat=True)]
        for sha, title in newer["report"].values_list("culprit__sha", "culprit__title"):
            keys += keys_of_culprit(sha, title)
        for key in keys:
            self.prefilter.tracked.add(key)
        self.learnt = newest
        return [key.decode("utf-8", "surrogateescape") for key in keys]

    def _save(self, tally: ReadTally) -> None:
        archive = self.archive
        if self.lease:
            extend(archive, self.lease)
        archive.seen += self.tally.seen - self.saved
        archive.kept += tally.kept
        if self.last:
            moments = (archive.newest_at, parse(head_of(self.newest) + b"\n\n").date)
            archive.newest_at = max((each for each in moments if each), default=None)
        archive.save(update_fields=["cursor", "seen", "kept", "newest_at", "read_at", "error", "searched"])
        self.tally += tally
        self.saved = self.tally.seen
        self.passed, self.unsent, self.size, self.last = [], [], 0, None
        self.flush_at = time.monotonic() + EVERY


def _index_of(source: EpochSource, archive: Archive) -> NameIndex:
    """Return the index up to the archive's cursor; without one the archive is read from its beginning."""
    index = NameIndex(archive)
    if index.count < source.count(archive.cursor):
        archive.cursor = ""
    index.truncate(source.count(archive.cursor))
    return index


def newest_names() -> dict[str, list[int]]:
    """Return how far all that has names is known, as `Archive.searched` stores it."""
    return {name: _newest(name) for name in NAMED}


def _newest(name: str) -> list[int]:
    """Return how far the rows of a table are known: the newest primary key, and the number and the sum of those of the
    WINDOW keys up to it that there are.
    """
    newest = NAMED[name]._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0
    return [newest, *_check(name, newest)]


def _check(name: str, newest: int) -> tuple[int, int]:
    rows = NAMED[name]._default_manager.filter(pk__gt=newest - WINDOW, pk__lte=newest)
    found = rows.aggregate(number=Count("pk"), total=Sum("pk"))
    return found["number"], int(found["total"] or 0)  # PostgreSQL sums up to a Decimal


def _rows_since(name: str, known: Sequence[int] | int) -> QuerySet[Model]:
    """Return the rows of a table that are not known. One that is committed after another with a higher key is among
    them: the rows up to that key are others then.
    """
    newest, *check = known if isinstance(known, Sequence) else (known,)  # as releases before 1.1 stored it
    is_complete = tuple(check) == _check(name, newest)
    rows = NAMED[name]._default_manager.order_by("pk")
    return rows.filter(pk__gt=newest if is_complete else newest - WINDOW)
