"""`/search/?q=…`: reports of all releases, as rows of the triage table.

What names one report (a sha, a Message-ID, a link to lore, a whole title) leads to it. Anything else becomes
conditions of the database: fields by `_CONDITIONS`, words by full-text search, which has one way in, `reports_with`:
the reports that have these words in their own text or in one of their mails. SQLite's FTS5 and PostgreSQL's `simple`
configuration both take runs of letters and digits as words, whatever stands between them:
`will-it-scale.per_process_ops` is a phrase of six words. tracker/migrations/0003_search.py makes the index.

The names that a search can ask for, from all reports, are kept for some minutes, so that a page or a key press needs
no query for them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlencode

from django.db import connection
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Abs
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from tracker.domain import versions
from tracker.domain.events import Awaited, InvalidInput, Verdict
from tracker.domain.search import FieldTerm, SearchQuery, parse, suggestions, unknown_fields
from tracker.domain.search import named as search_named
from tracker.models import Commit, Machine, Message, Metric, RelatedCommit, Release, Report, Scenario
from tracker.pages.http import kept
from tracker.pages.triage.exports import NAMES, in_form
from tracker.pages.triage.filters import POSITIONS, STATES, TriageQuery
from tracker.pages.triage.table import listed, section
from tracker.services.accounts import CHANGE_REPORTS
from tracker.services.catalog import sha_begins
from tracker.services.report_actions import ACTION_KEYS
from tracker.services.report_summary import clipped, in_cycle

# --- Full-text search ---

MOST = 5000  # hits of a kind that are looked at, the newest
_WORD = re.compile(r"[^\W_]+")
_TABLES = {"report_words": "tracker_report", "message_words": "tracker_message"}  # on PostgreSQL, columns of these


def words_of(phrase: str) -> list[str]:
    """Return the words of a phrase, in lower case; [] for one of punctuation only."""
    return _WORD.findall(phrase.lower())


def reports_with(phrases: Sequence[str]) -> list[int] | None:
    """Return the keys of the reports that have all phrases, in their own text or in one mail; at most MOST of each.

    A phrase that ends in `*` matches words that begin with its last one. None: no phrase has a word.
    """
    wanted = [(words, phrase.endswith("*")) for phrase in phrases if (words := words_of(phrase))]
    if not wanted:
        return None
    keys, mails = _hits("report_words", wanted), _hits("message_words", wanted)
    if mails:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                numbers = ",".join(map(str, mails))  # integers from our own query; SQLite has a limit on parameters
                cursor.execute(f"SELECT DISTINCT report_id FROM tracker_message WHERE public AND id IN ({numbers})")
            else:
                cursor.execute("SELECT DISTINCT report_id FROM tracker_message WHERE public AND id = ANY(%s)", [mails])
            keys += [pk for (pk,) in cursor.fetchall()]
    return list(dict.fromkeys(keys))


def _hits(index: str, wanted: Sequence[tuple[list[str], bool]], most: int = MOST) -> list[int]:
    """Return the keys of the newest rows that match, by an index."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            query = " ".join(f'"{" ".join(words)}"{" *" if starts else ""}' for words, starts in wanted)
            cursor.execute(
                f"SELECT rowid FROM {index} WHERE {index} MATCH %s ORDER BY rowid DESC LIMIT {most}", [query]
            )
        else:
            query = " & ".join("(" + " <-> ".join(words) + (":*" if starts else "") + ")" for words, starts in wanted)
            cursor.execute(
                f"SELECT id FROM {_TABLES[index]} WHERE {index} @@ to_tsquery('simple', %s)"
                f" ORDER BY id DESC LIMIT {most}",
                [query],
            )
        return [pk for (pk,) in cursor.fetchall()]


# --- Names to ask for ---

KINDS = ("subsystem", "metric", "machine", "author")  # that have pages
_KEEP = 600.0  # seconds


def known_names() -> Mapping[str, Sequence[str]]:
    """Return the values of each field that has names or choices."""
    stored = kept("search-names", _stored_names, _KEEP)
    return {
        **{kind: stored.get(kind, []) for kind in (*KINDS, "suite", "release")},
        "state": list(STATES),
        "awaiting": [awaited.value for awaited in Awaited],
        "kind": [verdict.value for verdict in Verdict],
        "stable": ["missing"],
        "blocking": ["yes"],
    }


def _stored_names() -> dict[str, list[str]]:
    """Return the names of each kind, in order, by one query; the columns of reports have indexes."""
    columns = [("subsystem", Report, "subsystem"), ("metric", Metric, "name"), ("machine", Machine, "name")]
    columns += [("author", Report, "author"), ("suite", Scenario, "suite"), ("release", Release, "version")]
    rows = [
        model._default_manager.order_by().annotate(kind=Value(kind), named=F(column)).values_list("kind", "named")
        for kind, model, column in columns
    ]
    by_kind: dict[str, list[str]] = {}
    for kind, name in rows[0].union(*rows[1:]).order_by("kind", "named"):  # UNION has each name once
        if name:
            by_kind.setdefault(kind, []).append(name)
    parsed = [version for name in by_kind.get("release", ()) if (version := versions.parse(name))]
    by_kind["release"] = [version.cycle for version in sorted(parsed, reverse=True)]
    return by_kind


def pages_named(query: SearchQuery) -> list[tuple[str, str]]:
    """Return kind and name of the metrics, machines, subsystems and authors whose name has a word of a query without
    fields.
    """
    if query.fields or len(query.phrases) > 3:
        return []
    names = known_names()
    words = [word for word in query.phrases if len(word) > 1]
    return [(kind, name) for kind in KINDS for word in words for name in search_named(word, names[kind])]


# --- Queries as conditions ---

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
        rows = list(related.filter(sha_begins("culprit__sha", text.lower()))[:2])
        rows = rows or list(related.filter(pk__in=with_commit(text.lower()))[:2])
        return rows[0] if len(rows) == 1 else None
    if (link := _LORE.match(text)) or (link := _MESSAGE_ID.fullmatch(text)):
        name = unquote(link[1]).replace("\0", "")[:1000]
        message = Message.objects.filter(message_id=name).select_related("report__culprit").first()
        return message.report if message else None
    if " " in text:
        # The keys of the newest reports that have a phrase in their own text
        words = words_of(text)
        with_words = related.filter(pk__in=(_hits("report_words", [(words, False)], 100) if words else []))
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
    words = words_of(text)
    wanted = [([word], word is words[-1]) for word in words]
    keys = _hits("report_words", wanted, 5) if wanted else []
    rows = Report.objects.filter(pk__in=keys).order_by("-pk").values_list("culprit__title", "culprit__sha")
    return [[title or sha, f"report about {sha[:12]}"] for title, sha in rows]


def with_commit(sha: str) -> list[int]:
    """Return the reports of which a commit that begins so is part: culprit, fix, revert, …"""
    commits = list(Commit.objects.filter(sha_begins("sha", sha)).values_list("pk", flat=True)[:MOST_COMMITS])
    shorter = [sha[:digits] for digits in range(SHORTEST_SHA, len(sha))]  # a fix that a mail named
    reports = {
        *Report.objects.filter(culprit__in=commits).values_list("pk", flat=True),
        *Report.objects.filter(culprit__former_culprits__in=commits).values_list("pk", flat=True),
        *Report.objects.exclude(fix_sha="")
        .filter(sha_begins("fix_sha", sha))
        .values_list("pk", flat=True)[:MOST_COMMITS],
        *Report.objects.exclude(fix_sha="").filter(fix_sha__in=shorter).values_list("pk", flat=True)[:MOST_COMMITS],
        *RelatedCommit.objects.filter(commit__in=commits).values_list("report", flat=True)[:MOST_COMMITS],
    }
    return sorted(reports)


def matching(query: SearchQuery) -> QuerySet[Report]:
    """Return the reports that a query asks for; raise InvalidInput for a value that no report can have."""
    reports = Report.objects.all()
    for term in query.fields:
        condition = _CONDITIONS[term.name](term)
        reports = reports.exclude(condition) if term.negated else reports.filter(condition)
    if (keys := reports_with(query.phrases)) is not None:
        only = query.phrases[0].lower() if len(query.phrases) == 1 else ""
        reports = reports.filter(pk__in={*keys, *(with_commit(only) if _SHA.fullmatch(only) else ())})
    for phrase in query.without:
        if without := reports_with([phrase]):
            reports = reports.exclude(pk__in=without)
    return reports


def _author(term: FieldTerm) -> Q:
    """Return the condition that an address starts so. One author has few reports, so they are found by an index:
    SQLite has none for LIKE, but for a range of its byte order; PostgreSQL's order depends on the language.
    """
    value = str(term.value).lower()
    by_range = {"author__gte": value, "author__lt": f"{value}{_LAST_CHARACTER}"}
    return Q(author__startswith=value, **(by_range if connection.vendor == "sqlite" else {}))


def _named(column: str) -> Callable[[FieldTerm], Q]:
    """Return the condition that a name begins so, or is this one, of which a long one is stored cut."""
    return lambda term: Q(**{f"{column}__startswith": term.value}) | Q(**{column: clipped(str(term.value))})


def _choice(term: FieldTerm, choices: Sequence[str]) -> str:
    if term.value not in choices:
        raise InvalidInput(f"{term.name}: expected one of {', '.join(choices)}; found {str(term.value)[:40]!r}")
    return str(term.value)


def _release(term: FieldTerm) -> Q:
    value = str(term.value)
    version = value if value.startswith("v") else f"v{value}"
    return in_cycle(version)


def _size(verdict: Verdict) -> Callable[[FieldTerm], Q]:
    return lambda term: Q(verdict=verdict, pk__in=Report.objects.alias(size=Abs("change")).filter(size__gte=term.value))


def _flag(condition: Q, word: str) -> Callable[[FieldTerm], Q]:
    def chosen(term: FieldTerm) -> Q:
        _choice(term, [word])
        return condition

    return chosen


_CONDITIONS: dict[str, Callable[[FieldTerm], Any]] = {
    **{column: _named(column) for column in ("subsystem", "suite", "metric", "machine")},
    "author": _author,
    "assigned": lambda term: Q(assignee="" if term.value == "nobody" else clipped(str(term.value))),
    "culprit": lambda term: sha_begins("culprit__sha", str(term.value).lower()),
    "title": lambda term: Q(words__contains=str(term.value).lower()),
    "release": _release,
    "state": lambda term: Q(state__in=sorted(STATES[_choice(term, list(STATES))])),
    "awaiting": lambda term: Q(awaited=_choice(term, [awaited.value for awaited in Awaited])),
    "kind": lambda term: Q(verdict=_choice(term, [verdict.value for verdict in Verdict])),
    "stable": _flag(Q(lacks_fix=True), "missing"),
    "blocking": _flag(~Q(blocks=""), "yes"),
    "worse": _size(Verdict.REGRESSION),
    "better": _size(Verdict.IMPROVEMENT),
    "after": lambda term: Q(reported_at__gte=term.value),
    "before": lambda term: Q(reported_at__lt=term.value),
}


# --- Views ---


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show what matches, the newest first; what names one report leads to it."""
    text = request.GET.get("q", "").replace("\0", " ").strip()  # no database stores NUL
    if text and (report := named(text)):
        return redirect("report", report.culprit.sha)
    context = {"text": text, "may_change": request.user.has_perm(CHANGE_REPORTS), "actions": ACTION_KEYS}
    try:
        query = parse(text)
        if query.is_empty and text:
            raise InvalidInput(f"nothing in {text[:40]!r} can be searched for: expected a word, a number or a field")
        if query.is_empty:
            return render(request, "search.html", context)
        table = TriageQuery.from_query(_position(request.GET), timezone.now())
        results = section("merged", "Reports", matching(query), table, timezone.now())
    except InvalidInput as error:
        return render(request, "search.html", {**context, "error": str(error)}, status=400)
    base = "?" + urlencode({"q": text})
    context["unknown_fields"] = [] if results.rows else unknown_fields(query)
    context |= {"section": results, "base": base, "query": table, "pages": pages_named(query), "forms": NAMES}
    return render(request, "search.html", context)


@require_safe
def search_as(request: HttpRequest, form: str) -> HttpResponseBase:
    """What matches as JSON, CSV, text, Markdown or Atom, the newest first."""
    text = request.GET.get("q", "").replace("\0", " ").strip()
    query = parse(text)
    if query.is_empty:
        raise InvalidInput("q: expected what to search for, as in ?q=subsystem:mm")
    rows = listed(matching(query), TriageQuery.from_query(_position(QueryDict()), timezone.now()))
    return in_form(request, form, text, {"reports": rows}, f"{reverse('search')}?{urlencode({'q': text})}")


@require_safe
@cache_control(max_age=60)
def offered(request: HttpRequest) -> JsonResponse:
    """Return what the search box offers for what is typed so far, as [text, label] each."""
    text = request.GET.get("q", "").replace("\0", " ")
    offers = [[suggestion.text, suggestion.label] for suggestion in suggestions(text, known_names())]
    return JsonResponse({"suggestions": offers + titles(text)})


def _position(params: QueryDict) -> QueryDict:
    """Return the query of the table: everything, the newest first, from a cursor on."""
    table = QueryDict("improvements=on&order=newest", mutable=True)
    for name in POSITIONS:
        if value := params.get(name):
            table[name], table["section"] = str(value), "merged"
    return table
