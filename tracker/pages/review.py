"""`/review/`: the review queue, where people decide on suggestions and see how reading stands.

A suggestion stands with its evidence in the text around it, the status that the report would have if it is accepted,
and how people decided on other suggestions of its rule. It is accepted, rejected or changed; many are decided at once
if they are chosen, or if their rule was right often enough, but none that came in after the page was loaded. What a
session decided last can be undone, and each decision leads to the next suggestion, as filtered.

Below are the mails in quarantine, the archives and trees with how far they were read, and the rules. All this takes a
constant number of queries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required, permission_required
from django.db.models import Count, Max, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.domain.events import EventData, EventKind, InvalidInput, Verdict
from tracker.domain.report_state import fold, status_text
from tracker.models import (
    Archive,
    Decision,
    Event,
    Message,
    Mirror,
    PendingReference,
    RawMessage,
    RuleRecord,
    Suggestion,
    Tree,
)
from tracker.pages.http import cleaned, error_response, is_key, username
from tracker.services import report_actions
from tracker.services.accounts import DECIDE, SEND
from tracker.services.faults import faults
from tracker.services.report_actions import AT_ONCE
from tracker.services.report_summary import mainline_followed

# --- Evidence in its text ---

# Pure.
AROUND = 240  # characters on each side


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Evidence in context; `before` and `after` are empty if it was not found in the text."""

    before: str
    evidence: str
    after: str


def excerpt(own_text: str, quote: str) -> Excerpt:
    """Return the evidence with its context in the mail. White space may differ, since rules read joined lines."""
    parts = quote.split()[:80]
    if not parts:
        return Excerpt("", quote, "")
    match = re.search(r"\s+".join(re.escape(part) for part in parts), own_text)
    if not match:
        return Excerpt("", quote, "")
    before, after = own_text[: match.start()], own_text[match.end() :]
    text = before
    text = " ".join(text[-2 * AROUND :].split())
    return Excerpt(
        (text if len(text) <= AROUND else f"… {text[-AROUND:].partition(' ')[2]}"),
        " ".join(match[0].split()),
        _head(after),
    )


def _head(text: str) -> str:
    text = " ".join(text[: 2 * AROUND].split())
    return text if len(text) <= AROUND else f"{text[:AROUND].rpartition(' ')[0]} …"


# --- Data of the queue ---

PAGE = 100  # rows per section
COUNTED = 100_000  # the newest mails in quarantine
SUGGESTIONS = 50  # each with its report's events


@dataclass(frozen=True, slots=True)
class SuggestionRow:
    """One suggestion: its evidence in context, its mail, and the report state if it is accepted."""

    suggestion: Suggestion
    excerpt: Excerpt
    message: Message | None
    status_if_accepted: str  # the status text if it is accepted
    changes_status: bool  # whether that differs from the current one
    rule: RuleRecord | None  # how people decided on its rule's suggestions
    same_report: bool = False  # as the row before


@dataclass(frozen=True, slots=True)
class SuggestionFilter:
    """Suggestions of one kind or one rule; "" for all."""

    kind: str = ""
    rule: str = ""

    @property
    def url(self) -> str:
        """The query string, to which more can be added."""
        return "?" + urlencode({name: value for name, value in (("kind", self.kind), ("rule", self.rule)) if value})

    def of(self, suggestions: QuerySet[Suggestion]) -> QuerySet[Suggestion]:
        wanted = {name: value for name, value in (("kind", self.kind), ("rule", self.rule)) if value}
        return suggestions.filter(**wanted)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule, how people decided, and how many of its suggestions wait. `newest`: the last suggestion that is shown."""

    record: RuleRecord
    waiting: int
    newest: int = 0

    @property
    def at_once(self) -> int:
        """How many can be accepted by one click."""
        return min(self.waiting, AT_ONCE)

    @property
    def may_be_accepted(self) -> bool:
        """Whether all that wait can be accepted at once."""
        return self.waiting > 0 and self.record.is_precise


@dataclass(frozen=True, slots=True)
class ArchiveRow:
    """One archive: how far it has been read, and how much is in quarantine."""

    archive: Archive
    quarantined: int
    lag: timedelta | None  # since the newest mail that is known


@dataclass(frozen=True, slots=True)
class Inbox:
    """One page; `older_…` is the key of the next page, None on the last."""

    suggestions: Sequence[SuggestionRow]
    total: int  # suggestions that wait, whatever the filter
    kinds: Sequence[tuple[str, int]]  # with how many of them wait
    older_suggestions: int | None
    quarantine: Sequence[RawMessage]
    older_quarantine: int | None
    archives: Sequence[ArchiveRow]
    failing: Sequence[Mirror]  # configured archives that can't be opened, fetched or read
    trees: Sequence[Tree]
    rules: Sequence[RuleRow]
    has_pending_mail: bool  # whether mail waits for a report that has not been seen


def load_queue(
    now: datetime,
    suggestions_before: int | None = None,
    quarantine_before: int | None = None,
    chosen: SuggestionFilter | None = None,
) -> Inbox:
    """Return the newest rows of each section, or those before a key."""
    undecided = Suggestion.objects.filter(decision=Decision.OPEN)
    numbers = list(_numbers(undecided))
    waiting = Counter({(kind, rule): number for kind, rule, number, _ in numbers})
    newest = max((key for *_, key in numbers), default=0)
    suggestions = (chosen or SuggestionFilter()).of(undecided).order_by("-pk")
    suggestions = suggestions.prefetch_related("report__culprit").select_related("curve")
    quarantine = RawMessage.objects.exclude(error="").select_related("archive").defer("compressed").order_by("-pk")
    if suggestions_before is not None:
        suggestions = suggestions.filter(pk__lt=suggestions_before)
    if quarantine_before is not None:
        quarantine = quarantine.filter(pk__lt=quarantine_before)
    open_suggestions, quarantined = list(suggestions[: SUGGESTIONS + 1]), list(quarantine[: PAGE + 1])
    rules = list(RuleRecord.objects.all()[:PAGE])
    return Inbox(
        _rows(open_suggestions[:SUGGESTIONS], {record.rule: record for record in rules}),
        waiting.total(),
        _totals((kind, number) for (kind, _), number in waiting.items()).most_common(),
        open_suggestions[SUGGESTIONS - 1].pk if len(open_suggestions) > SUGGESTIONS else None,
        quarantined[:PAGE],
        quarantined[PAGE - 1].pk if len(quarantined) > PAGE else None,
        _archives(now),
        list(Mirror.objects.exclude(error="").order_by("path")[:PAGE]),
        list(Tree.objects.exclude(path="").defer("cursor").order_by("name")[:PAGE]),
        _rules(rules, _totals((rule, number) for (_, rule), number in waiting.items()), newest),
        PendingReference.objects.filter(own=True).exists(),
    )


def _numbers(undecided: QuerySet[Suggestion]) -> QuerySet[Suggestion, tuple[str, str, int, int]]:
    return undecided.order_by().values_list("kind", "rule").annotate(number=Count("pk"), newest=Max("pk"))


def _totals(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for name, number in pairs:
        totals[name] += number
    return totals


def _rules(records: Sequence[RuleRecord], waiting: Counter[str], newest: int) -> list[RuleRow]:
    """Return the rules that people decided on, and those whose suggestions wait."""
    new = sorted(waiting.keys() - {record.rule for record in records})
    return [
        RuleRow(record, waiting[record.rule], newest) for record in (*records, *(RuleRecord(rule=name) for name in new))
    ]


def _rows(suggestions: Sequence[Suggestion], rules: Mapping[str, RuleRecord]) -> list[SuggestionRow]:
    """Return the rows, those of one report together, with their mails and their reports' events: two queries in all."""
    ids = {suggestion.message_id for suggestion in suggestions}
    messages = {message.message_id: message for message in Message.objects.filter(message_id__in=ids).defer("tables")}
    events: dict[int, list[EventData]] = {suggestion.report_id: [] for suggestion in suggestions}
    for event in Event.objects.filter(report__in=events):
        events[event.report_id].append(event.value())
    followed = mainline_followed()
    together = [suggestion for report in events for suggestion in suggestions if suggestion.report_id == report]
    rows = [
        _row(
            suggestion,
            messages.get(suggestion.message_id),
            events[suggestion.report_id],
            followed,
            rules.get(suggestion.rule),
        )
        for suggestion in together
    ]
    return rows[:1] + [
        replace(row, same_report=row.suggestion.report_id == before.suggestion.report_id)
        for before, row in pairwise(rows)
    ]


def _row(
    suggestion: Suggestion, message: Message | None, events: list[EventData], followed: bool, rule: RuleRecord | None
) -> SuggestionRow:
    folded = fold(Verdict(suggestion.report.verdict), [*events, suggestion.value()])
    new_status = status_text(folded, mainline_followed=followed)
    context = excerpt(message.own_text if message else "", suggestion.quote)
    return SuggestionRow(suggestion, context, message, new_status, new_status != suggestion.report.status, rule)


def _archives(now: datetime) -> list[ArchiveRow]:
    # Counted in Python: GROUP BY archive would make the database scan every stored mail.
    held = RawMessage.objects.exclude(error="").order_by("-pk").values_list("archive_id", flat=True)
    quarantined = Counter(held[:COUNTED])
    return [
        ArchiveRow(archive, quarantined[archive.pk], _lag(archive, now))
        for archive in Archive.objects.order_by("path")[: PAGE * 10]
    ]


def _lag(archive: Archive, now: datetime) -> timedelta | None:
    return max(timedelta(0), now - archive.newest_at) if archive.newest_at else None


# --- Views ---

_DECISIONS = {"accept": Decision.ACCEPTED, "reject": Decision.REJECTED}


def review(request: HttpRequest) -> HttpResponse:
    """Show the newest of each section, suggestions of one `kind` or `rule` if asked; `?suggestions=KEY` and
    `?quarantine=KEY` page to older rows.
    """
    keys: dict[str, int | None] = {}
    for name in ("suggestions", "quarantine"):
        text = request.GET.get(name, "")
        if text and not is_key(text):
            return error_response(f"{name}: expected a number; found {text[:40]!r}")
        keys[name] = int(text) if text else None
    chosen = SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    may_decide, now = request.user.has_perm(DECIDE), timezone.now()
    context = {
        "faults": faults(now) if request.user.has_perm(SEND) else [],
        "page": load_queue(now, keys["suggestions"], keys["quarantine"], chosen),
        "chosen": chosen,
        "others": report_actions.OTHERS,
        "may_decide": may_decide,
        "last": _last_decided(request) if may_decide else [],
    }
    return render(request, "review/queue.html", context)


def _last_decided(request: HttpRequest) -> list[Suggestion]:
    """Return what this session decided last, as far as it is still decided."""
    return list(
        Suggestion.objects.filter(pk__in=request.session.get("last_decided", ())).exclude(decision=Decision.OPEN)
    )


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Record one `decision`: accept, reject, or set, with another event kind in `instead`; redirect to the next."""
    suggestion = get_object_or_404(Suggestion.objects.select_related("report"), pk=pk)
    choice = request.POST.get("decision", "")
    choice = request.POST.get("instead", "") if choice == "set" else choice
    decision = _DECISIONS.get(choice, Decision.CHANGED)
    instead = EventKind(choice) if choice in report_actions.OTHERS else None
    if decision is Decision.CHANGED and instead is None:
        return error_response(f"decision: expected accept, reject or another state; found {choice[:40]!r}")
    if instead == suggestion.kind:
        decision = Decision.ACCEPTED
    if report_actions.decide(suggestion, decision, username(request), timezone.now(), instead):
        request.session["last_decided"] = [pk]
    return _back(request, pk)


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def decide_many(request: HttpRequest) -> HttpResponse:
    """Accept or reject all `chosen` suggestions, or accept those of a `rule` that was right often enough."""
    rule, keys = cleaned(request.POST, "rule", 100), request.POST.getlist("chosen")
    decision = _DECISIONS.get("accept" if rule else request.POST.get("decision", ""))
    if decision is None:
        return error_response("decision: expected accept or reject")
    if not rule and not (0 < len(keys) <= report_actions.AT_ONCE and all(map(is_key, keys))):
        return error_response(f"chosen: expected 1 to {report_actions.AT_ONCE} suggestions; found {len(keys)}")
    try:
        newest = cleaned(request.POST, "newest", 20)  # what came in after the page was loaded was not seen
        wanted = (
            report_actions.of_precise_rule(rule, report_actions.AT_ONCE, int(newest) if is_key(newest) else 0)
            if rule
            else [int(key) for key in keys]
        )
    except InvalidInput as error:
        return error_response(str(error))
    if decided := report_actions.decide_many(wanted, decision, username(request), timezone.now()):
        request.session["last_decided"] = decided  # nothing was open: the last one can still be undone
    return _back(request, min(wanted, default=0))


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo a decision: its event is reversed, and the suggestion is open again."""
    suggestion = get_object_or_404(Suggestion.objects.select_related("report"), pk=pk)
    report_actions.take_back(suggestion, username(request), timezone.now())
    return _back(request, pk + 1)


@require_POST
@login_required
@permission_required(DECIDE, raise_exception=True)
def undo_last(request: HttpRequest) -> HttpResponse:
    """Undo all that this session decided last."""
    own = Suggestion.objects.filter(decided_by=username(request)).select_related("report")  # others' decisions stay
    decided = list(own.filter(pk__in=request.session.pop("last_decided", ())))
    for suggestion in decided:
        report_actions.take_back(suggestion, username(request), timezone.now())
    return _back(request, max((suggestion.pk for suggestion in decided), default=0) + 1)


def _back(request: HttpRequest, pk: int) -> HttpResponse:
    """Return to the queue as it was filtered, at the suggestion after this one."""
    chosen = SuggestionFilter(cleaned(request.GET, "kind", 60), cleaned(request.GET, "rule", 100))
    waiting = chosen.of(Suggestion.objects.filter(decision=Decision.OPEN)).values_list("pk", flat=True)
    following = waiting.filter(pk__lt=pk).order_by("-pk").first() or waiting.order_by("pk").first() or 0
    query = QueryDict(chosen.url.removeprefix("?"), mutable=True)
    if waiting.filter(pk__gt=following)[:SUGGESTIONS].count() == SUGGESTIONS:  # not on the first page
        query["suggestions"] = str(following + 1)
    return redirect(f"{reverse('review')}{'?' if query else ''}{query.urlencode()}#s{following}")
