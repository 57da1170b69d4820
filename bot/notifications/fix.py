"""The mail about a fix that the lab measured: how much it recovers. `Tested-by:` only where it passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose import numbers
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.recipients import Recipient
from bot.compose.report.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.events import Grade

TESTED_BY_SHARE = 0.9  # share of the loss that a fix must recover to get a Tested-by
_LEAST_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class FixData:
    """A fix, and the report's headline metric measured again without it and with it."""

    sha: str
    title: str
    author: Address
    measured: FindingData

    def recovers(self, headline: FindingData) -> float | None:
        """Return the share of the loss that the fix recovers, 1 for all of it; None if nothing was lost.

        The smaller of two: the gain over the fix's parent, and the gain over the culprit. A kernel that had become
        even slower before the fix is not repaired because it is faster than its parent.
        """
        lost = headline.old_mean - headline.new_mean
        if not lost:
            return None
        gained = (self.measured.new_mean - self.measured.old_mean) / lost
        reached = (self.measured.new_mean - headline.new_mean) / lost
        return min(gained, reached)

    def passes(self, headline: FindingData) -> bool:
        """Return whether the fix earns a Tested-by: a significant improvement of at least TESTED_BY_SHARE."""
        share = self.recovers(headline)
        return self.measured.verdict is Grade.IMPROVEMENT and share is not None and share >= TESTED_BY_SHARE


def compose_fix(
    thread: ThreadData,
    fix: FixData,
    headline: FindingData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    excluded: Mapping[str, str],
) -> ComposedMail:
    passes = fix.passes(headline)
    context = {
        "fix_sha": fix.sha,
        "fix_title": one_line(fix.title, 200),
        "outcome": outcome_text(fix, headline),
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "reported": numbers.sides(headline),
        "remeasured": numbers.sides(fix.measured),
        "evidence": "; ".join(numbers.evidence(fix.measured)),
        "tested": f"Tested-by: {one_line(identity.name)} <{identity.tagged(thread.tag)}>" if passes else "",
    }
    first = Recipient(fix.author, "author of the measured fix") if fix.author.email else None
    return in_thread(thread, purpose, "fix", context, identity, now, excluded, first, str(context["tested"]))


def outcome_text(fix: FixData, headline: FindingData) -> str:
    """Return what a fix does, as the end of "It …"."""
    share = fix.recovers(headline)
    if fix.measured.verdict is Grade.REGRESSION:
        return "makes things worse"
    if fix.measured.verdict is Grade.NOT_TESTABLE:
        return "could not be judged: too few runs"
    if fix.measured.verdict is not Grade.IMPROVEMENT:
        return "makes no measurable difference"
    if share is None or share < _LEAST_SHARE:
        return "helps, but does not recover the regression"
    more = " (and more)" if share > 1.05 else ""
    return f"recovers {min(100, round(100 * share))}%{more} of the regression"
