"""Decide whether a mail is sent automatically, needs approval or is held: the lab's rules and limits. Pure.

docs/mail.md has an example; policy_file.py reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase

from bot.compose.policy.action import Action
from bot.compose.policy.rates import Rates
from bot.compose.policy.reminding import ReminderPolicy
from bot.compose.report.report_data import ReportData
from bot.mail.subsystem import subsystem_of

MOST_DAYS = 366  # the longest that a mail waits for a day with room


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Conditions that must all hold; those not given always do."""

    action: Action
    direction: str = ""
    at_least_pct: float = 0.0
    below_pct: float = float("inf")
    suites: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    subsystems: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    opted_in: bool = False  # only authors who opted in

    def __str__(self) -> str:
        """Its conditions: "regression, at least 5%, suites vm-*"; "every report" without any."""
        sizes = [f"at least {self.at_least_pct:g}%"] if self.at_least_pct else []
        sizes += [f"below {self.below_pct:g}%"] if self.below_pct != float("inf") else []
        names = ("suites", "trees", "subsystems", "authors")
        patterns = [f"{name} {' or '.join(getattr(self, name))}" for name in names if getattr(self, name)]
        wanted = ["the author opted in"] if self.opted_in else []
        return ", ".join([*([self.direction] if self.direction else []), *sizes, *patterns, *wanted]) or "every report"

    def fits(self, report: ReportData, opted_in: bool) -> bool:
        change = report.headline.change_pct
        size = abs(change) if change is not None else float("inf")
        return (
            self.direction in ("", report.verdict)
            and self.at_least_pct <= size
            and (size < self.below_pct or self.below_pct == float("inf"))
            and _any(self.suites, report.headline.suite)
            and _any(self.trees, report.tree)
            and _any(self.subsystems, subsystem_of(report.title))
            and _any(self.authors, report.author.email)
            and (opted_in or not self.opted_in)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in order, the daily limits (0: no limit), and the rate limits."""

    rules: tuple[PolicyRule, ...] = ()
    quiet_after_fix: timedelta = timedelta(days=7)
    per_author: int = 5
    per_list: int = 50
    a_day: int = 100
    rates: Rates = field(default_factory=Rates)
    reminders: ReminderPolicy = field(default_factory=ReminderPolicy)


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What else is known about a report. `reported_by`: the Message-ID of another robot's report of its culprit;
    `same_patch`, `same_patch_tree`: the commit and tree for which the same patch was reported before.
    """

    fix_posted_at: datetime | None = None
    reported_by: str = ""
    same_patch: str = ""
    same_patch_tree: str = ""
    opted_in: bool = False


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The action; for a hold the reason, and `until` when it holds (None: without end)."""

    action: Action
    reason: str = ""
    until: datetime | None = None


def decide(
    report: ReportData, policy: Policy, context: PolicyContext, now: datetime, otherwise: Action
) -> PolicyDecision:
    """Return the decision for a report's mail; `otherwise` is the action if no rule matches. A hold takes precedence
    over every rule; a person may still approve the mail.
    """
    if hold := next(_holds(policy, context, now), None):
        return hold
    for number, rule in enumerate(policy.rules, 1):
        if rule.fits(report, context.opted_in):
            held_by = f"rule {number} of the policy ({rule})"
            return PolicyDecision(rule.action, held_by if rule.action is Action.HOLD else "")
    return PolicyDecision(otherwise)


def _holds(policy: Policy, context: PolicyContext, now: datetime) -> Iterator[PolicyDecision]:
    if context.reported_by:
        yield PolicyDecision(Action.HOLD, f"already reported by another robot: <{context.reported_by}>")
    if context.same_patch:
        where = f" in {context.same_patch_tree}" if context.same_patch_tree else ""
        until = now + timedelta(hours=1)  # that report may be dropped before it is sent
        yield PolicyDecision(Action.HOLD, f"the same patch was reported as {context.same_patch[:10]}{where}", until)
    if context.fix_posted_at and now - context.fix_posted_at < policy.quiet_after_fix:
        reason = (
            f"a fix was posted on {context.fix_posted_at:%Y-%m-%d}, less than {policy.quiet_after_fix.days} days ago"
        )
        yield PolicyDecision(Action.HOLD, reason, context.fix_posted_at + policy.quiet_after_fix)


def first_day(
    sent: Mapping[date, Mapping[str, int]], lists: Collection[str], author: str, policy: Policy, today: date
) -> date:
    """Return the first day, from today on, with room for one more mail. `sent`: mails per day by address; the total
    is under "".

    `author` "": no author limit applies. If no day within MOST_DAYS has room, return the day after.
    """
    caps = {**dict.fromkeys(lists, policy.per_list), **({author: policy.per_author} if author else {})}
    caps[""] = policy.a_day
    for days in range(MOST_DAYS):
        day = today + timedelta(days=days)
        counts = sent.get(day, {})
        if all(not most or counts.get(address, 0) < most for address, most in caps.items()):
            return day
    return today + timedelta(days=MOST_DAYS)


def _any(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text.lower(), each.lower()) for each in patterns)
