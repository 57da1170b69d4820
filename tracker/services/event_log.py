"""The event log, the only way to add events; folding all again; suggestions of what may be closed.

Events are appended once each, by their keys, and folded into the cached columns of their reports; suggestions that
would change nothing any more are withdrawn, and unsent mail about what changed is checked again. Reports are locked in
the order of their keys meanwhile, so that concurrent folds neither overwrite each other nor deadlock. What was
concluded from a mail is deleted before the mail is read again (DESIGN rule 1); what a user said or decided stays.

After an upgrade that changes the report summary, a worker folds all reports again in the background. Until then
tables would be empty or wrong, so pages and commands say how far it is; if it is interrupted, it goes on where it
was. What may be closed by now (tracker/domain/deadlines.py) is suggested once; a person decides.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import models, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from tracker.domain.deadlines import GONE_FOR, closing_of
from tracker.domain.events import OPEN, EventData, EventKind, Role, Verdict
from tracker.domain.report_state import ReportState, effective_events, reads_like
from tracker.domain.report_state import fold as fold_events
from tracker.models import (
    UNDECIDED,
    Decision,
    Event,
    Folding,
    Message,
    OutgoingMail,
    OutgoingState,
    Purpose,
    Release,
    Reminder,
    Report,
    Suggestion,
)
from tracker.models.mail import WAITING
from tracker.services import database, report_summary
from tracker.services.report_summary import refresh

_Row = TypeVar("_Row", Event, Suggestion)

# --- Adding events and folding ---

LATE = timedelta(hours=1)  # the longest delay between an event and its row


def recorded_between(first: datetime, told_until: datetime, now: datetime) -> models.QuerySet[Event]:
    """Return the events for somebody who has been told of all until `told_until`, and of none before `first`.

    By when we learned of something, not by when it was written: mail is read, and trees are walked, later. What was
    learned while they were told may have been recorded after it: the last hour comes once more.
    """
    return Event.objects.filter(recorded_at__gt=max(first, told_until - LATE), recorded_at__lte=now)


def event_row(report: Report, event: EventData, recorded_at: datetime, quote: str = "") -> Event:
    """Return the unsaved row of an event. `quote` is the sentence that it is based on."""
    return Event(
        report=report,
        recorded_at=recorded_at,
        quote=quote[:2000],
        **{name: getattr(event, name) for name in EventData.__dataclass_fields__},
    )


def reversal(report: Report, key: str, person: str, now: datetime, taken: Collection[str] = ()) -> Event:
    """Return the unsaved row of the event by which a person undoes another one, which has this key."""
    own = free_key(f"{EventKind.REVERSED}:{key}", taken)
    return event_row(report, EventData(own, EventKind.REVERSED, now, actor=person, reverses=key), now)


def reversed_events(reports: Collection[int] | QuerySet[Event, Any]) -> frozenset[tuple[int, str]]:
    """Return the events of these reports that are reversed, unless the reversal itself is, each as report and key."""
    return frozenset(
        (report, key)
        for report, of_report in values_of(reports).items()
        for key in {event.key for event in of_report} - {event.key for event in effective_events(of_report)}
    )


def free_key(key: str, taken: Collection[str]) -> str:
    """Return a key for one more event like others: with a number if the report has this key already."""
    free, number = key, 1
    while free in taken:
        number += 1
        free = f"{key}#{number}"
    return free


def append(rows: Iterable[Event]) -> set[int]:
    """Append events without folding; events that are already known are skipped.

    Returns the reports whose states may have changed: the caller must `refold` them.
    """
    rows = list(rows)
    database.insert_new(rows)
    return {row.report_id for row in rows}


def correct(report: Report, event: EventData, quote: str) -> None:
    """Correct what a mail's event says, where that is known better than when the mail was first read."""
    columns = ("role", "title", "commit", "tree", "remark", "in_reply_to")
    said = {name: getattr(event, name) for name in columns} | {"quote": quote[:2000]}
    Event.objects.filter(report=report, key=event.key, actor="").exclude(**said).update(**said)


def rejected_keys(report: Report, message_id: str) -> set[str]:
    """Return the keys of a mail's suggestions that a user rejected or changed."""
    decided = Suggestion.objects.filter(report=report, message_id=message_id)
    return set(decided.filter(decision__in=(Decision.REJECTED, Decision.CHANGED)).values_list("key", flat=True))


def with_trust(rows: QuerySet[_Row]) -> QuerySet[_Row]:
    """Annotate events or suggestions with `trust`: whether the author of the mail that says so is verified; "" for our
    own mail, and without one.
    """
    mail = Message.objects.filter(message_id=OuterRef("message_id")).exclude(kind="self")
    return rows.annotate(trust=Coalesce(Subquery(mail.values("trust")[:1]), Value(""), output_field=models.TextField()))


def forget_mail(message_ids: models.QuerySet[Any] | Sequence[str]) -> None:
    """Delete what was concluded from these mails, which are about to be read again (DESIGN rule 1).

    What a user said or decided is kept.
    """
    Suggestion.objects.filter(decision__in=UNDECIDED, message_id__in=message_ids).delete()
    Event.objects.filter(message_id__in=message_ids, actor="").delete()


@transaction.atomic
def record(rows: Iterable[Event]) -> int:
    """Append events and fold. Returns the number of new ones."""
    rows = list(rows)
    if not rows:
        return 0
    reports = {row.report_id for row in rows}
    _lock(reports)
    before = Event.objects.filter(report__in=reports).count()
    append(rows)
    new = Event.objects.filter(report__in=reports).count() - before
    if new:
        refold(reports)
    return new


def _lock(report_ids: Iterable[int]) -> list[Report]:
    """Return these reports, locked until the transaction ends: concurrent folds must not overwrite each other.

    `followed` of each: when the mainline was last walked (report_summary.mainline_followed), without a further query.

    Locked in the order of their keys, to avoid deadlocks. SQLite has a single writer anyway.
    """
    rows = Report.objects.select_for_update(of=("self",)).select_related("culprit", "tree")
    rows = rows.annotate(followed=Subquery(report_summary.WALKED_MAINLINES.values("as_of")[:1]))
    return list(rows.filter(pk__in=set(report_ids)).order_by("pk"))


def values_of(reports: Iterable[int] | QuerySet[Event, Any]) -> defaultdict[int, list[EventData]]:
    """Return the events of these reports as `fold` takes them, by report; of one without any there is no entry yet."""
    values: defaultdict[int, list[EventData]] = defaultdict(list)
    for event in Event.objects.filter(report__in=reports):
        values[event.report_id].append(event.value())
    return values


def events_of(reports: Iterable[int]) -> dict[int, list[Event]]:
    """Return the events of these reports, by report."""
    events: dict[int, list[Event]] = {pk: [] for pk in reports}
    for event in Event.objects.filter(report__in=events):
        events[event.report_id].append(event)
    return events


@transaction.atomic
def amend(report_ids: Iterable[int], make_event: Callable[[Report, list[Event]], Event | None]) -> None:
    """Call `make_event` with each of these reports and its events, and append the event that it returns, if any.

    Six statements in all, but for suggestions that change. The reports are locked meanwhile. The event must be new.
    """
    reports = _lock(report_ids)
    events = events_of(report.pk for report in reports)
    new = [event for report in reports if (event := make_event(report, events[report.pk]))]
    database.insert(Event, database.stored(Event), [database.values(event) for event in new])
    for event in new:
        events[event.report_id].append(event)
    changed_ids = {event.report_id for event in new}
    _write([report for report in reports if report.pk in changed_ids], events)


@transaction.atomic
def refold(report_ids: Iterable[int]) -> None:
    """Write the cached columns of these reports from their events: three reads and one write in all."""
    reports = _lock(report_ids)
    _write(reports, events_of(report.pk for report in reports))


def _write(reports: Sequence[Report], events: Mapping[int, list[Event]]) -> None:
    """Fold, write what changed, withdraw suggestions, and have unsent mail about what changed checked again."""
    values = {report.pk: [event.value() for event in events[report.pk]] for report in reports}
    states = {report.pk: fold_events(Verdict(report.verdict), values[report.pk]) for report in reports}
    _withdraw(values, states)
    changed_at = {pk: max((event.occurred_at for event in rows), default=None) for pk, rows in events.items()}
    followed = next((vars(report)["followed"] for report in reports), None)
    if moved := report_summary.write_states(reports, states, changed_at, followed=followed):
        unsent = Q(state__in=WAITING, sent_at__isnull=True)
        sent_reports = Q(state=OutgoingState.SENT, purpose=Purpose.REPORT)  # a follow-up may be due
        own = (unsent | sent_reports) & Q(report__in=moved)
        reminders = Reminder.objects.filter(report__in=moved)  # which may name several reports
        mails = OutgoingMail.objects.filter(own | unsent & Q(pk__in=reminders.values("mail")))
        mails.exclude(purpose__startswith=Purpose.ANSWER).update(stale=True, looked_at=None)


def state_if_accepted(verdict: Verdict, events: Sequence[EventData], suggestion: Suggestion) -> ReportState:
    """Return the state of a report with these events once a suggestion is accepted: under a key of its own, since
    that of the suggestion may be of a decision that was undone.
    """
    return fold_events(verdict, [*events, replace(suggestion.value(), key=f"{suggestion.key}?")])


# To accept one of these does more than its event: it vouches for the people whom a report names, or has the same patch
# followed in git.
_DOES_MORE = frozenset({EventKind.REPORTED, EventKind.SAME_PATCH})
_MOST_FOLDS = 50  # of a report, for its newest suggestions


def would_change(suggestion: Suggestion, before: ReportState, after: ReportState) -> bool:
    """Whether to accept a suggestion would change anything. `after`: the state of its report if it is accepted. The
    report must be loaded, with its culprit: to accept who names the culprit gives the report its commit.
    """
    names_it = suggestion.kind == EventKind.BISECTED and suggestion.report.culprit.placeholder
    return names_it or suggestion.kind in _DOES_MORE or not reads_like(before, after)


def _withdraw(events: Mapping[int, list[EventData]], states: Mapping[int, ReportState]) -> None:
    """Withdraw what would change nothing about these reports if it were accepted; what would again waits again."""
    undecided = Suggestion.objects.filter(report__in=events, decision__in=UNDECIDED)
    folds = Counter[int]()
    changed: dict[Decision, list[int]] = {Decision.OPEN: [], Decision.WITHDRAWN: []}
    for suggestion in undecided.select_related("report__culprit").order_by("-occurred_at", "-pk"):
        folds[suggestion.report_id] += 1
        if folds[suggestion.report_id] > _MOST_FOLDS:
            continue
        before = states[suggestion.report_id]
        after = state_if_accepted(before.verdict, events[suggestion.report_id], suggestion)
        decision = Decision.OPEN if would_change(suggestion, before, after) else Decision.WITHDRAWN
        if suggestion.decision != decision:
            changed[decision].append(suggestion.pk)
    for decision, keys in changed.items():
        if keys:
            # Whoever decides on one holds its row and waits for the report, which is locked here: no waiting for them.
            free = undecided.filter(pk__in=keys).select_for_update(skip_locked=True).values_list("pk", flat=True)
            Suggestion.objects.filter(pk__in=list(free)).update(decision=decision)


# --- Folding after an upgrade ---

# To be raised with every column of the report summary that is added, and with every change of what one means; the
# migration that comes with it sets the row of a database without reports to it, as 0006 does.
VERSION = 7
_AT_ONCE = 500  # reports
_known_complete: set[int] = set()  # the versions that this process has seen complete: they stay so


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """How many of all reports are folded by this version."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"folding all reports after an upgrade: {self.done:,} of {self.total:,}"


def progress() -> FoldProgress | None:
    """Return how far it is; None if all is folded, which costs no query once it is known."""
    if VERSION in _known_complete:
        return None
    row = _row()
    if row.version < VERSION and Report.objects.exists():
        rest = Report.objects.filter(pk__gt=row.folded_to).count()
        total = Report.objects.count()
        return FoldProgress(total - rest, total)
    if row.version < VERSION:
        mark_complete()
    _known_complete.add(VERSION)
    return None


def fold_all(report: Callable[[FoldProgress], None] = lambda at: None) -> int:
    """Fold all reports that this version has not folded yet. Return how many. `report` is called after every slice."""
    number = 0
    while at := progress():
        report(at)
        row = _row()
        keys = list(Report.objects.filter(pk__gt=row.folded_to).order_by("pk").values_list("pk", flat=True)[:_AT_ONCE])
        if not keys:
            mark_complete()
            continue
        with transaction.atomic():
            fold(keys)
            Folding.objects.filter(pk=row.pk).update(folded_to=keys[-1])
        number += len(keys)
    return number


def fold(keys: Collection[int]) -> None:
    """Fold these reports again, and refresh their summaries."""
    refold(keys)
    refresh(keys)


def mark_complete() -> None:
    """Record that all reports are folded by this version."""
    Folding.objects.filter(pk=_row().pk).update(version=VERSION, folded_to=0)


def _row() -> Folding:
    """Return the one row. A database without it is of before there was one, or new."""
    return Folding.objects.get_or_create(pk=1, defaults={"version": 0})[0]


# --- What may be closed ---

RULE = "closing"
MOST = 20_000  # reports in a round


def suggest_closings(now: datetime) -> int:
    """Suggest to close what may be closed; return how many suggestions are new. Those whose reason is gone go."""
    gone = Event.objects.filter(kind=EventKind.GONE, occurred_at__lt=now - GONE_FOR).values("report")
    candidates = Q(verdict=Verdict.IMPROVEMENT) | Q(pk__in=gone)
    reports = list(Report.objects.filter(candidates, state__in=sorted(OPEN)).order_by("pk")[:MOST])
    events = events_of(report.pk for report in reports)
    released = dict(Release.objects.exclude(released_at=None).values_list("version", "released_at"))
    rows: list[Suggestion] = []
    for report in reports:
        own = [event.value() for event in events[report.pk]]
        ended_at = released.get(report.merged_release or report.shift_left_release)
        if closing := closing_of(Verdict(report.verdict), own, ended_at, now):
            row = Suggestion(report=report, key=closing.key, kind=closing.kind, occurred_at=now, role=Role.MACHINE)
            row.quote, row.rule, row.why = closing.reason, RULE, "nothing has moved it since"
            rows.append(row)
    given = {(row.report_id, row.key) for row in rows}
    waiting = Suggestion.objects.filter(rule=RULE, decision__in=UNDECIDED).values_list("pk", "report", "key")
    outdated = [pk for pk, report, key in waiting if (report, key) not in given]
    Suggestion.objects.filter(pk__in=outdated, decision__in=UNDECIDED).delete()
    before = Suggestion.objects.filter(rule=RULE).count()
    Suggestion.objects.bulk_create(rows, ignore_conflicts=True)
    return Suggestion.objects.filter(rule=RULE).count() - before
