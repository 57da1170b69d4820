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
    """Where it was measured again: "v9.1-rc5", its commit, and the new numbers if known. `question_open`: someone
    disputes the report or asked the lab a question, so that the lab must answer.
    """

    ref: str
    sha: str
    measured: FindingData | None = None
    question_open: bool = False


def compose_recheck(
    thread: ThreadData,
    still_there: StillThere,
    headline: FindingData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    context = {
        "ref": one_line(still_there.ref, 40),
        "ref10": still_there.sha[:10],
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "reported": numbers.sides(headline),
        "remeasured": numbers.sides(still_there.measured) if still_there.measured else "",
        "question_open": still_there.question_open,
    }
    return in_thread(thread, purpose, "recheck", context, identity, now, excluded)
