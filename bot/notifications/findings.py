"""The follow-up mail: findings about a culprit since its report was sent, where they matter."""

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
from tracker.domain.events import Grade
from tracker.domain.text.english import counted

LEAST_PCT = 5.0  # the smallest change that is worth a mail
_SHOWN = 5


def matters(new: Sequence[FindingData], headline: FindingData) -> bool:
    """Return whether new findings deserve a mail: one is worse by 5% or by half of the headline's change, whichever
    is more. Improvements and smaller changes are only on the report's page.
    """
    reported = abs(headline.change_pct) if headline.change_pct is not None else 0.0
    least = max(LEAST_PCT, reported / 2)
    worse = [each for each in new if each.verdict is Grade.REGRESSION and not each.is_profile]
    return any(each.change_pct is None or abs(each.change_pct) >= least for each in worse)


def compose_follow_up(
    thread: ThreadData,
    new: Sequence[FindingData],
    parent: tuple[str, str],
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    """Return the follow-up mail. `parent`: the sha and title of the baseline."""
    graded = [each for each in new if each.is_graded]
    worse = sum(each.verdict is Grade.REGRESSION for each in graded)
    better = len(graded) - worse
    context = {
        "counts": counted(worse, "regression") + (f", {counted(better, 'improvement')}" if better else ""),
        "rows": [
            numbers.listed(each, f"{each.metric} on {each.machine}", WIDTH)
            for each in worst(graded)[: min(worse, _SHOWN)]  # `worst` puts regressions first
        ],
        "tables": list(tables(new)),
        "sides": sides(thread.sha, thread.title, *parent),
    }
    return in_thread(thread, purpose, "follow_up", context, identity, now, excluded)
