"""The subject of a report: "[LKP] [mm/vmscan] 3b1f0c9d2e: -12.4% regression"."""

from __future__ import annotations

from bot.compose.mail import one_line
from bot.subsystem import subsystem_of
from tracker.status import Verdict


def report_subject(title: str, sha: str, change_pct: float | None, verdict: Verdict) -> str:
    """The form of the 0-Day report of v5.6. `change_pct`: plus is better; a regression's sign is minus."""
    subsystem = one_line(subsystem_of(title), 60)
    bracket = f"[{subsystem}] " if subsystem else ""
    if change_pct is None:  # from zero: a percentage would mean nothing
        return f"[LKP] {bracket}{sha[:10]}: {verdict}"
    sign = "-" if verdict is Verdict.REGRESSION else ""
    return f"[LKP] {bracket}{sha[:10]}: {sign}{abs(change_pct):.1f}% {verdict}"
