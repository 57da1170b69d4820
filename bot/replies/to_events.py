"""Turn effects into events of a report, with the mail as evidence."""

from __future__ import annotations

from datetime import datetime

from bot.mail.message import ParsedMail
from bot.replies.effect import Effect
from tracker.domain.events import EventData, EventKind, Role


def event_of(effect: Effect, mail: ParsedMail, role: Role | None, at: datetime, number: int = 0) -> EventData | None:
    """Return the event of an effect, or None. `number` distinguishes several effects of one mail."""
    if effect.kind is None:
        return None
    suffix = f"#{number}" if number else ""
    return EventData(
        key=f"{effect.kind}:{mail.message_id}{suffix}",
        kind=effect.kind,
        occurred_at=at,
        role=role or Role.AUTHOR,  # if the report's people are unknown, any reply counts
        message_id=mail.message_id,
        commit=effect.commit,
        title=effect.title,
        tree=effect.tree,
        remark=effect.remark,
        in_reply_to=mail.parent,
    )


def reported_event(mail: ParsedMail, at: datetime, tree: str = "") -> EventData:
    """Return the event of the report mail itself. A culprit reported twice has two; the first one counts."""
    key = f"{EventKind.REPORTED}:{mail.message_id}"
    return EventData(key, EventKind.REPORTED, at, Role.REPORTER, message_id=mail.message_id, tree=tree)


def in_mainline_event(mail: ParsedMail, at: datetime) -> EventData:
    """Return a landing: a report against mainline proves that the culprit is there, but not since which version."""
    key = f"{EventKind.LANDED}:{mail.message_id}"
    return EventData(key, EventKind.LANDED, at, Role.MACHINE, message_id=mail.message_id)
