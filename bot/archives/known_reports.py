"""Which reports mails may be about, which mails of an archive name them, and which mails are missing.

Reports are loaded with a few queries for any number of mails. A *key* is what a mail names and the prefilter looks
for: a Message-ID, a culprit by its first digits, a culprit's title.

The *name index* of an archive says which of its mails name a key, to be found once that matters: an archive that is
its own store needs no copies of mail that may matter some day. The index holds, for every mail, its position and 32
bits of each name in it, sorted, in slices by those bits, so that a search reads a 64th of it per key. It is saved in
the transaction that saves the cursor. Two names in four thousand million look alike: a search may find a mail too
many, which costs a parse, and misses none.

A mail is missing from a tracked thread if we have a reply to it, but not the mail itself. The lore server is asked
for it, and again after a week.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Concat, Substr

from bot.archives.prefilter import DIGITS, key_of_commit, key_of_message, key_of_title
from bot.mail.authentication import AuthVerdict
from bot.replies.reading import Reading
from bot.replies.which_report import KnownReport, KnownReports, Thread
from bot.robot_reports.fields import benchmark_in
from tracker.domain.events import EventKind, Role
from tracker.models import (
    Archive,
    ArchiveNames,
    ArchivePositions,
    Message,
    OfferedReport,
    OutgoingMail,
    PendingReference,
    Report,
)

# --- Loading reports ---

Item = TypeVar("Item")
_AT_ONCE = 500  # names in one query
_LONGEST = 2000  # bytes of a name that an index can hold


def tracked_keys() -> Iterator[bytes]:
    """Yield all keys that stage one looks for: the mails of reports and offers, culprits and their titles."""
    for rows in (Message.objects, OutgoingMail.objects, OfferedReport.objects):
        for message_id in rows.values_list("message_id", flat=True).iterator(chunk_size=10_000):
            yield key_of_message(message_id)
    for sha, title in Report.objects.values_list("culprit__sha", "culprit__title").iterator(chunk_size=10_000):
        yield from keys_of_culprit(sha, title)


def awaited_keys() -> Iterator[bytes]:
    """Return the keys of mails that are stored but not filed yet."""
    unfiled = PendingReference.objects.filter(own=True).values_list("key", flat=True)
    return map(key_of_message, unfiled.iterator(chunk_size=10_000))


def keys_of_culprit(sha: str, title: str) -> Iterator[bytes]:
    yield key_of_commit(sha)
    if title:
        yield key_of_title(title)


def keys_in_database() -> Iterator[QuerySet[Report, Any]]:
    """Yield queries for the keys of all culprits: what `keys_of_culprit` yields, as text."""
    reports = Report.objects.order_by()
    commit = Concat(Value("commit "), Substr("culprit__sha", 1, DIGITS), output_field=TextField())
    title = Concat(Value("title "), "culprit__title", output_field=TextField())
    yield reports.annotate(key=commit).values("key")
    yield reports.exclude(culprit__title="").annotate(key=title).values("key")


def names_in(reading: Reading) -> list[str]:
    """Return every Message-ID that a mail names: its own, those it answers, those it links to."""
    links = (link.message_id for link in reading.links)
    answered = (*reading.mail.ancestors, *reading.bounce.message_ids)
    named = dict.fromkeys((reading.mail.message_id, *answered, *links))
    return [name for name in named if _is_searchable(name)]


class FiledMail(NamedTuple):
    """What makes a filed mail stay or make way for another one under its Message-ID."""

    trust: str
    author: str
    kind: str


def load(
    known_reports: KnownReports, rows: dict[str, Report], readings: Sequence[Reading], bulletins: set[str]
) -> dict[str, FiledMail]:
    """Add the reports that these mails may be about to `known_reports` and, by tag, to `rows`; add the ids of our own
    mails that are about no report to `bulletins`. Return what is filed already under the mails' own ids.
    """
    names = {name for reading in readings for name in names_in(reading)}
    read: dict[str, int] = {}
    threads: dict[str, Thread] = {}
    stored: dict[str, FiledMail] = {}
    sent: dict[str, int] = {}
    for chunk in _slices(sorted(names)):
        columns = ("message_id", "report_id", "thread", "trust", "author_email", "kind", "role")
        for row in Message.objects.filter(message_id__in=chunk).values_list(*columns):
            name, pk, thread, trust, author, kind, role = row
            read[name], threads[name], stored[name] = pk, Thread(thread), FiledMail(trust, author, kind)
            if role == Role.REPORTER and trust == AuthVerdict.PASS:
                known_reports.ours.add(name)
        for name, pk in OutgoingMail.objects.filter(message_id__in=chunk).values_list("message_id", "report_id"):
            if pk is None:
                bulletins.add(name)
            else:
                sent[name] = pk
                known_reports.ours.add(name)
    filed = sent | read
    tags: dict[int, str] = {report.pk: tag for tag, report in rows.items()}
    # Reports by mail, by tag, by page, and by the commits and titles that patches name
    pages = {link.page for reading in readings for link in (*reading.links, *reading.closes) if link.page}
    named_tags = pages.union(*(reading.tags for reading in readings))
    digits = pages.union(*((*reading.named_commits, reading.answered_culprit) for reading in readings)) - {""}
    titles = filter(_is_searchable, {title for reading in readings for title in reading.named_titles})
    conditions = [Q(pk__in=chunk) for chunk in _slices(sorted(set(filed.values()) - tags.keys()))]
    conditions += [Q(tag__in=chunk) for chunk in _slices(sorted(named_tags))]
    conditions += [Q(culprit__title__in=chunk) for chunk in _slices(sorted(titles))]
    # A range finds prefixes by the index, which LIKE does not everywhere; old reports have only ten digits.
    conditions += [Q(culprit__sha__gte=prefix[:10], culprit__sha__lt=prefix[:10] + "g") for prefix in sorted(digits)]
    for group in _slices(conditions, 100):
        for report in Report.objects.filter(reduce(or_, group)).select_related("culprit"):
            add_report(known_reports, rows, report)
            tags[report.pk] = report.tag
    for message_id, pk in filed.items():
        if pk in tags:
            known_reports.file(message_id, tags[pk], threads.get(message_id, Thread.REPORT))
    return {name: stored[name] for name in (reading.mail.message_id for reading in readings) if name in stored}


def add_report(known_reports: KnownReports, rows: dict[str, Report], report: Report) -> None:
    """Add a report to those that mails are matched with."""
    rows[report.tag] = report
    known_reports.add(
        KnownReport(
            id=report.tag,
            culprit="" if report.culprit.placeholder else report.culprit.sha,
            title=report.culprit.title,
            message_ids=(),
            authors=frozenset(report.authors) | report.verified_authors,
            people=report.people_addressed | report.culprit.people,
            verdict=report.verdict,
            benchmark=benchmark_in(report.title),
            verified=None if report.people_verified else report.verified_authors | report.verified_maintainers,
            reporters=frozenset(report.reporters) if report.of_person else frozenset(),
            unnamed=report.of_person and not report.person_report.culprit,
            joined=report.of_person and _is_joined(report),
        )
    )


def _is_joined(report: Report) -> bool:
    """Whether a lab measured what a person reported, or others report it, too."""
    return report.findings.exists() or report.events.filter(kind=EventKind.REPORTED).count() > 1


def _is_searchable(name: str) -> bool:
    """Whether the database can look the name up."""
    return bool(name) and len(name.encode("utf-8", "replace")) <= _LONGEST and "\0" not in name


def _slices(items: Sequence[Item], size: int = _AT_ONCE) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


# --- Name index ---

_SLICES = 64
_SHIFT = 32 + 32 - 6  # an entry is 32 bits of a name and the number of the mail; the first six bits are the slice
_NUMBER = np.uint64(0xFFFFFFFF)  # the bits of an entry that hold the number of the mail
_LONGEST_ROW = 100_000  # characters of positions, after which another row is begun
_ROWS = 16  # rows of a slice that are merged into one


class NameIndex:
    """The index of one archive, to which mails are added in the order of the archive."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        last = ArchivePositions.objects.filter(archive=archive).order_by("-first").first()
        self.count = last.first + len(last.positions.split()) if last else 0
        self._entries = array("Q")
        self._positions: list[str] = []

    def add(self, position: str, names: Iterable[bytes]) -> None:
        """Add the next mail."""
        number = self.count
        self.count += 1
        self._positions.append(position)
        self._entries.extend(crc32(name) << 32 | number for name in names)

    def save(self) -> None:
        """Store what was added, in the caller's transaction."""
        if self._positions:
            last = ArchivePositions.objects.filter(archive=self.archive).order_by("-first").first()
            text = " ".join(self._positions)
            if last and len(last.positions) < _LONGEST_ROW:
                last.positions += f" {text}"
                last.save(update_fields=["positions"])
            else:
                first = self.count - len(self._positions)
                ArchivePositions.objects.create(archive=self.archive, first=first, positions=text)
        if self._entries:
            entries = np.sort(np.frombuffer(self._entries, np.uint64))
            bounds = np.searchsorted(entries, np.arange(1, _SLICES, dtype=np.uint64) << np.uint64(_SHIFT))
            ArchiveNames.objects.bulk_create(
                ArchiveNames(archive=self.archive, slice=number, entries=piece.tobytes())
                for number, piece in enumerate(np.split(entries, bounds))
                if len(piece)
            )
            # Merge the rows of slices that have many, so that a search reads few
            pks: dict[int, list[int]] = defaultdict(list)
            for pk, number in ArchiveNames.objects.filter(archive=self.archive).values_list("pk", "slice"):
                pks[number].append(pk)
            for number in pks:
                if len(pks[number]) >= _ROWS:
                    rows = ArchiveNames.objects.filter(pk__in=pks[number])
                    blobs = rows.values_list("entries", flat=True)
                    merged = np.sort(np.concatenate([np.frombuffer(bytes(blob), np.uint64) for blob in blobs]))
                    rows.delete()
                    ArchiveNames.objects.create(archive=self.archive, slice=number, entries=merged.tobytes())
        self._entries, self._positions = array("Q"), []

    def find(self, keys: Iterable[bytes]) -> list[str]:
        """Return the positions of the stored mails that name one of these, in the order of the archive."""
        hashes = np.unique(np.fromiter(map(crc32, keys), np.uint64))
        if not len(hashes):
            return []
        lows, highs = hashes << np.uint64(32), (hashes + np.uint64(1)) << np.uint64(32)
        slices = {int(low) >> _SHIFT for low in lows}
        numbers: set[int] = set()
        wanted = ArchiveNames.objects.filter(archive=self.archive, slice__in=slices)
        for blob in wanted.values_list("entries", flat=True).iterator(chunk_size=_SLICES):
            entries = np.frombuffer(bytes(blob), np.uint64)
            starts, ends = np.searchsorted(entries, lows), np.searchsorted(entries, highs)
            for hit in np.flatnonzero(starts < ends):
                numbers.update((entries[starts[hit] : ends[hit]] & _NUMBER).tolist())
        rows = list(ArchivePositions.objects.filter(archive=self.archive).order_by("first").values_list("pk", "first"))
        firsts = [first for _, first in rows]
        selected: list[str] = []
        for index, group in groupby(sorted(numbers), lambda number: bisect_right(firsts, number) - 1):
            positions = ArchivePositions.objects.get(pk=rows[index][0]).positions.split()
            selected += [positions[number - firsts[index]] for number in group]
        return selected

    def truncate(self, count: int) -> None:
        """Forget all mails after the first `count`: the archive was rewritten there, or is read again."""
        if count >= self.count:
            return
        for row in ArchivePositions.objects.filter(archive=self.archive).order_by("-first"):
            if row.first >= count:
                row.delete()
            elif len(positions := row.positions.split()) > count - row.first:
                row.positions = " ".join(positions[: count - row.first])
                row.save(update_fields=["positions"])
        names = ArchiveNames.objects.filter(archive=self.archive)
        if count == 0:
            names.delete()
        for names_row in names.iterator(chunk_size=_SLICES):
            entries = np.frombuffer(bytes(names_row.entries), np.uint64)
            kept = entries[(entries & _NUMBER) < count]
            if len(kept) < len(entries):
                names_row.entries = kept.tobytes()
                names_row.save(update_fields=["entries"])
        self.count = count


# --- Missing mails ---

AT_ONCE = 50  # threads per run, to spare the server
RETRY_AFTER = timedelta(days=7)  # after which a server is asked again for what it did not have


def missing_parents(now: datetime) -> list[str]:
    """Return missing parents, newest first, that the lore server was not asked for lately, and mark them as asked."""
    seen = Message.objects.filter(message_id=OuterRef("in_reply_to"))
    ours = OutgoingMail.objects.filter(message_id=OuterRef("in_reply_to"))
    answers = Message.objects.exclude(in_reply_to="").filter(
        ~Exists(seen), ~Exists(ours), kind__in=("person", "bot_operator")
    )
    parents = dict.fromkeys(answers.order_by("-pk").values_list("in_reply_to", flat=True)[: AT_ONCE * 20])
    names = {f"{settings.PERFWORK_LORE} {parent}": parent for parent in parents}
    recent = set(Archive.objects.filter(path__in=names, read_at__gt=now - RETRY_AFTER).values_list("path", flat=True))
    chosen = [name for name in names if name not in recent][:AT_ONCE]
    for name in chosen:  # counts as asked, whatever comes of it
        Archive.objects.update_or_create(path=name, defaults={"read_at": now})
    return [names[name] for name in chosen]
