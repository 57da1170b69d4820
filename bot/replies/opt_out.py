"""Requests to get no more mail, or mail again: `unsubscribe` or `subscribe` as subject or first line."""

from __future__ import annotations

import re
from enum import StrEnum

from bot.mail.identity import BotIdentity
from bot.replies.reading import Reading
from bot.replies.sender_kind import SenderKind


class MailWish(StrEnum):
    """What the sender asks for."""

    LEAVE = "unsubscribe"
    COME_BACK = "subscribe"


_WISH = re.compile(r"(?:please )?(un-?)?subscribe(?: me)?(?: please)?[\s.!]*", re.I)


def wish_of(reading: Reading, identity: BotIdentity) -> MailWish | None:
    """Return the request of a person who wrote to our address, or None; mail only to a list is about that list."""
    to_us = any(identity.is_own(each.email) for each in (*reading.mail.recipients, *reading.mail.delivered_to))
    if reading.kind not in (SenderKind.PERSON, SenderKind.BOT_OPERATOR) or not to_us or not reading.mail.author.email:
        return None
    lines = [line.strip() for line in reading.own_text.splitlines() if line.strip()]
    commanded = [line[len(identity.prefix) :].lstrip(": ") for line in lines if _is_command(line, identity.prefix)]
    for text in (reading.mail.subject.strip(), *lines[:1], *commanded[:1]):
        if found := _WISH.fullmatch(text):
            return MailWish.LEAVE if found[1] else MailWish.COME_BACK
    return None


def _is_command(line: str, prefix: str) -> bool:
    return line.lower().startswith(prefix.lower())
