"""The withdrawal mail: a report was wrong, and its recipients are informed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from datetime import datetime

from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line


def compose_withdrawal(
    thread: ThreadData, reason: str, purpose: str, identity: BotIdentity, now: datetime, excluded: Mapping[str, str]
) -> ComposedMail:
    """Return the withdrawal mail. `reason`: the text that the decision relied on, or ""."""
    quoted = f'Reason: "{one_line(reason, 600)}"' if reason else ""
    lines = textwrap.wrap(quoted, 74, break_on_hyphens=False)
    return in_thread(thread, purpose, "withdrawal", {"reason": lines}, identity, now, excluded)
