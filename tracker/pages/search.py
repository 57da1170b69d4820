"""A search query as database conditions, and the report that a sha, Message-ID, link or title names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Abs

from tracker.domain.errors import InvalidInput
from tracker.domain.events import Awaited, Verdict
from tracker.domain.search.query import FieldTerm, SearchQuery
from tracker.models import Commit, Message, RelatedCommit, Report
from tracker.pages.triage.filters import STATES
from tracker.services import search_index

_LAST_CHARACTER = chr(0x10FFFF)
SHORTEST, LONGEST = 3, 200  # letters for which reports are offered
MOST_COMMITS = 100  # that begin with what was given
SHORTEST_SHA = 7  # digits
_SHA = re.compile(r"[0-9a-f]{7,64}")
_LORE = re.compile(
    r"https?://(?:[\w.-]*lore\.kernel\.org/[\w.+-]+|lkml\.kernel\.org/r|(?:patch\.)?msgid\.link)/<?([^/>\s?#]+@[^/>\s?#]+)"
)
_MESSAGE_ID = re.compile(r"<?([^\s<>@]+@[^\s<>@]+)>?")


def named(text: str) -> Report | None:
    """Return the one report that a sha, a Message-ID, a link to lore or a whole title names. A sha is that of its
    culprit or, if there is none, of another commit of it.
    """
    text = text.strip()
    related = Report.objects.select_related("culprit")
    if _SHA.fullmatch(text.lower()):
        rows = list(related.filter(_begins("culprit__sha", text.lower()))[:2])
        rows = rows or list(related.filter(pk__in=with_commit(text.lower()))[:2])
        return rows[0] if len(rows) == 1 else None
    if (link := _LORE.match(text)) or (link := _MESSAGE_ID.fullmatch(text)):
        name = unquote(link[1]).replace("\0", "")[:1000]
        message = Message.objects.filter(message_id=name).select_related("report__culprit").first()
        return message.report if message else None
    if " " in text:
        with_words = related.filter(pk__in=search_index.with_own_phrase(text))
        rows = list(with_words.filter(Q(culprit__title=text) | Q(title=text))[:2])
        return rows[0] if len(rows) == 1 else None
    return None


def titles(text: str) -> list[list[str]]:
    """Return up to five reports that have all words of a text in their own words, the last one as a beginning: title
    and what it is of each, to be offered.
    """
    text = text[:LONGEST]
    if len(text.strip()) < SHORTEST or ":" in text:
        return []
    found = search_index.own_words(f"{text.strip()}*")
    rows = Report.objects.filter(pk__in=found).order_by("-pk").values_list("culprit__title", "culprit__sha")
    return [[title or sha, f"report about {sha[:12]}"] for title, sha in rows]


def with_commit(sha: str) -> list[int]:
    """Return the reports of which a commit that begins so is part: culprit, fix, revert, …"""
    commits = list(Commit.objects.filter(_begins("sha", sha)).values_list("pk", flat=True)[:MOST_COMMITS])
    shorter = [sha[:digits] for digits in range(SHORTEST_SHA, len(sha))]  # a fix that a mail named
    found = {
        *Report.objects.filter(culprit__in=commits).values_list("pk", flat=True),
        *Report.objects.exclude(fix_sha="").filter(_begins("fix_sha", sha)).values_list("pk", flat=True)[:MOST_COMMITS],
        *Report.objects.exclude(fix_sha="").filter(fix_sha__in=shorter).values_list("pk", flat=True)[:MOST_COMMITS],
        *RelatedCommit.objects.filter(commit__in=commits).values_list("report", flat=True)[:MOST_COMMITS],
    }
    return sorted(found)


def _begins(column: str, sha: str) -> Q:
    """Return the condition that a column of shas begins so; an index serves it, unlike LIKE on SQLite."""
    return Q(**{f"{column}__gte": sha, f"{column}__lt": f"{sha}g"})


def matching(query: SearchQuery) -> QuerySet[Report]:
    """Return the reports that a query asks for; raise InvalidInput for a value that no report can have."""
    reports = Report.objects.all()
    for term in query.fields:
        condition = _CONDITIONS[term.name](term)
        reports = reports.exclude(condition) if term.negated else reports.filter(condition)
    if (found := search_index.reports_with(query.phrases)) is not None:
        only = query.phrases[0].lower() if len(query.phrases) == 1 else ""
        reports = reports.filter(pk__in={*found, *(with_commit(only) if _SHA.fullmatch(only) else ())})
    for phrase in query.without:
        if without := search_index.reports_with([phrase]):
            reports = reports.exclude(pk__in=without)
    return reports


def _beginning(column: str) -> Callable[[FieldTerm], Q]:
    return lambda term: Q(**{f"{column}__startswith": term.value})


def _author(term: FieldTerm) -> Q:
    """Return the condition that an address starts so. One author has few reports, so they are found by an index:
    SQLite has none for LIKE, but for a range of its byte order; PostgreSQL's order depends on the language.
    """
    value = str(term.value).lower()
    by_range = {"author__gte": value, "author__lt": f"{value}{_LAST_CHARACTER}"}
    return Q(author__startswith=value, **(by_range if connection.vendor == "sqlite" else {}))


def _choice(name: str, known: Sequence[str], term: FieldTerm) -> str:
    if term.value not in known:
        raise InvalidInput(f"{name}: expected one of {', '.join(known)}; found {str(term.value)[:40]!r}")
    return str(term.value)


def _state(term: FieldTerm) -> Q:
    return Q(state__in=sorted(STATES[_choice("state", list(STATES), term)]))


def _awaiting(term: FieldTerm) -> Q:
    return Q(awaited=_choice("awaiting", [each.value for each in Awaited], term))


def _kind(term: FieldTerm) -> Q:
    return Q(verdict=_choice("kind", [each.value for each in Verdict], term))


def _release(term: FieldTerm) -> Q:
    value = str(term.value)
    version = value if value.startswith("v") else f"v{value}"
    return Q(merged_release=version) | Q(shift_left_release=version)


def _size(verdict: Verdict) -> Callable[[FieldTerm], Q]:
    return lambda term: Q(verdict=verdict, pk__in=Report.objects.alias(size=Abs("change")).filter(size__gte=term.value))


def _time(lookup: str) -> Callable[[FieldTerm], Q]:
    def condition(term: FieldTerm) -> Q:
        assert isinstance(term.value, datetime)
        return Q(**{f"reported_at__{lookup}": term.value})

    return condition


def _flag(condition: Q, name: str, word: str) -> Callable[[FieldTerm], Q]:
    def chosen(term: FieldTerm) -> Q:
        _choice(name, [word], term)
        return condition

    return chosen


_CONDITIONS: dict[str, Callable[[FieldTerm], Any]] = {
    **{name: _beginning(name) for name in ("subsystem", "suite", "metric", "machine")},
    "author": _author,
    "assigned": lambda term: Q(assignee="" if term.value == "nobody" else term.value),
    "culprit": lambda term: _begins("culprit__sha", str(term.value).lower()),
    "title": lambda term: Q(words__contains=str(term.value).lower()),
    "release": _release,
    "state": _state,
    "awaiting": _awaiting,
    "kind": _kind,
    "stable": _flag(Q(lacks_fix=True), "stable", "missing"),
    "blocking": _flag(~Q(blocks=""), "blocking", "yes"),
    "worse": _size(Verdict.REGRESSION),
    "better": _size(Verdict.IMPROVEMENT),
    "after": _time("gte"),
    "before": _time("lt"),
}
