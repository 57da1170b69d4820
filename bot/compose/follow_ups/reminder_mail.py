"""The reminder: a report is open, and nothing was heard of it for longer than is usual. One screen, in its thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap

from bot.compose import numbers
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.recipients import Recipient
from bot.compose.report.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import lore_link, one_line
from tracker.domain.timing.deadlines import Stage

MOST_LINES, WIDTH = 4, 74  # of the last word that is quoted
MOST_OTHERS = 8  # reports that are named beside the first
_CLOSES = {
    Stage.RESPONSE: "A short reply in plain words is enough: that you are looking at it, that the\n"
    "change is expected, or that a fix exists.",
    Stage.FIX: "A fix that names this report closes it. If none is planned, please say so in\na reply, and why.\n\n"
    "fix with: Closes: {link}",
    Stage.LANDING: "It is closed once the fix is in a mainline version. If the fix is queued or\n"
    'was replaced, a reply with "{prefix} fix: <title>" says so.',
}
_QUEUED = (
    "The fix is queued, and the release that has this regression comes nearer. If the\n"
    "fix will reach mainline only after that release, please say so in a reply."
)


@dataclass(frozen=True, slots=True)
class LastWord:
    """What a person wrote last in the thread."""

    author: str
    date: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class OtherReport:
    """Another report of the same person that is due as well."""

    message_id: str
    subject: str
    state: str


@dataclass(frozen=True, slots=True)
class ReminderData:
    """`person`: who is awaited; `stage`: for what; `since`: the last word; `state`: the report's state in words;
    `queued`: whether a fix is on its way.
    """

    person: Address
    stage: Stage
    since: datetime
    state: str
    headline: FindingData
    last_word: LastWord | None = None
    others: Sequence[OtherReport] = ()
    queued: bool = False


def last_word(author: str, at: datetime, own_text: str) -> LastWord | None:
    """Return the beginning of what a mail says, in a few lines; None if it says nothing."""
    words = " ".join(own_text.split())
    lines = wrap(one_line(words, 1000), WIDTH, break_long_words=True, break_on_hyphens=False)
    if not lines:
        return None
    shown = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"] if len(lines) > MOST_LINES else lines
    return LastWord(one_line(author, 60), f"{at:%Y-%m-%d}", shown)


def compose_reminder(
    thread: ThreadData,
    reminder: ReminderData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    """Return the reminder, to the person in the thread of their most urgent report."""
    link = lore_link(thread.message_id)
    closes = _QUEUED if reminder.queued else _CLOSES[reminder.stage]
    others = [
        {"link": lore_link(each.message_id), "subject": one_line(each.subject, 74), "state": one_line(each.state, 74)}
        for each in reminder.others[:MOST_OTHERS]
    ]
    context = {
        "name": _greeted(one_line(reminder.person.name, 60)),
        "since": f"{reminder.since:%Y-%m-%d}",
        "state": one_line(reminder.state, 66),
        "metric": one_line(reminder.headline.metric, 66),
        "where": one_line(reminder.headline.where, 66),
        "reported": numbers.sides(reminder.headline),
        "last_word": reminder.last_word,
        "closes": closes.format(link=link, prefix=identity.prefix),
        "others": others,
    }
    first = Recipient(reminder.person, f"awaited: {reminder.stage}")
    return in_thread(thread, purpose, "reminder", context, identity, now, excluded, first)


def _greeted(name: str) -> str:
    """Return the first name; the whole name if it is written with a comma, which puts the last name first."""
    return name if "," in name else name.split(" ")[0]
