"""From an effect to an event of the report, with the mail as its evidence."""

from __future__ import annotations

from datetime import datetime

from bot.mail.message import ParsedMail
from bot.replies.effect import Effect
from tracker.domain.events import EventData, EventKind, Role


def event_of(effect: Effect, mail: ParsedMail, role: Role | None, at: datetime, number: int = 0) -> EventData | None:
    """The event that an effect makes, or None. `number` tells several effects of one mail apart."""
    if effect.happening is None:
        return None
    suffix = f"#{number}" if number else ""
    return EventData(
        key=f"{effect.happening}:{mail.message_id}{suffix}",
        kind=effect.happening,
        at=at,
        by=role or Role.AUTHOR,  # of a report whose people nobody told us, whoever answers counts
        message_id=mail.message_id,
        commit=effect.commit,
        title=effect.title,
        tree=effect.tree,
        remark=effect.remark,
        answers=mail.parent,
    )


def reported_event(mail: ParsedMail, at: datetime, tree: str = "") -> EventData:
    """The report mail itself. A culprit reported twice has two; the first one counts."""
    key = f"{EventKind.REPORTED}:{mail.message_id}"
    return EventData(key, EventKind.REPORTED, at, Role.REPORTER, message_id=mail.message_id, tree=tree)


def in_mainline_event(mail: ParsedMail, at: datetime) -> EventData:
    """A report on the mainline proves that the culprit is in it, though not since which version."""
    key = f"{EventKind.LANDED}:{mail.message_id}"
    return EventData(key, EventKind.LANDED, at, Role.MACHINE, message_id=mail.message_id)
