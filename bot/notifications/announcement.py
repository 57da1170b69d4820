"""Mail that follows a decision: an action announced in the thread, or the withdrawal of a report.

An action is announced only if the person who took it on the report's page chose to. A withdrawal informs the
recipients that a report was wrong: due if the lab decided so and no mail of the lab in the thread says so yet.
"""

import textwrap

from bot.compose.mail import ComposedMail
from bot.mail.message import one_line
from bot.notifications.thread import ReportContext, ThreadData, ThreadMails
from tracker.domain.events import EventData, Role

# --- Announced actions ---


def compose_status(context: ReportContext, event: EventData, purpose: str, mails: ThreadMails) -> ComposedMail:
    """Return the mail about one action, in the words that the page uses for it."""
    person, action = one_line(event.actor, 80), one_line(event.kind.replace("_", " "), 80)
    note = context.text_of(event)
    values = {
        "lines": _wrapped(f"{person} updated this report: {action}."),
        "note": _wrapped(f'"{one_line(note, 1200)}"' if note else ""),
        "status": _wrapped(f"Status: {one_line(context.report.status, 600).rstrip('.')}."),
    }
    return mails.compose(context.thread, purpose, "status", values)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)


# --- Withdrawals ---


def withdrawal_is_due(context: ReportContext, event: EventData) -> bool:
    """Return whether the lab decided that the report is wrong, and no mail from the lab in the thread says so yet."""
    decided = bool(event.actor) and not (event.message_id and event.role is Role.REPORTER)
    return decided and context.report_state.decided_by == event.key


def compose_withdrawal(thread: ThreadData, reason: str, purpose: str, mails: ThreadMails) -> ComposedMail:
    """Return the withdrawal mail. `reason`: the text that the decision relied on, or ""."""
    lines = _wrapped(f'Reason: "{one_line(reason, 600)}"' if reason else "")
    return mails.compose(thread, purpose, "withdrawal", {"reason": lines})
