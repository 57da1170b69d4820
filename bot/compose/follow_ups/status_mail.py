"""The mail about an action that a person took on a report's page and chose to announce in its thread."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line


@dataclass(frozen=True, slots=True)
class StatusChange:
    """`what`: the kind of action, in words; `words`: the person's note or ""; `status`: the report's status text."""

    person: str
    what: str
    words: str
    status: str


def compose_status(
    thread: ThreadData,
    said: StatusChange,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    unwelcome: Mapping[str, str],
) -> ComposedMail:
    """Return the mail about one action, in the words that the page uses for it."""
    note = f'"{one_line(said.words, 1200)}"' if said.words else ""
    told = {
        "lines": _wrapped(f"{one_line(said.person, 80)} updated this report: {one_line(said.what, 80)}."),
        "note": _wrapped(note),
        "status": _wrapped(f"Status: {one_line(said.status, 600).rstrip('.')}."),
    }
    return in_thread(thread, purpose, "status", told, identity, now, unwelcome)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)
