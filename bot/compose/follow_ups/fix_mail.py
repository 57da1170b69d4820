"""What the lab measured of a fix: it helps, in part, or not at all. `Tested-by:` only where it truly passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose import numbers
from bot.compose.follow_ups.thread_mail import ThreadData, in_thread
from bot.compose.mail import ComposedMail
from bot.compose.report.report_data import FindingData
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.events import Grade

WHOLE = 0.9  # of what was lost: from here on the lab stands for the fix with its name
_NOTHING = 0.005


@dataclass(frozen=True, slots=True)
class FixData:
    """A fix, and the report's headline measured again on both sides of it: without the fix, and with it."""

    sha: str
    title: str
    author: Address
    measured: FindingData

    def recovers(self, headline: FindingData) -> float | None:
        """The share of what the culprit cost that comes back, 1 for all; None where nothing was lost.

        The less of what the fix gains over its parent, and of what it leads back to: a kernel that was slower still
        before the fix is not well because it is faster now.
        """
        lost = headline.old_mean - headline.new_mean
        if not lost:
            return None
        gained = (self.measured.new_mean - self.measured.old_mean) / lost
        reached = (self.measured.new_mean - headline.new_mean) / lost
        return min(gained, reached)

    def passes(self, headline: FindingData) -> bool:
        """Whether the lab may stand for it with its name: no chance, and all of the loss is back."""
        share = self.recovers(headline)
        return self.measured.verdict is Grade.IMPROVEMENT and share is not None and share >= WHOLE


def compose_fix(
    thread: ThreadData,
    fix: FixData,
    headline: FindingData,
    purpose: str,
    identity: BotIdentity,
    now: datetime,
    unwelcome: Mapping[str, str],
) -> ComposedMail:
    passes = fix.passes(headline)
    words = {
        "fix_sha": fix.sha,
        "fix_title": one_line(fix.title, 200),
        "outcome": _outcome(fix, headline),
        "metric": one_line(headline.metric, 120),
        "where": one_line(headline.where, 120),
        "then": numbers.sides(headline),
        "again": numbers.sides(fix.measured),
        "sureness": "; ".join(numbers.sureness(fix.measured)),
        "tested": f"Tested-by: {one_line(identity.name)} <{identity.tagged(thread.tag)}>" if passes else "",
    }
    first = fix.author if fix.author.email else None
    return in_thread(thread, purpose, "fix", words, identity, now, unwelcome, first, str(words["tested"]))


def _outcome(fix: FixData, headline: FindingData) -> str:
    share = fix.recovers(headline)
    if fix.measured.verdict is Grade.REGRESSION:
        return "makes things worse"
    if fix.measured.verdict is Grade.NOT_TESTABLE:
        return "could not be judged from so few runs"
    if fix.measured.verdict is not Grade.IMPROVEMENT:
        return "makes no difference that we could measure"
    if share is None or share < _NOTHING:
        return "helps, but does not get back what the regression cost"
    more = " (and more)" if share > 1.05 else ""
    return f"recovers {min(100, round(100 * share))}%{more} of the regression"
