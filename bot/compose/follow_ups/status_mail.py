"""What a person did to a report on its page, said in its thread because he wants it to be heard."""

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
    """`what`: the kind of what he did, in words; `words`: his note, "" for none; `status`: where the report stands."""

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
    """One act, in the words that the page has for it."""
    note = f'"{one_line(said.words, 1200)}"' if said.words else ""
    told = {
        "lines": _wrapped(f"{one_line(said.person, 80)} has marked this report: {one_line(said.what, 80)}."),
        "note": _wrapped(note),
        "status": _wrapped(f"Where it stands: {one_line(said.status, 600).rstrip('.')}."),
    }
    return in_thread(thread, purpose, "said", told, identity, now, unwelcome)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 74, break_on_hyphens=False)
