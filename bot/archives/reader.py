"""Read an archive into the database, from where the last run stopped.

Stage one looks at bytes only (prefilter.py), stage two files what passed (batch.py), many mails per transaction, and
the cursor is saved in the same transaction. A bad mail affects no other (DESIGN rule 6): it is stored whole with its
error, and the checkpoint moves on.

The first mails of an epoch are looked at here, the rest in a process of its own, ahead of the filing. git unpacks on
one core; looking at the bytes takes about as long again, and so does filing where robots post: done by one process they
would wait for each other. The result does not depend on which process looks, since what is tracked is asked only here,
mail by mail, in the order of the archive (`Prefilter.decide`).

`read_mirror` makes one pass over a configured archive: lease, fetch, read, release. Whatever fails is stored, and
shown in the review queue.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded  # what Celery raises, without Celery
from django.db import OperationalError, transaction
from django.db.models import Count, F, Model, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from bot.archives.batch import Passed, ReadTally, claim_pending, parsed, take
from bot.archives.files import RawMail, head_of
from bot.archives.filing import MailFiler
from bot.archives.known_reports import NameIndex, awaited_keys, keys_of_culprit, tracked_keys
from bot.archives.prefilter import Look, Passes, Prefilter, key_of_message
from bot.archives.public_inbox import EpochSource, fetch, is_mirror, next_epoch
from bot.archives.sources import Source, open_sources, shown
from bot.git.repository import Busy, Unreadable
from bot.leases import acquire, extend, release
from bot.mail.limits import MAX_VALUE
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.processes import FORKING, fork, kill, widen
from tracker.models import Archive, Message, Mirror, OutgoingMail, RawMessage, Report
from tracker.services import database
from tracker.services.database import Lock

# --- The first look ---

FEW = 500  # mails that are looked at here: a process costs more
_AT_ONCE = 250  # mails sent at once
_MOST_BYTES = 1 << 20  # of these mails
_MOST_HELD = 16 << 20  # with those that are not sent
_AHEAD = 32  # slices that wait here at most


@dataclass(frozen=True, slots=True)
class Prefiltered:
    """A mail of an epoch, and what the prefilter sees in it.

    `raw` is None if the other process, which doesn't learn what is filed meanwhile, saw no reason to send it; if
    there is one, it is read again from git. The last mail is always sent. `size`: its length in bytes.
    """

    position: str
    read_to: str | None
    size: int
    raw: bytes | None
    look: Look


_Sent = list[tuple[Any, ...]]  # the fields of `Prefiltered`, and of its look


def read_ahead(source: EpochSource, cursor: str, goal: str, prefilter: Prefilter) -> Iterator[Prefiltered | None]:
    """Yield the mails after `cursor` up to `goal`, oldest first, each with what the prefilter sees in it.

    Yields None while it has to wait for more: the time to file what passed. Raises Unreadable as the source does, and
    if the other process was killed.
    """
    last = None
    with closing(source.mails(cursor, goal)) as mails:
        for mail in islice(mails, FEW):
            yield _looked(mail, prefilter)
            last = mail
        # Where a mail could not be read, only the end of the pass says so.
        # On one core only, a second process would just be in the way.
        if last is None or last.read_to != last.position or len(os.sched_getaffinity(0)) < 2:
            yield from (_looked(mail, prefilter) for mail in mails)
            return
        if next(mails, None) is None:
            return
    yield from _from_process(source, last.position, goal, prefilter)


def _looked(mail: RawMail, prefilter: Prefilter) -> Prefiltered:
    return Prefiltered(mail.position, mail.read_to, len(mail.raw), mail.raw, prefilter.look(mail.raw))


def _from_process(source: EpochSource, since: str, goal: str, prefilter: Prefilter) -> Iterator[Prefiltered | None]:
    """Yield what a forked process reads and looks at; it ends with this one, and when the reader stops."""
    with FORKING:
        receiver, sender = Pipe(duplex=False)
        # The fork has all code loaded, and the patterns compiled.
        pid = fork(partial(_send, receiver, sender, source, since, goal, prefilter))
        sender.close()  # so that the end of the process is the end of the pipe
    arrived: Queue[_Sent | Exception | None] = Queue(_AHEAD)
    receiving = Thread(target=_receive, args=(receiver, arrived), daemon=True)  # while this one files
    receiving.start()
    try:
        while True:
            if arrived.empty():
                yield None
            sent = arrived.get()
            if isinstance(sent, EOFError):
                raise Unreadable(f"{source.epoch}: the process that read it was killed; the next run resumes")
            if isinstance(sent, Exception):
                raise sent
            if sent is None:
                return
            for position, read_to, size, raw, *look in sent:
                yield Prefiltered(position, read_to, size, raw, Look(*look))
    finally:
        kill(pid)
        while receiving.is_alive():
            with suppress(Empty):
                arrived.get(timeout=0.01)
        receiver.close()


def _receive(receiver: Connection, arrived: Queue[_Sent | Exception | None]) -> None:
    """Take slices from the pipe until the last one, an error, or the end of the process that sends them."""
    sent: _Sent | Exception | None = []
    while isinstance(sent, list):
        try:
            sent = receiver.recv()
        except (EOFError, OSError):
            sent = EOFError()
        arrived.put(sent)


def _send(
    receiver: Connection, sender: Connection, source: EpochSource, since: str, goal: str, prefilter: Prefilter
) -> None:
    """Look at the mails, and send them in slices, then None, or the error that ended it. Uses no database."""
    receiver.close()  # so that the end of the reader is the end of the pipe
    widen(sender.fileno())
    end: Exception | None = None
    mails: list[Prefiltered] = []
    passed: list[bool] = []
    size = held = 0  # bytes to send, and in memory
    try:
        for mail in source.mails_after(since, goal):
            mails.append(_looked(mail, prefilter))
            passed.append(prefilter.decide(mails[-1].look) is not Passes.NOT)
            size += len(mail.raw) if passed[-1] else 0
            held += len(mail.raw)
            if len(mails) >= _AT_ONCE or size >= _MOST_BYTES or held >= _MOST_HELD:
                sender.send(_to_send(mails, passed))
                mails, passed, size, held = [], [], 0, 0
    except (Unreadable, OSError) as error:
        end = error
    sender.send(_to_send(mails, passed))  # what was read before an error, too
    sender.send(end)


def _to_send(mails: Sequence[Prefiltered], passed: Sequence[bool]) -> _Sent:
    """Return the fields of mails, without the bytes of those that did not pass, but for the last one."""
    sent: _Sent = []
    for number, (mail, is_sent) in enumerate(zip(mails, passed, strict=True), 1):
        raw, look = mail.raw if is_sent or number == len(mails) else None, mail.look
        seen = (look.names, look.own, look.ours, look.may_be_report, look.may_be_persons)
        sent.append((mail.position, mail.read_to, mail.size, raw, *seen))
    return sent


# --- Reading a source ---

EVERY = 2.0  # seconds of reading that a crash may lose
MOST = 500  # mails filed per transaction
MOST_BYTES = 16 << 20  # of these mails
WORTH_FILING = 16  # mails that are filed while the next ones are being unpacked
AT_ONCE = 100  # mails that the index found, read together
WINDOW = 1000  # rows: more than concurrent transactions add
NAMED: Mapping[str, type[Model]] = {"message": Message, "report": Report, "sent": OutgoingMail}


def read_source(
    source: Source,
    settings: BotSettings,
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
    archive, _ = Archive.objects.get_or_create(path=source.name, defaults={"kind": source.kind})
    if archive.kind != source.kind:  # read before 2.0, or something else has this path now
        archive.kind = source.kind
        archive.save(update_fields=["kind"])
    with ExitStack() as stack:
        if source.exclusive:
            acquire(archive, lease)
            stack.callback(release, archive)
        try:
            goal = source.goal()
            done = bool(goal) and not again and source.is_done(archive.cursor, goal)
            if done and not has_names_to_search(source, archive):
                Archive.objects.filter(pk=archive.pk).update(read_at=now, error="")
                return ReadTally()
            archive.cursor = "" if again else source.resume(archive.cursor)
            reading = _SourceReading(source, archive, settings, now, lease if source.exclusive else None)
            # Where there is an index, mails come with what the prefilter sees in them; None: none is ready.
            mails: Iterator[RawMail | Prefiltered | None] = (
                read_ahead(source, archive.cursor, goal, reading.prefilter)
                if isinstance(source, EpochSource)
                else source.mails(archive.cursor, goal)
            )
            try:
                for mail in mails if not done else ():
                    if reading.take(mail):
                        progress(reading.tally.seen)
            except (Unreadable, OSError):
                reading.save()  # what was read before the failure
                raise
            reading.save(goal)
        except Exception as error:
            Archive.objects.filter(pk=archive.pk).update(error=" ".join(str(error).split())[:1000])
            raise
    return reading.tally


def has_names_to_search(source: Source, archive: Archive) -> bool:
    """Whether something was filed since the index of an archive was last searched."""
    return isinstance(source, EpochSource) and bool(archive.cursor) and archive.searched != newest_names()


class _SourceReading:
    """One pass over a source: stage one for each mail, stage two for many at once, and the saved position."""

    def __init__(
        self, source: Source, archive: Archive, settings: BotSettings, now: datetime, lease: timedelta | None
    ) -> None:
        self.source, self.archive, self.now, self.lease = source, archive, now, lease
        self.learnt = newest_names()  # the rows whose keys the prefilter has, and perhaps newer ones
        self.prefilter = Prefilter(tracked_keys(), settings, awaited_keys())
        self.filer = MailFiler(settings, now)
        self.index: NameIndex | None = None
        if isinstance(source, EpochSource):
            # The index up to the archive's cursor; without one the archive is read from its beginning
            self.index = NameIndex(archive)
            if self.index.count < source.count(archive.cursor):
                archive.cursor = ""
            self.index.truncate(source.count(archive.cursor))
            self.learnt = archive.searched
        self.tally = ReadTally()
        self.passed: list[Passed] = []
        self.size = 0  # bytes in `passed`
        # Others that passed, whose bytes are only in the archive: by position, `read_to`, and the mails seen up to them
        self.unsent: dict[str, tuple[str | None, int]] = {}
        self.last: RawMail | Prefiltered | None = None
        self.newest = b""  # the last mail whose bytes are here
        self.saved = 0  # mails up to the saved cursor
        self.flush_at = time.monotonic() + EVERY

    def take(self, mail: RawMail | Prefiltered | None) -> bool:
        """Take one mail, without a query if it does not concern us; with None, file what passed while it has to wait
        for more. Return whether mails and the cursor were saved.
        """
        if mail is None:
            full = len(self.passed) + len(self.unsent) >= WORTH_FILING
        else:
            self.tally.seen += 1
            self.last = mail
            if isinstance(mail, RawMail):
                why, size = self.prefilter.passes(mail.raw), len(mail.raw)
            else:
                assert self.index is not None
                why, size = self.prefilter.decide(mail.look), mail.size
                self.index.add(mail.position, mail.look.names)
            self.newest = mail.raw or self.newest
            if why is not Passes.NOT:
                if mail.raw is None:
                    self.unsent[mail.position] = (mail.read_to, self.tally.seen)
                else:
                    raw = RawMail(mail.raw, mail.position, mail.read_to)
                    self.passed.append(Passed(raw, why, seen=self.tally.seen))
                self.size += size
            full = len(self.passed) + len(self.unsent) >= MOST or self.size >= MOST_BYTES
            full = full or time.monotonic() >= self.flush_at
        if full:
            self.save()
        return full

    def save(self, goal: str | None = None) -> None:
        """File what passed, and save the cursor with it: after the last mail, or finally at `goal`, past whatever
        follows it. Workers file one at a time, so that each sees others' mail.
        """
        # Before the transaction: fetch the keys that the mails are signed with, and parse them
        if self.unsent:
            assert isinstance(self.source, EpochSource)
            for mail in self.source.at(list(self.unsent)):
                read_to, seen = self.unsent[mail.position]
                self.passed.append(Passed(replace(mail, read_to=read_to), Passes.TRACKED, seen=seen))
            self.passed.sort(key=lambda passed: passed.seen)
        if self.filer.settings.trust_anchors.warm((passed.mail.raw for passed in self.passed), self.now):
            self.filer.sandbox.close()  # its child does not know these keys
        waiting = self.passed
        while True:
            self.passed = parsed(waiting, self.filer.sandbox)
            waiting = waiting[len(self.passed) :]
            if not waiting:
                break
            self._file(self.passed[-1].mail, self.passed[-1].seen)
        self._file(self.last, self.tally.seen, goal)
        self.passed, self.unsent, self.size, self.last = [], {}, 0, None
        self.flush_at = time.monotonic() + EVERY

    def _file(self, last: RawMail | Prefiltered | None, upto: int, goal: str | None = None) -> None:
        """File what is parsed, and save the cursor with it: after a mail, the last of so many that were seen."""
        archive, seen = self.archive, upto - self.saved
        with transaction.atomic():
            tally = self._take()
            position = goal or ""
            if goal is not None:
                if self.index is None:
                    tally += claim_pending(self.filer, self.prefilter)
                archive.read_at, archive.error = self.now, ""
            elif last and self.source.resumes:
                position = last.position if last.read_to is None else last.read_to
            if position:
                archive.cursor = self.source.after(archive.cursor, position, seen)
            if self.lease:
                extend(archive, self.lease)
            archive.seen += seen
            archive.kept += tally.kept
            if last:
                moments = (archive.newest_at, parse(head_of(self.newest)[:MAX_VALUE] + b"\n\n").date)
                archive.newest_at = max((moment for moment in moments if moment), default=None)
            archive.save(update_fields=["cursor", "seen", "kept", "newest_at", "read_at", "error", "searched"])
            self.tally += tally
            self.saved = upto

    def _take(self) -> ReadTally:
        """File what passed, and what the index finds by the names that matter now."""
        database.take(Lock.FILING)
        self.filer.clear_cache()  # others may have changed what it knows of reports
        # Track what others have filed in the meantime
        newest = newest_names()
        newer: dict[str, QuerySet[Model]] = {}
        for name, model in NAMED.items():
            checkpoint = self.learnt.get(name, 0)
            last, *check = [checkpoint] if isinstance(checkpoint, int) else checkpoint  # a number before 1.1
            # A row can be committed after one with a higher key. Then the check differs: the last WINDOW keys are new.
            since = last if tuple(check) == _check(name, last) else last - WINDOW
            newer[name] = model._default_manager.order_by("pk").filter(pk__gt=since)
        keys: list[bytes] = []
        for name in ("message", "sent"):
            keys += map(key_of_message, newer[name].values_list("message_id", flat=True))
        for sha, title in newer["report"].values_list("culprit__sha", "culprit__title"):
            keys += keys_of_culprit(sha, title)
        for key in keys:
            self.prefilter.tracked.add(key)
        self.learnt = newest
        learnt = [key.decode("utf-8", "surrogateescape") for key in keys]
        if self.index is None:
            return take(self.passed, self.archive, self.filer, self.prefilter)
        self.index.save()
        tally = take(self.passed, self.archive, self.filer, self.prefilter, self._search, learnt)
        # It has the lock, so all new messages are its own. A report may be another worker's: it is searched next time.
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
            handled = set(done.values_list("position", flat=True))
            chunk = [position for position in chunk if position not in handled]
            yield [Passed(mail, Passes.NAMED) for mail in self.source.at(chunk)]


def newest_names() -> dict[str, list[int]]:
    """Return how far the rows with names are known, as `Archive.searched` stores it."""
    return {name: _newest(name) for name in NAMED}


def _newest(name: str) -> list[int]:
    """Return the newest primary key of a table, and a check: how many of the last WINDOW keys exist, and their sum."""
    newest = NAMED[name]._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0
    return [newest, *_check(name, newest)]


def _check(name: str, newest: int) -> tuple[int, int]:
    rows = NAMED[name]._default_manager.filter(pk__gt=newest - WINDOW, pk__lte=newest)
    totals = rows.aggregate(number=Count("pk"), total=Sum("pk"))
    return totals["number"], int(totals["total"] or 0)  # PostgreSQL sums up to a Decimal


# --- Configured archives ---

_MOST_DOUBLED = 5  # times
_REMOTE_EPOCH = 30.0  # seconds for asking whether there is a new epoch


@dataclass(frozen=True, slots=True)
class MirrorPatience:
    """`fetch`: seconds for a fetch, None for no fetch; `lease`: how long a worker that has died keeps others away.

    `interval`: between two fetches, and between two attempts at an archive that fails. Both double with every failure:
    a large fetch gets its time, and a server that hangs takes ever less of the workers'. `longest`: of a fetch.
    """

    fetch: float | None
    lease: timedelta
    interval: timedelta
    longest: float = 900.0

    def fetching(self, failures: int) -> float:
        """Return the seconds for the fetch after so many failures."""
        first = self.fetch or 0.0
        return min(first * (1 << min(failures, _MOST_DOUBLED)), max(self.longest, first))

    def waiting(self, failures: int) -> timedelta:
        """Return the time until the next attempt."""
        return self.interval * (1 << min(max(0, failures - 1), _MOST_DOUBLED))


@dataclass(frozen=True, slots=True)
class MirrorPass:
    """What was read; `has_next`: whether a new epoch waits to be cloned; `error`: why it is not complete, or ""."""

    tally: ReadTally = field(default_factory=ReadTally)
    has_next: bool = False
    error: str = ""


def read_mirror(address: str, settings: BotSettings, now: datetime, patience: MirrorPatience) -> MirrorPass:
    """Fetch and read one configured archive, if it is due. `address`: as in PERFWORK_ARCHIVES.

    Raises Busy if another worker has it. No other error of the archive is raised: each is stored on its row.
    """
    mirror, _ = Mirror.objects.get_or_create(path=shown(address))
    fetches = patience.fetch is not None and "://" not in address and is_mirror(Path(address))
    is_rationed = fetches or mirror.error
    if is_rationed and mirror.tried_at and now - mirror.tried_at < patience.waiting(mirror.failures):
        return MirrorPass()
    acquire(mirror, patience.lease + timedelta(seconds=patience.fetching(mirror.failures)))
    try:
        Mirror.objects.filter(pk=mirror.pk).update(tried_at=now)
        try:
            done = _fetch_and_read(mirror, address, settings, now, patience, fetches=fetches)
        except SoftTimeLimitExceeded:
            done = MirrorPass(error=f"{mirror}: not finished within the time limit; it continues at the next attempt")
        # Store the error, and since when there has been one; nothing is written while all is well.
        row = Mirror.objects.filter(pk=mirror.pk)
        if error := " ".join(done.error.split())[:1000]:
            row.update(error=error, failing_since=Coalesce("failing_since", now), failures=F("failures") + 1)
        else:
            row.exclude(error="").update(error="", failing_since=None, failures=0)
        return done
    finally:
        release(mirror)


def forget_others(addresses: Iterable[str]) -> None:
    """Forget the archives that are not in PERFWORK_ARCHIVES any more, so that nobody is told that they are stalled."""
    Mirror.objects.exclude(path__in=[shown(address) for address in addresses]).delete()


def _fetch_and_read(
    mirror: Mirror, address: str, settings: BotSettings, now: datetime, patience: MirrorPatience, *, fetches: bool
) -> MirrorPass:
    tally, errors = ReadTally(), []
    try:
        if fetches:
            # A stale archive does not count as read: it may lack a copy that resolves a doubt.
            fetch(Path(address), patience.fetching(mirror.failures))
        sources = open_sources(address)
    except (Unreadable, OSError) as error:
        return MirrorPass(error=str(error))
    for source in sources:
        extend(mirror, patience.lease)
        try:
            tally += read_source(source, settings, now, lease=patience.lease)
        except Busy:
            continue  # `read` is at it
        except (Unreadable, OSError, OperationalError) as error:
            errors.append(str(error))
    has_next = fetches and next_epoch(Path(address), min(_REMOTE_EPOCH, patience.fetch or 0)) is not None
    return MirrorPass(tally, has_next, "; ".join(errors))
