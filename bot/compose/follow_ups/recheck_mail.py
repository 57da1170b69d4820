"""The recheck mail: a regression is still present in a later version, and a reply from the author or lab is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose import numbers
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.report.report_data import FindingData
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line


@dataclass(frozen=True, slots=True)
class StillThere:
    """Where it was measured again: "v9.1-rc5", its commit, and the new numbers if known. `asked`: someone disputes
    the report or asked the lab a question, so that the lab must answer.
    """

    ref: str
    sha: str
    again: FindingData | None = None
    asked: bool = False


def compose_recheck(
    thread: ThreadData,
    seen: StillThere,
    headline: FindingData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    unwelcome: Mapping[str, str],
) -> ComposedMail:
    words = {
        "ref": one_line(seen.ref, 40),
        "ref10": seen.sha[:10],
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "then": numbers.sides(headline),
        "again": numbers.sides(seen.again) if seen.again else "",
        "asked": seen.asked,
    }
    return in_thread(thread, purpose, "recheck", words, identity, now, unwelcome)
