"""Mail that follows a decision: an action announced in the thread, or the withdrawal of a report.

An action is announced only if the person who took it on the report's page chose to. A withdrawal informs the
recipients that a report was wrong: due if the lab decided so and no mail of the lab in the thread says so yet.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose.mail import ComposedMail
from bot.mail.message import one_line
from bot.mail.settings import BotSettings
from bot.notifications.thread import ReportContext, ThreadData, in_thread
from tracker.domain.events import EventData, Role

# --- Announced actions ---


@dataclass(frozen=True, slots=True)
class StatusChange:
    """`action`: its kind, in words; `note`: the person's note or ""; `status`: the report's status text."""

    person: str
    action: str
    note: str
    status: str


def compose_status(
    thread: ThreadData,
    change: StatusChange,
    purpose: str,
    settings: BotSettings,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    """Return the mail about one action, in the words that the page uses for it."""
    note = f'"{one_line(change.note, 1200)}"' if change.note else ""
    context = {
        "lines": _wrapped(f"{one_line(change.person, 80)} updated this report: {one_line(change.action, 80)}."),
        "note": _wrapped(note),
        "status": _wrapped(f"Status: {one_line(change.status, 600).rstrip('.')}."),
    }
    return in_thread(thread, purpose, "status", context, settings, now, excluded)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)


# --- Withdrawals ---


def withdrawal_is_due(context: ReportContext, event: EventData) -> bool:
    """Return whether the lab decided that the report is wrong, and no mail from the lab in the thread says so yet."""
    decided = bool(event.actor) and not (event.message_id and event.role is Role.REPORTER)
    return decided and context.report_state.decided_by == event.key


def compose_withdrawal(
    thread: ThreadData, reason: str, purpose: str, settings: BotSettings, now: datetime, excluded: Mapping[str, str]
) -> ComposedMail:
    """Return the withdrawal mail. `reason`: the text that the decision relied on, or ""."""
    quoted = f'Reason: "{one_line(reason, 600)}"' if reason else ""
    lines = textwrap.wrap(quoted, 74, break_on_hyphens=False)
    return in_thread(thread, purpose, "withdrawal", {"reason": lines}, settings, now, excluded)
