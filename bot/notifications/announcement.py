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
    """`action`: its kind, in words; `note`: the person's note or ""; `status`: the report's status text."""

    person: str
    action: str
    note: str
    status: str


def compose_status(
    thread: ThreadData,
    change: StatusChange,
    purpose: str,
    identity: BotIdentity,
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
    return in_thread(thread, purpose, "status", context, identity, now, excluded)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)
