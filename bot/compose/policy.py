"""Whether a mail may go by itself, must be approved first, or is held: rules of the lab, read from a TOML file. Pure.

quiet_days_after_fix = 7
per_author_a_day = 3
per_list_a_day = 20
a_day = 50

[[rule]]                        # the first that fits decides
action = "send"                 # send, approve or hold
direction = "regression"
at_least_pct = 5
trees = ["linus", "next"]       # shell patterns, as those of suites, subsystems and authors
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from bot.compose.told import ReportTold
from bot.subsystem import subsystem_of
from tracker.status import Verdict

MOST_DAYS = 366  # that a mail may wait for room


class Action(StrEnum):
    """What becomes of a mail."""

    SEND = "send"
    APPROVE = "approve"  # by a person, first
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions that must all hold; those that are not told always do."""

    action: Action
    direction: str = ""
    at_least_pct: float = 0.0
    below_pct: float = float("inf")
    suites: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    subsystems: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    opted_in: bool = False  # only of authors who said so

    def fits(self, told: ReportTold, opted_in: bool) -> bool:
        change = told.headline.change_pct
        size = abs(change) if change is not None else float("inf")
        return (
            self.direction in ("", told.verdict)
            and self.at_least_pct <= size
            and (size < self.below_pct or self.below_pct == float("inf"))
            and _any(self.suites, told.headline.suite)
            and _any(self.trees, told.tree)
            and _any(self.subsystems, subsystem_of(told.title))
            and _any(self.authors, told.author.email)
            and (opted_in or not self.opted_in)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in order, what holds where none fits, and the limits; 0 is no limit."""

    rules: tuple[Rule, ...] = ()
    otherwise: Action = Action.APPROVE
    quiet: timedelta = timedelta(days=7)
    per_author: int = 0
    per_list: int = 0
    a_day: int = 0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known around a report. `reported_by`: the Message-ID of another robot's report of its culprit;
    `same_patch`: the commit, and `same_patch_tree` the tree, under which the same patch was reported before.
    """

    fix_posted_at: datetime | None = None
    reported_by: str = ""
    same_patch: str = ""
    same_patch_tree: str = ""
    opted_in: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and why where that is to hold it."""

    action: Action
    reason: str = ""


def decide(told: ReportTold, policy: Policy, known: Circumstances, now: datetime) -> Decision:
    """What becomes of a report's mail. What holds outweighs every rule; a person may let it go all the same."""
    if reason := next(_holds(policy, known, now), ""):
        return Decision(Action.HOLD, reason)
    for number, rule in enumerate(policy.rules, 1):
        if rule.fits(told, known.opted_in):
            return Decision(rule.action, f"rule {number} of the policy" if rule.action is Action.HOLD else "")
    return Decision(policy.otherwise)


def _holds(policy: Policy, known: Circumstances, now: datetime) -> Iterator[str]:
    if known.reported_by:
        yield f"already reported by another robot: <{known.reported_by}>"
    if known.same_patch:
        where = f" in {known.same_patch_tree}" if known.same_patch_tree else ""
        yield f"the same patch was reported as {known.same_patch[:10]}{where}"
    if known.fix_posted_at and now - known.fix_posted_at < policy.quiet:
        yield f"a fix was posted on {known.fix_posted_at:%Y-%m-%d}, less than {policy.quiet.days} days ago"


def first_day(
    sent: Mapping[date, Mapping[str, int]], addresses: Collection[str], author: str, policy: Policy, today: date
) -> date:
    """The first day from today on with room for one mail more. `sent`: mails a day by address, and in all under "".

    Where no day of a year has room, the last of them.
    """
    caps = {"": policy.a_day, **dict.fromkeys(addresses, policy.per_list), author: policy.per_author}
    for days in range(MOST_DAYS):
        day = today + timedelta(days=days)
        counts = sent.get(day, {})
        if all(not most or counts.get(address, 0) < most for address, most in caps.items()):
            return day
    return today + timedelta(days=MOST_DAYS)


def _any(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text.lower(), each.lower()) for each in patterns)


# --- the file ---

_LIMITS = {"per_author_a_day": "per_author", "per_list_a_day": "per_list", "a_day": "a_day"}
_KINDS: dict[str, tuple[type, ...]] = {
    "direction": (str,),
    "at_least_pct": (int, float),
    "below_pct": (int, float),
    "opted_in": (bool,),
}


def read_policy(text: str, otherwise: Action) -> Policy:
    """The policy of a file; ValueError says in a line what is wrong with it. A typo must let no mail go."""
    try:
        told = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"no TOML: {error}") from None
    limits: dict[str, Any] = {own: _whole(told, name) for name, own in _LIMITS.items() if name in told}
    if "quiet_days_after_fix" in told:
        limits["quiet"] = timedelta(days=_whole(told, "quiet_days_after_fix"))
    if unknown := sorted(told.keys() - _LIMITS.keys() - {"quiet_days_after_fix", "rule"}):
        raise ValueError(f"{unknown[0]}: there is no such setting")
    rules = told.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        raise ValueError("rule: expected [[rule]] above each rule")
    read = tuple(_rule(each, f"rule {number}") for number, each in enumerate(rules, 1))
    return replace(Policy(rules=read, otherwise=otherwise), **limits)


def _whole(told: Mapping[str, Any], name: str) -> int:
    value = told[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**6:
        raise ValueError(f"{name}: expected a whole number, found {value!r}")
    return value


def _rule(told: Mapping[str, Any], where: str) -> Rule:
    known = {field.name for field in fields(Rule)}
    if unknown := sorted(told.keys() - known):
        raise ValueError(f"{where}: {unknown[0]}: there is no such condition")
    if told.get("action") not in list(Action):
        raise ValueError(f"{where}: action: expected send, approve or hold, found {told.get('action')!r}")
    if told.get("direction", "") not in ("", Verdict.REGRESSION, Verdict.IMPROVEMENT):
        raise ValueError(f"{where}: direction: expected regression or improvement, found {told['direction']!r}")
    values: dict[str, Any] = {"action": Action(told["action"])}
    for name in told.keys() - {"action"}:
        value = told[name]
        kinds = _KINDS.get(name)
        if kinds is None:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise ValueError(f"{where}: {name}: expected a list of patterns, found {value!r}")
            value = tuple(value)
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{where}: {name}: expected {kinds[-1].__name__}, found {value!r}")
        values[name] = value
    return Rule(**values)
