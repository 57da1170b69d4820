"""The data of the review queue, in a constant number of queries: suggestions, quarantine, archives, trees, rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from urllib.parse import urlencode

from django.db.models import Count, Max, QuerySet

from tracker.domain.events import EventData, Verdict
from tracker.domain.report_state.fold import fold
from tracker.domain.report_state.text import status_text
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
from tracker.pages.review.excerpt import Excerpt, excerpt
from tracker.services.reports.report_summary import mainline_followed
from tracker.services.reports.suggestions import AT_ONCE

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


def inbox(
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
        _rows(open_suggestions[:SUGGESTIONS], {each.rule: each for each in rules}),
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
    found: Counter[str] = Counter()
    for name, number in pairs:
        found[name] += number
    return found


def _rules(records: Sequence[RuleRecord], waiting: Counter[str], newest: int) -> list[RuleRow]:
    """Return the rules that people decided on, and those whose suggestions wait."""
    new = sorted(waiting.keys() - {each.rule for each in records})
    return [RuleRow(each, waiting[each.rule], newest) for each in (*records, *(RuleRecord(rule=name) for name in new))]


def _rows(suggestions: Sequence[Suggestion], rules: Mapping[str, RuleRecord]) -> list[SuggestionRow]:
    """Return the rows, those of one report together, with their mails and their reports' events: two queries in all."""
    ids = {each.message_id for each in suggestions}
    messages = {each.message_id: each for each in Message.objects.filter(message_id__in=ids).defer("tables")}
    events: dict[int, list[EventData]] = {each.report_id: [] for each in suggestions}
    for event in Event.objects.filter(report__in=events):
        events[event.report_id].append(event.value())
    followed = mainline_followed()
    together = [each for report in events for each in suggestions if each.report_id == report]
    rows = [
        _row(each, messages.get(each.message_id), events[each.report_id], followed, rules.get(each.rule))
        for each in together
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
        ArchiveRow(each, quarantined[each.pk], _lag(each, now))
        for each in Archive.objects.order_by("path")[: PAGE * 10]
    ]


def _lag(archive: Archive, now: datetime) -> timedelta | None:
    return max(timedelta(0), now - archive.newest_at) if archive.newest_at else None
