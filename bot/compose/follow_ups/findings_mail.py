"""The follow-up: what was found of a culprit since its report went out, where that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bot.compose import numbers
from bot.compose.conventions import WIDTH
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.report.report_data import FindingData, worst
from bot.compose.report.tables import sides, tables
from bot.mail.identity import BotIdentity
from tracker.domain.english import counted
from tracker.domain.events import Grade

LEAST_PCT = 5.0  # a change that is worth a mail
_SHOWN = 5


def matters(new: Sequence[FindingData], headline: FindingData) -> bool:
    """Whether people should hear of new findings: one that is worse by five per cent, or by half of the headline's,
    whichever is more. What moved for the better, or little, stands on the report's page.
    """
    told = abs(headline.change_pct) if headline.change_pct is not None else 0.0
    least = max(LEAST_PCT, told / 2)
    worse = [each for each in new if each.verdict is Grade.REGRESSION and not each.is_profile]
    return any(each.change_pct is None or abs(each.change_pct) >= least for each in worse)


def compose_follow_up(
    thread: ThreadData,
    new: Sequence[FindingData],
    parent: tuple[str, str],
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    unwelcome: Mapping[str, str],
) -> ComposedMail:
    """`parent`: the sha and the title of what the culprit was compared with."""
    graded = [each for each in new if each.is_graded]
    worse = sum(each.verdict is Grade.REGRESSION for each in graded)
    better = len(graded) - worse
    words = {
        "counts": counted(worse, "regression") + (f", {counted(better, 'improvement')}" if better else ""),
        "rows": [
            numbers.listed(each, f"{each.metric} on {each.machine}", WIDTH)
            for each in worst(graded)[: min(worse, _SHOWN)]  # regressions stand first; signs differ by metric
        ],
        "tables": list(tables(new)),
        "sides": sides(thread.sha, thread.title, *parent),
    }
    return in_thread(thread, purpose, "follow_up", words, identity, now, unwelcome)
