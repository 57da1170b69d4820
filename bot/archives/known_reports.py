"""Load the reports that mails may be about, with a few queries for any number of mails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Concat, Substr

from bot.archives.prefilter import DIGITS, key_of_commit, key_of_message, key_of_title
from bot.replies.reading import Reading
from bot.replies.which_report.report_lookup import KnownReport, KnownReports, Thread
from bot.robot_reports.subject import benchmark_in
from tracker.models import Message, OutgoingMail, PendingReference, Report

Item = TypeVar("Item")
_AT_ONCE = 500  # names in one query
_LONGEST = 2000  # bytes of a name that an index can hold


def tracked_keys() -> Iterator[bytes]:
    """Yield all keys that stage one looks for: the mails of reports, their culprits and the culprits' titles."""
    for rows in (Message.objects, OutgoingMail.objects):
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


def commit_keys(reading: Reading) -> list[str]:
    """Return the keys of the culprit whose report a mail answers, and of the commits and the title that a patch says
    it fixes or reverts.
    """
    keys = [key_of_commit(reading.answered_culprit)] if reading.answered_culprit else []
    if reading.patches:
        keys += [key_of_commit(sha) for sha in reading.fixes]
        keys += [key_of_title(reading.reverts)] if reading.reverts else []
    return [key.decode() for key in keys]


def load(
    known: KnownReports, rows: dict[str, Report], readings: Sequence[Reading], bulletins: set[str]
) -> dict[str, str]:
    """Add the reports that these mails may be about to `known` and `rows` (by tag), and the ids of our own mails that
    are about no report to `bulletins`. Returns those of the mails' own ids that are filed already, with their trust.
    """
    names = {name for reading in readings for name in names_in(reading)}
    read: dict[str, int] = {}
    threads: dict[str, Thread] = {}
    trust: dict[str, str] = {}
    sent: dict[str, int] = {}
    for chunk in _slices(sorted(names)):
        columns = ("message_id", "report_id", "thread", "trust")
        for name, pk, thread, verdict in Message.objects.filter(message_id__in=chunk).values_list(*columns):
            read[name], threads[name], trust[name] = pk, Thread(thread), verdict
        for name, pk in OutgoingMail.objects.filter(message_id__in=chunk).values_list("message_id", "report_id"):
            if pk is None:
                bulletins.add(name)
            else:
                sent[name] = pk
    filed = sent | read
    tags: dict[int, str] = {report.pk: tag for tag, report in rows.items()}
    conditions = [Q(pk__in=chunk) for chunk in _slices(sorted(set(filed.values()) - tags.keys()))]
    conditions += _by_culprit(readings)
    for group in _slices(conditions, 100):
        for report in Report.objects.filter(reduce(or_, group)).select_related("culprit"):
            add_report(known, rows, report)
            tags[report.pk] = report.tag
    for message_id, pk in filed.items():
        if pk in tags:
            known.file(message_id, tags[pk], threads.get(message_id, Thread.REPORT))
    return {name: trust[name] for name in (reading.mail.message_id for reading in readings) if name in trust}


def add_report(known: KnownReports, rows: dict[str, Report], report: Report) -> None:
    """Add a report to those that mails are matched with."""
    rows[report.tag] = report
    known.add(
        KnownReport(
            id=report.tag,
            culprit=report.culprit.sha,
            title=report.culprit.title,
            message_ids=(),
            authors=frozenset(report.authors) | report.verified_authors,
            people=frozenset(report.recipients) | report.culprit.people,
            verdict=report.verdict,
            benchmark=benchmark_in(report.title),
            verified=None if report.people_verified else report.verified_authors | report.verified_maintainers,
        )
    )


def _by_culprit(readings: Iterable[Reading]) -> list[Q]:
    """Return queries for reports by tag, by page, and by the commits and titles that patches name."""
    tags: set[str] = set()
    digits: set[str] = set()
    titles: set[str] = set()
    for reading in readings:
        digits |= {reading.answered_culprit} - {""}
        tags |= {*reading.tags, *(link.page for link in reading.links if link.page)}
        digits |= {*reading.fixes, *(link.page for link in reading.links if link.page)}
        titles |= {reading.reverts} - {""}
    found = [Q(tag__in=chunk) for chunk in _slices(sorted(tags))]
    found += [Q(culprit__title__in=chunk) for chunk in _slices(sorted(filter(_is_searchable, titles)))]
    # A range finds prefixes by the index, which LIKE does not everywhere; old reports have only ten digits.
    found += [Q(culprit__sha__gte=each[:10], culprit__sha__lt=each[:10] + "g") for each in sorted(digits)]
    return found


def _is_searchable(name: str) -> bool:
    """Whether the database can look the name up."""
    return bool(name) and len(name.encode("utf-8", "replace")) <= _LONGEST and "\0" not in name


def _slices(items: Sequence[Item], size: int = _AT_ONCE) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
