"""Turn effects into events of a report, with the mail as evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from bot.mail.message import ParsedMail
from bot.replies.effect import Effect
from tracker.domain.events import EventData, EventKind, Role


def events_of(
    effects: Iterable[Effect], mail: ParsedMail, role: Role | None, at: datetime
) -> list[tuple[Effect, EventData]]:
    """Return the effects of a mail that have an event, each with it.

    The key of an event is its kind, and its number among those of its kind: so a decision on it is found again,
    whatever else a later release reads in the mail.
    """
    found: list[tuple[Effect, EventData]] = []
    numbers: Counter[EventKind] = Counter()
    for effect in effects:
        if effect.kind is not None:
            found.append((effect, _event(effect, effect.kind, mail, role, at, numbers[effect.kind])))
            numbers[effect.kind] += 1
    return found


def _event(
    effect: Effect, kind: EventKind, mail: ParsedMail, role: Role | None, at: datetime, number: int
) -> EventData:
    suffix = f"#{number}" if number else ""
    return EventData(
        key=f"{kind}:{mail.message_id}{suffix}",
        kind=kind,
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
