"""Report actions: what users do to reports. An action adds one event per report, with the user; it can be undone.

Many reports are changed in one transaction of five statements. A report that has changed since the user loaded it
is left unchanged, and the outcome says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction

from tracker.domain import versions
from tracker.domain.errors import InvalidInput
from tracker.domain.events import EventData, EventKind, Role, Verdict
from tracker.domain.report_state.fold import effective_events, fold
from tracker.models import Event, Report
from tracker.services.reports import event_log

MOST = 500  # reports per action
LONGEST = 2000  # characters of the argument
IN_A_SENTENCE = 160  # characters of a note in the status text
_SHA = re.compile(r"[0-9a-fA-F]{7,64}\Z")
_BATCH = re.compile(r"[0-9a-f]{12}\Z")
Permit = Callable[[Report], Role | None]  # the role in which a user may change a report; None: not allowed


@dataclass(frozen=True, slots=True)
class ReportAction:
    """One action of a user. `batch`: its ID, 12 random hexadecimal digits that only its user knows.

    `notify_thread`: tell the threads.
    """

    kind: EventKind
    person: str
    batch: str
    at: datetime
    argument: str = ""
    notify_thread: bool = False

    @property
    def key(self) -> str:
        return _event_key(self.batch)

    def event(self, role: Role, release: str) -> EventData:
        """Return the event for one report. `release`: what it blocks by default. Raises InvalidInput."""
        event = EventData(self.key, self.kind, self.at, role, actor=self.person)
        text = " ".join(self.argument.split())[:LONGEST]
        match self.kind:
            case EventKind.FIX_PROPOSED | EventKind.FIX_CONFIRMED:
                return replace(event, title=text[:300])
            case EventKind.FIX_QUEUED:
                return replace(event, tree=text[:100])
            case EventKind.FIX_LANDED | EventKind.DISAPPEARED:
                return replace(event, tag=_version(text))
            case EventKind.BLOCKS:
                return replace(event, tag=_version(text) or release or "the release")
            case EventKind.DUPLICATE:
                return replace(event, remark=_sha(text))
            case EventKind.ASSIGNED:
                return replace(event, remark={"me": self.person, "nobody": ""}.get(_required(text), text[:100]))
            case EventKind.NOTED:
                return replace(event, remark=_shortened(_required(text)))
        return replace(event, remark=text)


def _required(text: str) -> str:
    if not text:
        raise InvalidInput("expected some text; found none")
    return text


def _shortened(text: str) -> str:
    """Return a note as the status text shows it, shortened; the event keeps all of it."""
    return text if len(text) <= IN_A_SENTENCE else f"{text[:IN_A_SENTENCE].rsplit(' ', 1)[0]} …"


def _version(text: str) -> str:
    if text and versions.parse(text) is None:
        raise InvalidInput(f"expected a version like v6.12-rc4; found {text[:40]!r}")
    return text


def _sha(text: str) -> str:
    if not _SHA.match(text):
        raise InvalidInput(f"expected the sha of another report's culprit; found {text[:40]!r}")
    return text[:10].lower()


@dataclass(slots=True)
class ActionOutcome:
    """The outcome of an action: the keys of the reports that changed, and the others by reason."""

    changed: list[int] = field(default_factory=list)
    before: dict[int, str] = field(default_factory=dict)  # the status of each of these before
    overtaken: list[Report] = field(default_factory=list)  # changed by someone else in the meantime
    idle: list[Report] = field(default_factory=list)  # the action would change nothing
    forbidden: list[Report] = field(default_factory=list)

    def summary(self) -> str:
        """Return the outcome in a sentence or two."""
        done = "1 report changed" if len(self.changed) == 1 else f"{len(self.changed)} reports changed"
        sentences = [f"{done}."]
        for reports, why in (
            (self.overtaken, "was changed in the meantime, so this action was not applied"),
            (self.idle, "is unchanged: this action has no effect there"),
            (self.forbidden, "is unchanged: you do not have permission"),
        ):
            sentences += [f"{each.culprit.sha10} {why} (now: {each.status})." for each in reports[:3]]
            sentences += [f"{len(reports) - 3} more for the same reason."] if len(reports) > 3 else []
        return " ".join(sentences)


@transaction.atomic
def change(revisions: Mapping[int, int], action: ReportAction, permit: Permit, release: str = "") -> ActionOutcome:
    """Apply an action to reports, each at the revision that the user saw. Raises InvalidInput if it can't be done."""
    action.event(Role.MACHINE, release)  # rejects a bad argument before anything is locked
    outcome = ActionOutcome()

    def make_event(report: Report, events: list[Event]) -> Event | None:
        role = permit(report)
        values = [event.value() for event in events]
        if role is None:
            outcome.forbidden.append(report)
        elif report.revision != revisions[report.pk]:
            outcome.overtaken.append(report)
        elif not _changes_state(
            report, values, event := action.event(role, release or report.merged_release or report.shift_left_release)
        ):
            outcome.idle.append(report)
        else:
            outcome.changed.append(report.pk)
            outcome.before[report.pk] = report.status
            row = event_log.event_row(
                report, event, action.at, action.argument.strip() if action.kind is EventKind.NOTED else ""
            )
            row.batch, row.notify_thread = action.batch, action.notify_thread
            return row
        return None

    event_log.amend(list(revisions)[:MOST], make_event)
    return outcome


def _changes_state(report: Report, events: Sequence[EventData], event: EventData) -> bool:
    """Whether the event would change the report state; who caused it does not count."""
    verdict = Verdict(report.verdict)
    before, after = fold(verdict, events), fold(verdict, [*events, event])
    return replace(before, decided_by="", closed_at=None) != replace(after, decided_by="", closed_at=None)


def _event_key(batch: str) -> str:
    """Return the key of an action's events, which everybody can read. The action's own ID can't be told from it."""
    return f"hand:{hashlib.sha256(batch.encode()).hexdigest()[:12]}"


def undo(batch: str, person: str, now: datetime, permit: Permit, *, of_others: bool) -> list[int]:
    """Undo an action wherever it is still in effect. Returns the keys of the reports that changed.

    `of_others`: whether the user may undo what others did.
    """
    if not _BATCH.match(batch):
        raise InvalidInput(f"expected the ID of an action; found {batch[:40]!r}")
    reports = Event.objects.filter(batch=batch).exclude(batch="").values_list("report", flat=True)
    return take_back(reports, _event_key(batch), person, now, permit, of_others=of_others)


@transaction.atomic
def take_back(
    reports: Iterable[int], key: str, person: str, now: datetime, permit: Permit, *, of_others: bool
) -> list[int]:
    """Reverse an event where it is in effect: it stays in the event log but no longer counts.

    Without `of_others` only the user's own.
    """
    changed: list[int] = []

    def make_event(report: Report, events: list[Event]) -> Event | None:
        effective = {event.key for event in effective_events([event.value() for event in events])}
        if permit(report) is None or key not in effective:
            return None
        if not of_others and any(event.key == key and event.actor != person for event in events):
            return None
        known = {event.key for event in events}
        own = next(name for number in range(len(known) + 1) if (name := _reversal(key, number)) not in known)
        changed.append(report.pk)
        value = EventData(own, EventKind.REVERSED, now, actor=person, reverses=key)
        return event_log.event_row(report, value, now)

    event_log.amend(list(reports)[:MOST], make_event)
    return changed


def _reversal(key: str, number: int) -> str:
    return f"{EventKind.REVERSED}:{key}" + (f"#{number + 1}" if number else "")
