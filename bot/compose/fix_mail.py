"""What the lab measured of a fix: it helps, in part, or not at all. `Tested-by:` only where it truly passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.compose import numbers
from bot.compose.further_mail import ThreadTold, further
from bot.compose.mail import Mail
from bot.compose.safe import one_line
from bot.compose.told import FindingTold
from bot.identity import Identity
from bot.replies.addresses import Address
from tracker.status import Grade

WHOLE = 0.9  # of what was lost: more than this is all of it, by what benchmarks can tell
_NOTHING = 0.1


@dataclass(frozen=True, slots=True)
class FixTold:
    """A fix, and the report's headline measured again on both sides of it: without the fix, and with it."""

    sha: str
    title: str
    author: Address
    measured: FindingTold

    def recovers(self, headline: FindingTold) -> float | None:
        """The share of what the culprit cost that comes back, 1 for all; None where nothing was lost."""
        lost = headline.old_mean - headline.new_mean
        return (self.measured.new_mean - self.measured.old_mean) / lost if lost else None

    def passes(self, headline: FindingTold) -> bool:
        """Whether the lab may stand for it with its name: no chance, and all of the loss is back."""
        share = self.recovers(headline)
        return self.measured.verdict is Grade.IMPROVEMENT and share is not None and share >= WHOLE


def compose_fix(
    thread: ThreadTold,
    fix: FixTold,
    headline: FindingTold,
    purpose: str,
    identity: Identity,
    now: datetime,
    unwelcome: Mapping[str, str],
) -> Mail:
    passes = fix.passes(headline)
    words = {
        "fix_sha": fix.sha,
        "fix_title": one_line(fix.title, 200),
        "outcome": _outcome(fix, headline),
        "metric": one_line(headline.metric, 120),
        "where": one_line(f"{headline.suite} on {headline.machine}", 120),
        "then": _sides(headline),
        "again": _sides(fix.measured),
        "runs": _runs(fix.measured),
        "tested": f"Tested-by: {one_line(identity.name)} <{identity.tagged(thread.tag)}>" if passes else "",
    }
    first = fix.author if fix.author.email else None
    return further(thread, purpose, "fix", words, identity, now, unwelcome, first)


def _outcome(fix: FixTold, headline: FindingTold) -> str:
    share = fix.recovers(headline)
    if fix.measured.verdict is Grade.REGRESSION:
        return "makes it worse"
    if fix.measured.verdict is not Grade.IMPROVEMENT or share is None or share < _NOTHING:
        return "makes no difference that we could measure"
    return "brings back all that was lost" if share >= WHOLE else f"brings back {100 * share:.0f}% of what was lost"


def _sides(finding: FindingTold) -> str:
    sides = ((finding.old_mean, finding.old_stddev_pct), (finding.new_mean, finding.new_stddev_pct))
    told = " -> ".join(numbers.value(mean) + numbers.spread(spread).rstrip() for mean, spread in sides)
    unit = f" {one_line(finding.unit, 20)}" if finding.unit else ""
    return f"{told}{unit} ({numbers.moved(finding)})"


def _runs(finding: FindingTold) -> str:
    parts = []
    if finding.old_runs and finding.new_runs:
        parts.append(f"{finding.old_runs} + {finding.new_runs} runs")
    if finding.p_value is not None:
        parts.append(numbers.chance(finding.p_value))
    return "; ".join(parts)
