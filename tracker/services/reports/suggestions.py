"""Decisions on suggestions: each adds an event with the user, and can be undone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet

from tracker.domain.errors import InvalidInput
from tracker.domain.events import EventData, EventKind
from tracker.models import Decision, Event, Report, RuleRecord, Suggestion
from tracker.models.reports import ENOUGH_DECISIONS, PRECISE
from tracker.services.reports import event_log

# The kinds of event that a suggestion may be changed to: what a mail can mean.
OTHERS = (
    EventKind.RESPONDED,
    EventKind.WORKING,
    EventKind.ASKED,
    EventKind.ANSWERED,
    EventKind.DISPUTED,
    EventKind.FIX_PROPOSED,
    EventKind.FIX_FAILED,
    EventKind.FIX_CONFIRMED,
    EventKind.FIX_QUEUED,
    EventKind.DROPPED,
    EventKind.EXPECTED,
    EventKind.INVALID,
    EventKind.DUPLICATE,
)


AT_ONCE = 100  # suggestions that are decided by one click
SECOND_OPINION = "second_opinion"
UNVERIFIED_REPORT = "unverified_report"  # accepted, its recipients are the people of the report
_OF_A_FIX = frozenset({EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED, EventKind.FIX_QUEUED})


@transaction.atomic
def decide(
    suggestion: Suggestion, decision: Decision, person: str, now: datetime, instead: EventKind | None = None
) -> bool:
    """Accept, reject or change a suggestion, once. Returns False if someone else decided first.

    Accepted or changed, it becomes an event of that kind; rejected, an event that changes no state.
    """
    open_one = Suggestion.objects.filter(pk=suggestion.pk, decision=Decision.OPEN)
    if not open_one.update(decision=decision, decided_by=person, decided_at=now):
        return False
    value = replace(suggestion.value(), actor=person)
    if decision == Decision.REJECTED:
        value = replace(
            value, kind=EventKind.READING_REJECTED, occurred_at=now, remark=suggestion.rule, title="", commit=""
        )
    elif decision == Decision.CHANGED and instead:
        value = replace(value, kind=instead, remark="", title=value.title if instead in _OF_A_FIX else "")
    value = replace(value, key=_key(suggestion, value))
    event_log.record([event_log.event_row(suggestion.report, value, now, suggestion.quote)])
    if decision == Decision.ACCEPTED:
        _vouch(suggestion, True)
    _count(suggestion.rule, decision, 1)
    return True


def decide_many(keys: Collection[int], decision: Decision, person: str, now: datetime) -> list[int]:
    """Accept or reject suggestions, oldest first, each in a transaction of its own. Returns those that were open."""
    chosen = Suggestion.objects.filter(pk__in=keys, decision=Decision.OPEN).select_related("report")
    return [each.pk for each in chosen.order_by("occurred_at", "pk") if decide(each, decision, person, now)]


def of_precise_rule(rule: str, most: int, newest: int) -> list[int]:
    """Return the open suggestions of a rule up to the newest that was seen, oldest first.

    Raises InvalidInput unless the rule is right often enough.
    """
    record = RuleRecord.objects.filter(rule=rule).first()
    if record is None or not record.is_precise:
        wanted = f"at least {ENOUGH_DECISIONS} decisions, {100 * PRECISE:.0f}% of them to accept"
        raise InvalidInput(f"rule: expected one with {wanted}; found {rule[:60]!r}")
    waiting = Suggestion.objects.filter(rule=rule, decision=Decision.OPEN, pk__lte=newest)
    waiting = waiting.order_by("occurred_at", "pk")
    return list(waiting.values_list("pk", flat=True)[:most])


@transaction.atomic
def take_back(suggestion: Suggestion, person: str, now: datetime) -> bool:
    """Undo a decision: reverse its event and reopen the suggestion. Returns False if it is open already."""
    decided = Suggestion.objects.filter(pk=suggestion.pk).exclude(decision=Decision.OPEN)
    before = decided.values_list("decision", flat=True).first()
    if before is None or not decided.update(decision=Decision.OPEN, decided_by="", decided_at=None):
        return False
    if before == Decision.ACCEPTED:
        _vouch(suggestion, False)
    event = _events(suggestion).order_by("-pk").first()
    if event:
        undone = EventData(
            key=f"{EventKind.REVERSED}:{event.key}",
            kind=EventKind.REVERSED,
            occurred_at=now,
            actor=person,
            reverses=event.key,
        )
        event_log.record([event_log.event_row(suggestion.report, undone, now)])
    _count(suggestion.rule, before, -1)
    return True


def _vouch(suggestion: Suggestion, verified: bool) -> None:
    """Whoever accepts that a robot sent a report vouches for the people whom it names."""
    if suggestion.rule == UNVERIFIED_REPORT and suggestion.kind == EventKind.REPORTED:
        Report.objects.filter(pk=suggestion.report_id).update(people_verified=verified)


def _key(suggestion: Suggestion, value: EventData) -> str:
    """Return the suggestion's own key at first, so that a replay adds no second event; after an undo, a new one."""
    times = _events(suggestion).count()
    own = suggestion.key if value.kind == suggestion.kind else f"{value.kind}={suggestion.key}"
    return f"{own}!{times}" if times else own


def _events(suggestion: Suggestion) -> QuerySet[Event]:
    """Return the events of earlier decisions on this suggestion."""
    events = Event.objects.filter(report=suggestion.report_id, message_id=suggestion.message_id).exclude(actor="")
    return events.filter(
        Q(key=suggestion.key)
        | Q(key__startswith=f"{suggestion.key}!")
        | Q(key__endswith=f"={suggestion.key}")
        | Q(key__contains=f"={suggestion.key}!")
    )


def _count(rule: str, decision: str, by: int) -> None:
    RuleRecord.objects.get_or_create(rule=rule)
    least = {f"{decision}__gte": max(0, -by)}  # decisions from before they were counted can be undone, too
    RuleRecord.objects.filter(rule=rule, **least).update(**{decision: F(decision) + by})
