"""Follow-up mail: new findings where they matter, and "still there" in a later version.

New findings matter if one is clearly worse than what was reported. "Still there" is sent while a reply of the author
or of the lab is missing, and counts as a reminder.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Coalesce

from bot.compose import report_data
from bot.compose.conventions import WIDTH
from bot.compose.mail import ComposedMail
from bot.compose.policy import ReminderPolicy
from bot.compose.report_data import FindingData, worst
from bot.compose.report_mail import sides, tables
from bot.mail.message import one_line
from bot.mail.settings import Aliases
from bot.notifications.reminder import reminded_at
from bot.notifications.thread import ReportContext, ThreadData, ThreadMails
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Grade, State
from tracker.domain.text import counted
from tracker.models import Reminder

# --- New findings ---

LEAST_PCT = 5.0  # the smallest change that is worth a mail
_SHOWN = 5


def matters(new: Sequence[FindingData], headline: FindingData) -> bool:
    """Return whether new findings deserve a mail: one is worse by 5% or by half of the headline's change, whichever
    is more. Improvements and smaller changes are only on the report's page.
    """
    reported = abs(headline.change_pct) if headline.change_pct is not None else 0.0
    least = max(LEAST_PCT, reported / 2)
    worse = [finding for finding in new if finding.verdict is Grade.REGRESSION and not finding.is_profile]
    return any(finding.change_pct is None or abs(finding.change_pct) >= least for finding in worse)


def compose_follow_up(
    thread: ThreadData, new: Sequence[FindingData], parent: tuple[str, str], purpose: str, mails: ThreadMails
) -> ComposedMail:
    """Return the follow-up mail. `parent`: the sha and title of the baseline."""
    graded = [finding for finding in new if finding.is_graded]
    worse = sum(finding.verdict is Grade.REGRESSION for finding in graded)
    better = len(graded) - worse
    context = {
        "counts": counted(worse, "regression") + (f", {counted(better, 'improvement')}" if better else ""),
        "rows": [
            report_data.listed(finding, f"{finding.metric} on {finding.machine}", WIDTH)
            for finding in worst(graded)[: min(worse, _SHOWN)]  # `worst` puts regressions first
        ],
        "tables": list(tables(new)),
        "sides": sides(thread.sha, thread.title, *parent),
    }
    return mails.compose(thread, purpose, "follow_up", context)


# --- Still there in a later version ---

# No reply yet, or a question to the lab is open. An author who has replied gets no reminders.
REMINDERS = ReminderPolicy()
_WAITS = frozenset({State.NO_RESPONSE, State.DISPUTED, State.NEEDS_INFO})


def still_there_is_due(context: ReportContext, event: EventData, aliases: Aliases, now: datetime) -> bool:
    """Return whether to mail "still there": the event is the latest measured version, a reply is missing, and nobody
    was reminded lately: about this report, or to its first recipient.
    """
    later = [
        other
        for other in context.events
        if other.kind is EventKind.STILL_THERE and other.occurred_at > event.occurred_at
    ]
    waits = context.report_state.state in _WAITS and context.report_state.reminders
    if not waits or later or versions.parse(event.tag) is None:
        return False
    report = context.report
    if len(reminded_at([report.pk], purpose=f"{EventKind.STILL_THERE} {event.tag}")[report.pk]) >= REMINDERS.most:
        return False
    to = [aliases.proper.get(address.email, address.email) for address in context.thread.to]  # as reminders store them
    lately = Q(report=report, at__gt=now - REMINDERS.apart) | Q(person__in=to, at__gt=now - REMINDERS.per_person)
    return not Reminder.objects.annotate(at=Coalesce("mail__sent_at", "composed_at")).filter(lately).exists()


def compose_recheck(
    context: ReportContext, event: EventData, measured: FindingData | None, purpose: str, mails: ThreadMails
) -> ComposedMail:
    """Return the "still there" mail. `measured`: the new numbers, if known."""
    headline = context.headline
    values = {
        "ref": one_line(event.tag, 40),
        "ref10": event.commit[:10],
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "reported": report_data.sides(headline),
        "remeasured": report_data.sides(measured) if measured else "",
        # Somebody disputes the report or asked a question, so that the lab must answer
        "question_open": context.report_state.state is not State.NO_RESPONSE,
    }
    return mails.compose(context.thread, purpose, "recheck", values)
