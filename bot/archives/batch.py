"""Stage two: parse the mails that passed the prefilter, and file them one by one.

`take` files a batch in the caller's transaction, one savepoint a mail: a mail that can't be read is quarantined with
its error, and the next one is filed (DESIGN rule 6). The bytes of mail that concerns us are stored once, as received,
before they are read (DESIGN rule 1).

A mail that seems to be about an unknown report becomes a *pending reference* under each key that it names, and is
filed once one of these is tracked. So filing one mail may release others, round by round, as deep as threads go.
Where an archive has a name index, such mail is not stored; the index is searched for it instead. If a report's
people, verdict or title change, its thread is read again, since its replies may mean something else now.

A replay reads stored mail again with the current code: the quarantined mail, a transaction a slice, or all of it, in
one transaction. What people decided stays.
"""

from __future__ import annotations

import hashlib
import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from billiard.exceptions import SoftTimeLimitExceeded  # what Celery raises, without Celery
from django.db import transaction
from django.db.models import Q, QuerySet

from bot.archives.files import RawMail
from bot.archives.filing import Filed, MailFiler
from bot.archives.known_reports import awaited_keys, keys_in_database, keys_of_culprit, tracked_keys
from bot.archives.prefilter import Passes, Prefilter, key_of_message
from bot.archives.sandbox import FILING_CPU, FILING_CPU_OF_ALL, Sandbox, Unparsable, limited_cpu
from bot.mail.limits import OverLimit
from bot.mail.settings import BotSettings
from bot.replies.reading import Reading, SenderKind, check_limits
from bot.second_opinion import suggest_stored
from tracker.models import (
    Archive,
    Event,
    Finding,
    Message,
    OutgoingMail,
    PendingReference,
    RawMessage,
    Report,
    Suggestion,
)
from tracker.services import database, event_log, person_reports, report_summary
from tracker.services.database import Lock, is_interruption

log = logging.getLogger(__name__)

# --- Counts ---


@dataclass(slots=True)
class ReadTally:
    """Mails seen, and of those: report mails (and how many repeat a culprit), replies, already known, pending,
    quarantined.
    """

    seen: int = 0
    reports: int = 0
    repeated: int = 0
    replies: int = 0
    offers: int = 0  # in which a person seems to report a regression
    known: int = 0
    pending: int = 0
    quarantined: int = 0
    kept: int = 0  # newly stored

    def __iadd__(self, other: ReadTally) -> ReadTally:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


# --- Filing a batch ---

MOST_KEYS = 40  # per pending mail: with what it says, it makes at most 50 rows
ROUNDS = 1000  # a pending mail may wait for another one, as deep as threads go
AT_ONCE = 500
# Seconds after which what is parsed is filed, so that mails that each take long save their progress; and for those that
# are found by what was filed, in its transaction.
PARSING, PARSING_FOUND = 60.0, 300.0
THREAD = 2000  # mails per thread
CHANGES = 10  # rounds in which reports that have changed may change others
ROWS = 20  # mails that are decompressed at once
SLICE = 8 << 20  # bytes of pending mail that are read together


@dataclass(frozen=True, slots=True)
class Passed:
    """A mail that passed stage one, and why; `source` if its bytes are stored already, `reading` if it is parsed, or
    why it can't be.
    """

    mail: RawMail
    why: Passes
    source: RawMessage | None = None
    reading: Reading | Exception | None = None
    seen: int = 0  # mails of its source up to this one


Search = Callable[[Sequence[str]], Iterable[list[Passed]]]


def parsed(passed: Sequence[Passed], sandbox: Sandbox) -> list[Passed]:
    """Parse the mails that will be filed, before the lock that workers file under: it takes most of the time. Return
    those that were parsed within PARSING seconds, which are the first, and all as a rule.

    What can't be parsed carries its error, for which `take` quarantines it.
    """
    until = time.monotonic() + PARSING
    done: list[Passed] = []
    for one in passed:
        if done and time.monotonic() > until:
            break
        unread = one.reading is None and one.why is not Passes.MAYBE
        done.append(replace(one, reading=sandbox.understand(one.mail.raw)) if unread else one)
    return done


def take(
    passed: Sequence[Passed],
    archive: Archive | None,
    filer: MailFiler,
    prefilter: Prefilter,
    search: Search | None = None,
    learnt: Sequence[str] = (),
) -> ReadTally:
    """File mails in the caller's transaction, and then the pending mail that waited for them.

    `search`: finds mail in the archive's index by the keys that it names; without an index, what may matter some day is
    stored as pending. `learnt`: keys that are tracked since the last call, by others.
    """
    tally, waits = ReadTally(), search is None
    if waits:
        maybe = [entry for entry in passed if entry.why is Passes.MAYBE and not entry.source]
        store_pending(maybe, archive, filer, prefilter, tally)
    passed = [entry for entry in passed if entry.why is not Passes.MAYBE or entry.source]
    new_keys = [*learnt, *_file(passed, archive, filer, prefilter, tally, waits=waits)]
    for _ in range(ROUNDS):
        if not new_keys:
            break
        keys, new_keys = new_keys, []
        for batch in (*_pending_for(keys), *(search(keys) if search else ())):
            new_keys += _file(batch, archive, filer, prefilter, tally, waits=waits)
    _read_answers_again(filer)
    # Read the threads of changed reports again: the roles of their writers, or what they mean, may have changed
    for pk in _in_rounds(filer.changed_reports):
        elsewhere = Event.objects.filter(report=pk, actor="").exclude(message_id="").values("message_id")
        suggested = Suggestion.objects.filter(report=pk).exclude(message_id="").values("message_id")
        about = Q(report=pk) | Q(message_id__in=elsewhere) | Q(message_id__in=suggested)
        _read_again(Message.objects.filter(about), filer)
        _read_answers_again(filer)
    filer.refold()
    return tally


def _read_answers_again(filer: MailFiler) -> None:
    """Read the answers again to mails that went to another report or thread, and the answers to those."""
    for _ in range(ROUNDS):
        moved, filer.moved_now = filer.moved_now, []
        if not moved:
            break
        _read_again(Message.objects.filter(in_reply_to__in=moved), filer)


def _read_again(messages: QuerySet[Message], filer: MailFiler) -> None:
    """File mails anew by what is known now; one that can't be read stays as it was read when it was filed."""
    sources = RawMessage.objects.filter(pk__in=messages.values("source")).order_by("pk")[:THREAD]
    for source in sources.iterator(chunk_size=20):
        reading = filer.sandbox.understand(source.raw)
        if isinstance(reading, Exception):
            continue
        filer.load_reports([reading])
        try:
            filer.sandbox.allow(FILING_CPU)
            with transaction.atomic(), limited_cpu(FILING_CPU):
                filer.file_again(reading)
        except (OverLimit, Unparsable) as error:
            log.warning("not read again: %s: %s", source.position, error)
            filer.clear_cache()  # what it cached from this mail was rolled back


def _in_rounds(changed: Callable[[], list[int]]) -> Iterator[int]:
    """Yield reports that have changed, and those that change thereby."""
    for _ in range(CHANGES):
        yield from (reports := changed())
        if not reports:
            return


def _file(
    passed: Sequence[Passed],
    archive: Archive | None,
    filer: MailFiler,
    prefilter: Prefilter,
    tally: ReadTally,
    *,
    waits: bool,
) -> Iterator[str]:
    """File mails. Yields the keys that are tracked from now on. `waits`: whether unfiled mail is stored."""
    readings = _understood(passed, archive, filer, tally)
    filer.load_reports([reading for _, reading in readings])
    unfiled: list[Passed] = []
    begin = time.process_time() + filer.sandbox.spent
    for number, (entry, reading) in enumerate(readings):
        try:
            left = FILING_CPU_OF_ALL - (time.process_time() + filer.sandbox.spent - begin)
            most = min(FILING_CPU, max(left, 0.5))
            filer.sandbox.allow(most)
            with transaction.atomic(), limited_cpu(most):
                filed = _take(entry, reading, archive, filer)
        except (SoftTimeLimitExceeded, MemoryError):
            raise  # the host's fault, not the mail's: nothing may be skipped for it
        except Exception as error:  # hostile mail may raise anything: it is stored, and the next one is read
            # A name that is too long is the mail's fault: no index of PostgreSQL holds more than 2,704 bytes.
            if is_interruption(error) and type(error.__cause__).__name__ != "ProgramLimitExceeded":
                raise
            _quarantine(entry, archive, filer, error, tally)
            filer.clear_cache()  # what it cached from this mail was rolled back
            filer.load_reports([reading for _, reading in readings[number + 1 :]])
            continue
        relevant = entry.why in (Passes.TRACKED, Passes.REPORT, Passes.PERSON) and not filer.is_of_a_bulletin(reading)
        if waits and relevant and not filed.message_id:
            unfiled.append(entry)
        tally.reports += filed.is_report
        tally.offers += filed.is_offer and not filed.was_known
        tally.repeated += filed.is_repeated
        tally.replies += filed.is_reply
        tally.known += filed.was_known and filed.message_id not in filer.filed_now
        if not filed.message_id or filed.was_known:
            continue
        tally.kept += not entry.source
        prefilter.tracked.add(key_of_message(filed.message_id))
        yield filed.message_id
        opened, filer.opened_now = filer.opened_now, []
        for message_id in opened:
            prefilter.tracked.add(key_of_message(message_id))
            yield message_id
        if filed.report:
            for key in keys_of_culprit(filed.report.culprit.sha, filed.report.culprit.title):
                prefilter.tracked.add(key)
                yield key.decode()
    store_pending(unfiled, archive, filer, prefilter, tally)


def _understood(
    passed: Sequence[Passed], archive: Archive | None, filer: MailFiler, tally: ReadTally
) -> list[tuple[Passed, Reading]]:
    """Parse what is not parsed yet; what can't be parsed is quarantined.

    Mails that were erased on request are left out: the archives that they came from still have them.
    """
    digests = {hashlib.sha256(entry.mail.raw).hexdigest(): entry.mail.raw for entry in passed}
    rows = RawMessage.objects.filter(digest__in=digests, erased_at__isnull=False)
    erased = {digests[digest] for digest in rows.values_list("digest", flat=True)}
    passed = [entry for entry in passed if entry.mail.raw not in erased]
    readings: list[tuple[Passed, Reading]] = []
    until = time.monotonic() + PARSING_FOUND
    for entry in passed:
        reading = entry.reading
        try:
            if reading is None and time.monotonic() > until:
                raise OverLimit("not read: those of its thread took too long together; `replay` reads it")
            reading = reading or filer.sandbox.understand(entry.mail.raw)
            if isinstance(reading, Exception):
                raise reading
            check_limits(reading)
        except ValueError as error:
            _quarantine(entry, archive, filer, error, tally)
        else:
            readings.append((entry, reading))
    return readings


def _take(passed: Passed, reading: Reading, archive: Archive | None, filer: MailFiler) -> Filed:
    """File one mail; it waits for whatever it names that is not there yet."""
    if passed.source and passed.source.error:
        passed.source.error = ""  # it can be read now
        passed.source.save(update_fields=["error"])
    if not reading.mail.message_id:
        if filer.concerns(reading):
            raise ValueError("the mail has no Message-ID, so it can't be filed")
        return Filed()
    filed = filer.file(reading, partial(_kept, passed, archive, filer))
    if filed.was_known and passed.source:
        filer.file_again(reading)
    missing_keys = filer.missing_keys(reading)
    if passed.source:
        outdated = PendingReference.objects.filter(source=passed.source)
        (outdated if filed.message_id else outdated.filter(own=False)).exclude(key__in=missing_keys).delete()
    if missing_keys and filed.message_id and not filed.was_known:
        _add_pending_references([(_kept(passed, archive, filer), dict.fromkeys(missing_keys, False))])
    return filed


def _kept(passed: Passed, archive: Archive | None, filer: MailFiler) -> RawMessage:
    """Store the bytes, once, and return the row; a quarantined one leaves quarantine."""
    if passed.source:
        return passed.source
    row, made = RawMessage.objects.get_or_create(
        digest=hashlib.sha256(passed.mail.raw).hexdigest(),
        defaults={
            "archive": archive,
            "position": passed.mail.position,
            "compressed": zlib.compress(passed.mail.raw),
            "received_at": filer.now,
        },
    )
    if not made and row.error:
        row.error = ""  # it can be read now
        row.save(update_fields=["error"])
    return row


def _quarantine(passed: Passed, archive: Archive | None, filer: MailFiler, error: Exception, tally: ReadTally) -> None:
    reason = " ".join(str(error).split())[:500]
    log.warning("quarantined %s %s: %s", archive or "mail", passed.mail.position, reason)
    with transaction.atomic():
        source = _kept(passed, archive, filer)
        known = isinstance(error, OverLimit | Unparsable)  # these say all in words
        source.error = reason if known else f"{type(error).__name__}: {reason}"
        source.save(update_fields=["error"])
    tally.quarantined += 1
    tally.kept += 1


# --- Pending mail ---


def store_pending(
    maybe: Sequence[Passed], archive: Archive | None, filer: MailFiler, prefilter: Prefilter, tally: ReadTally
) -> None:
    """Store mails that seem to be about an unknown report, unparsed, with the keys that they name."""
    named = {entry.mail.raw: keys for entry in maybe if (keys := prefilter.names(entry.mail.raw))}
    if not named:
        return
    mails = {hashlib.sha256(entry.mail.raw).hexdigest(): entry.mail for entry in maybe if entry.mail.raw in named}
    new = mails.keys() - set(RawMessage.objects.filter(digest__in=mails).values_list("digest", flat=True))
    RawMessage.objects.bulk_create(
        (
            RawMessage(
                digest=digest,
                archive=archive,
                position=mail.position,
                compressed=zlib.compress(mail.raw),
                received_at=filer.now,
            )
            for digest, mail in mails.items()
            if digest in new
        ),
        ignore_conflicts=True,
    )
    rows = list(RawMessage.objects.filter(digest__in=mails).defer("compressed"))
    filed = set(Message.objects.filter(source__in=[row.pk for row in rows]).values_list("source", flat=True))
    waiting = [row for row in rows if row.pk not in filed and row.erased_at is None]
    _add_pending_references((row, named[mails[row.digest].raw]) for row in waiting)
    tally.pending += len(new)
    tally.kept += len(new)


def _add_pending_references(waiting: Iterable[tuple[RawMessage, Mapping[str, bool]]]) -> None:
    """Add pending references: a mail is read again once one of its keys is tracked. Each key maps to whether it is the
    mail's own, which means that the mail is not filed yet.
    """
    PendingReference.objects.bulk_create(
        (
            PendingReference(key=key, source=source, own=own)
            for source, keys in waiting
            for key, own in list(keys.items())[:MOST_KEYS]
        ),
        ignore_conflicts=True,
    )


def claim_pending(filer: MailFiler, prefilter: Prefilter) -> ReadTally:
    """File pending mail whose report came another way: from a lab, or from another worker at the same moment."""
    waiting_keys: list[str] = []
    reports = OutgoingMail.objects.exclude(report=None).values("message_id")
    for keys in (Message.objects.values("message_id"), reports, *keys_in_database()):
        waiting = PendingReference.objects.filter(key__in=keys, own=False, source__error="")
        waiting_keys += waiting.values_list("key", flat=True).distinct()[:AT_ONCE]
    tally = ReadTally()
    for pending in _pending_for(waiting_keys):
        tally += take(pending, None, filer, prefilter)
    return tally


def _pending_for(keys: Sequence[str]) -> Iterator[list[Passed]]:
    """Yield the mails that waited for one of these keys, in the order of their arrival, about SLICE bytes at a time."""
    pks: set[int] = set()
    for start in range(0, len(keys), AT_ONCE):
        rows = PendingReference.objects.filter(key__in=keys[start : start + AT_ONCE], source__error="")
        pks.update(rows.values_list("source", flat=True))
    size, passed = 0, []
    for start in range(0, len(order := sorted(pks)), ROWS):
        for source in RawMessage.objects.filter(pk__in=order[start : start + ROWS]).order_by("pk"):
            passed.append(Passed(RawMail(source.raw, source.position), Passes.MAYBE, source))
            size += len(passed[-1].mail.raw)
            if size > SLICE:
                yield passed
                size, passed = 0, []
    if passed:
        yield passed


def file_accepted(settings: BotSettings, now: datetime) -> ReadTally:
    """File the mails of offers that somebody has accepted, and what waits for them."""
    tally = ReadTally()
    if not (names := person_reports.waiting_messages()):
        return tally
    rows = RawMessage.objects.filter(offered__message_id__in=names, erased_at=None).order_by("pk")
    passed = [Passed(RawMail(row.raw, row.position), Passes.REPORT, row) for row in rows]
    with transaction.atomic():
        database.take(Lock.FILING)
        filer, prefilter = MailFiler(settings, now), Prefilter(tracked_keys(), settings, awaited_keys())
        tally += take(passed, None, filer, prefilter)
    return tally


# --- Replay ---

REPLAY_AT_ONCE = 200  # mails


@dataclass(frozen=True, slots=True)
class Replayed:
    """The number of mails that were read again, the tally, and the culprits of reports whose state changed."""

    mails: int
    tally: ReadTally
    changed: tuple[str, ...]


def replay_quarantine(
    settings: BotSettings, now: datetime, progress: Callable[[int], None] = lambda count: None
) -> Replayed:
    """Read quarantined mail again. Each slice is a transaction."""
    before = _states()
    tally, mails = _replay_read_again(RawMessage.objects.exclude(error=""), settings, now, progress)
    return Replayed(mails, tally, _changed(before))


@transaction.atomic
def replay_all(settings: BotSettings, now: datetime, progress: Callable[[int], None] = lambda count: None) -> Replayed:
    """Delete what was read from mail, and read all mail again, in one transaction. What people decided stays."""
    database.take(Lock.FILING)
    before = _states()
    mails = Message.objects.exclude(kind=SenderKind.SELF).filter(source__erased_at=None)  # those can't be read again
    ids = mails.values("message_id")
    reported = mails.filter(author_email__in=settings.robots).values("report")
    Finding.objects.filter(result=None, report__in=reported).delete()  # findings from results stay
    event_log.forget_mail(ids)
    PendingReference.objects.all().delete()
    mails.delete()
    rows = RawMessage.objects.exclude(message__kind=SenderKind.SELF).filter(erased_at=None)
    tally, count = _replay_read_again(rows, settings, now, progress)
    suggest_stored()
    event_log.refold(Report.objects.values_list("pk", flat=True))
    report_summary.refresh(Report.objects.values_list("pk", flat=True))
    return Replayed(count, tally, _changed(before))


def _replay_read_again(
    rows: QuerySet[RawMessage], settings: BotSettings, now: datetime, progress: Callable[[int], None]
) -> tuple[ReadTally, int]:
    prefilter, filer = Prefilter(tracked_keys(), settings, awaited_keys()), MailFiler(settings, now)
    tally, count, last = ReadTally(), 0, 0
    # In the order of arrival; a mail that is quarantined again is not read twice.
    while chunk := list(rows.filter(pk__gt=last).order_by("pk")[:REPLAY_AT_ONCE]):
        last = chunk[-1].pk
        passed = [Passed(RawMail(row.raw, row.position), Passes.REPORT, row) for row in chunk]
        with transaction.atomic():
            database.take(Lock.FILING)
            tally += take(passed, None, filer, prefilter)
        filer.clear_cache()
        count += len(chunk)
        progress(count)
    return tally, count


def _states() -> dict[str, str]:
    return dict(Report.objects.values_list("culprit__sha", "status"))


def _changed(before: dict[str, str]) -> tuple[str, ...]:
    return tuple(sorted(sha for sha, status in _states().items() if before.get(sha) != status))
