"""The requests that wait for the lab, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.events import OPEN, Awaited, EventData, Verdict
from tracker.domain.lab_debts import Debt, debt_of
from tracker.models import Event, Message, Report

MOST = 200  # reports, those that were asked about last


@dataclass(frozen=True, slots=True)
class LabRow:
    """A request with its report. `quote`: the words of it; `mail`: what it was asked in, None for an action here."""

    report: Report
    debt: Debt
    quote: str
    mail: Message | None
    is_overdue: bool


def work_list(now: datetime) -> list[LabRow]:
    """Return what the lab owes, the overdue and then the oldest first."""
    waiting = Report.objects.filter(state__in=sorted(OPEN), awaited=Awaited.REPORTER).select_related("culprit")
    reports = list(waiting.order_by("-revision", "-pk")[:MOST])
    events: dict[int, list[Event]] = {report.pk: [] for report in reports}
    for event in Event.objects.filter(report__in=reports):
        events[event.report_id].append(event)
    debts = [(report, debt) for report in reports if (debt := _debt(report, events[report.pk]))]
    mails = _mails([debt.event for _, debt in debts])
    rows = [_row(report, debt, events[report.pk], mails, now) for report, debt in debts]
    return sorted(rows, key=lambda row: (not row.is_overdue, row.debt.due_at, row.report.pk))


def _debt(report: Report, events: Sequence[Event]) -> Debt | None:
    return debt_of(Verdict(report.verdict), [event.value() for event in events])


def _mails(events: Sequence[EventData]) -> dict[str, Message]:
    ids = {each.message_id for each in events if each.message_id}
    rows = Message.objects.filter(message_id__in=ids).defer("tables", "own_text", "source")
    return {row.message_id: row for row in rows}


def _row(report: Report, debt: Debt, events: Sequence[Event], mails: Mapping[str, Message], now: datetime) -> LabRow:
    quote = next((each.quote for each in events if each.key == debt.event.key), "")
    return LabRow(report, debt, quote or debt.event.remark, mails.get(debt.event.message_id), debt.is_overdue(now))
