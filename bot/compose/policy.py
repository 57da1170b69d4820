"""The lab's policy: which mail is sent, approved or held, how fast, and who is reminded. Pure.

The rules and limits are TOML, from `/operating/policy/` or a file; docs/mail.md has an example. A typo in it must not
let mail out, so whatever is not known is an error. The first rule that fits decides; a hold takes precedence over every
rule, and a person may still approve the mail.

Rates limit outgoing mail in total, per domain and per address. Each mail is given the first time at which all rates
that apply have room, and keeps it: a long queue is scheduled once, and mails for a slow address delay no others. In
quiet hours nothing is sent.

When a reminder is due is said in bot/notifications/reminder.py.
"""

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from bot.compose.report_data import ReportData
from bot.mail.patches import subsystem_of
from tracker.domain.deadlines import DEFAULT, DeadlinePolicy
from tracker.domain.events import Verdict


class Action(StrEnum):
    """What happens to a mail."""

    SEND = "send"
    APPROVE = "approve"  # a person must approve it first
    HOLD = "hold"


# --- Rates ---

AHEAD = timedelta(seconds=2)  # the burst that may be sent at once
Slot = tuple[datetime, datetime]  # the first time that is taken, and the first that is free again


@dataclass(frozen=True, slots=True)
class Rates:
    """Mails per minute; 0: no limit. `own`: overrides for a domain ("@kernel.org") or an address."""

    every: int = 0
    domain: int = 0
    address: int = 0
    own: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.every or self.domain or self.address or self.own)

    def keys(self, recipients: Sequence[str]) -> Iterator[tuple[str, timedelta]]:
        """Yield the rate limits that apply to a mail, as (key, time between two mails); the total's key is ""."""
        domains = dict.fromkeys("@" + recipient.lower().rpartition("@")[2] for recipient in recipients)
        addresses = dict.fromkeys(recipient.lower() for recipient in recipients)
        limits = {
            "": self.every,
            **{domain: self.own.get(domain, self.domain) for domain in domains},
            **{address: self.own.get(address, self.address) for address in addresses},
        }
        for key, rate in limits.items():
            if rate:
                yield key, timedelta(minutes=1) / rate


def reserve_slot(
    recipients: Sequence[str], rates: Rates, taken: MutableMapping[str, list[Slot]], now: datetime
) -> datetime | None:
    """Return when a mail may be sent, None for now. In both cases its slots are reserved in `taken`.

    `taken`: by key, the reserved slots in order, joined where they touch. A mail that waits for a slow address takes a
    slot of that time from the other limits, and none of those before it.
    """
    keys = dict(rates.keys(recipients))
    begin, before = now, None
    while begin != before:
        before = begin
        for key, apart in keys.items():
            begin = _next_free(taken.get(key, ()), begin, apart)
    for key, apart in keys.items():
        _reserve(taken.setdefault(key, []), (begin, begin + apart), now)
    return None if begin <= now + AHEAD else begin


def _next_free(taken: Sequence[Slot], begin: datetime, apart: timedelta) -> datetime:
    """Return the first time, from `begin` on, after which nothing is reserved for `apart`."""
    for slot in taken[bisect_right(taken, begin, key=lambda slot: slot[1]) :]:
        if slot[0] >= begin + apart:
            break
        begin = slot[1]
    return begin


def _reserve(taken: list[Slot], slot: Slot, now: datetime) -> None:
    """Add a slot, which overlaps none that is reserved; forget those that are past."""
    del taken[: bisect_right(taken, now, key=lambda slot: slot[1])]
    at = bisect_right(taken, slot)
    begin, end = slot
    if at < len(taken) and taken[at][0] == end:
        end = taken.pop(at)[1]
    if at and taken[at - 1][1] == begin:
        at -= 1
        begin = taken.pop(at)[0]
    taken.insert(at, (begin, end))


# --- Quiet hours ---


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The hours of a day, on the clocks of a place, in which nothing is sent."""

    begin: time
    end: time
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M} {self.zone}"

    def until(self, now: datetime) -> datetime | None:
        """Return when these hours end, if it is one of them now; else None."""
        here = now.astimezone(ZoneInfo(self.zone))
        clock = here.time()
        if self.begin < self.end:
            quiet = self.begin <= clock < self.end
        else:  # over midnight
            quiet = clock >= self.begin or clock < self.end
        if not quiet:
            return None
        day = here.date() + timedelta(days=clock >= self.end)
        end = datetime.combine(day, self.end, here.tzinfo)
        if end.timestamp() <= now.timestamp():  # in the hour that comes twice when the clocks go back
            end = end.replace(fold=1)
        return end.astimezone(now.tzinfo)


# --- Reminders ---


@dataclass(frozen=True, slots=True)
class ReminderPolicy:
    """`action`: what happens to reminders; HOLD: none are composed. `at_least_pct`: of smaller changes nobody is
    reminded. `most`: reminders in a report's life; `apart`: between two of one report, and between two to one person.
    """

    action: Action = Action.APPROVE
    deadlines: DeadlinePolicy = DEFAULT
    at_least_pct: float = 5.0
    serious_pct: float = 30.0
    most: int = 2
    apart: timedelta = timedelta(days=14)
    per_person: timedelta = timedelta(days=7)
    oldest: timedelta = timedelta(days=180)  # reports that were mailed longer ago are left in peace


# --- Rules and daily limits ---

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
    """The rules in order, the daily limits (0: no limit), and the rate limits.

    `never`: addresses, usually of lists, that get no mail of any kind.
    """

    rules: tuple[PolicyRule, ...] = ()
    quiet_after_fix: timedelta = timedelta(days=7)
    per_author: int = 5
    per_list: int = 50
    a_day: int = 100
    rates: Rates = field(default_factory=Rates)
    quiet_hours: QuietHours | None = None
    never: tuple[str, ...] = ()
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
    if context.reported_by:
        return PolicyDecision(Action.HOLD, f"already reported by another robot: <{context.reported_by}>")
    if context.same_patch:
        where = f" in {context.same_patch_tree}" if context.same_patch_tree else ""
        until = now + timedelta(hours=1)  # that report may be dropped before it is sent
        return PolicyDecision(Action.HOLD, f"the same patch was reported as {context.same_patch[:10]}{where}", until)
    if (at := context.fix_posted_at) and now - at < policy.quiet_after_fix:
        reason = f"a fix was posted on {at:%Y-%m-%d}, less than {policy.quiet_after_fix.days} days ago"
        return PolicyDecision(Action.HOLD, reason, at + policy.quiet_after_fix)
    for number, rule in enumerate(policy.rules, 1):
        if rule.fits(report, context.opted_in):
            held_by = f"rule {number} of the policy ({rule})"
            return PolicyDecision(rule.action, held_by if rule.action is Action.HOLD else "")
    return PolicyDecision(otherwise)


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
    return not patterns or any(fnmatchcase(text.lower(), pattern.lower()) for pattern in patterns)


# --- As TOML ---

MOST_RULES = 100
_LIMITS = {"per_author_a_day": "per_author", "per_list_a_day": "per_list", "a_day": "a_day"}
_OTHERS = {"quiet_days_after_fix", "quiet_hours", "never", "rate", "rule", "reminders"}
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: ([A-Za-z][A-Za-z0-9_+/-]{0,60}))?")
_ADDRESS = re.compile(r"[^@\s]{1,200}@[\w.-]{1,200}", re.ASCII)
_STAGES = ("response_days", "fix_days", "landing_days", "serious_days")
_YEAR = 250  # working days
_SIZES = ("at_least_pct", "serious_pct")
_RATES = {"all": "every", "domain": "domain", "address": "address"}
_KINDS: dict[str, tuple[type, ...]] = {
    "direction": (str,),
    "at_least_pct": (int, float),
    "below_pct": (int, float),
    "opted_in": (bool,),
}


def read_policy(text: str) -> Policy:
    """Return the policy of a text; ValueError with one line on what is wrong. A typo must not let mail out."""
    try:
        return policy_of(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"invalid TOML: {error}") from None


def policy_of(table: Mapping[str, Any]) -> Policy:
    """Return the policy of a TOML table; ValueError as `read_policy`."""
    limits: dict[str, Any] = {own: _whole_number(table, name) for name, own in _LIMITS.items() if name in table}
    if "quiet_days_after_fix" in table:
        limits["quiet_after_fix"] = timedelta(days=_whole_number(table, "quiet_days_after_fix"))
    if "rate" in table:
        limits["rates"] = _rates(table["rate"])
    if "quiet_hours" in table:
        limits["quiet_hours"] = _quiet_hours(table["quiet_hours"])
    if "never" in table:
        limits["never"] = _addresses(table["never"])
    if unknown := sorted(table.keys() - _LIMITS.keys() - _OTHERS):
        raise ValueError(f"{unknown[0]}: unknown setting")
    if "reminders" in table:
        limits["reminders"] = _reminders(table["reminders"])
    rules = table.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ValueError("rule: expected [[rule]] above each rule")
    if len(rules) > MOST_RULES:
        raise ValueError(f"rule: expected at most {MOST_RULES} rules, found {len(rules)}")
    read = tuple(_rule(rule, f"rule {number}") for number, rule in enumerate(rules, 1))
    return replace(Policy(rules=read), **limits)


def _rates(table: Any) -> Rates:
    """Return the rates, in mails per minute: `all`, per `domain`, per `address`, and those of named ones."""
    if not isinstance(table, dict):
        raise ValueError("rate: expected a [rate] table")
    numbers = {name.lower(): _whole_number(table, name) for name in table}
    general = {own: numbers.pop(name) for name, own in _RATES.items() if name in numbers}
    if invalid := sorted(name for name in numbers if "@" not in name):
        raise ValueError(f'rate: {invalid[0]}: expected all, domain, address, "@a.domain" or "an@address"')
    return Rates(**general, own=numbers)


def _quiet_hours(value: Any) -> QuietHours:
    """Return the hours of "22:00-07:00 Europe/Berlin", by default in UTC."""
    hours = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if not hours:
        raise ValueError(f'quiet_hours: expected "22:00-07:00 Europe/Berlin", found {value!r}')
    begin, end = time(int(hours[1]), int(hours[2])), time(int(hours[3]), int(hours[4]))
    zone = hours[5] or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # a directory of zones is OSError
        raise ValueError(f"quiet_hours: unknown time zone {zone!r}") from None
    if begin == end:
        raise ValueError("quiet_hours: expected two different times; PERFWORK_SENDING=off stops all sending")
    return QuietHours(begin, end, zone)


def _addresses(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and _ADDRESS.fullmatch(text) for text in value):
        raise ValueError(f"never: expected a list of addresses, found {value!r}")
    return tuple(dict.fromkeys(address.lower() for address in value))


def _reminders(table: Any) -> ReminderPolicy:
    """Return who is reminded when: `action`, the working days of each stage, and from which changes on."""
    if not isinstance(table, dict):
        raise ValueError("reminders: expected a [reminders] table")
    if unknown := sorted(table.keys() - {"action", *_STAGES, *_SIZES}):
        raise ValueError(f"reminders: {unknown[0]}: unknown setting")
    if table.get("action", "approve") not in list(Action):
        raise ValueError(f"reminders: action: expected send, approve or hold, found {table['action']!r}")
    try:
        days: dict[str, Any] = {name: _whole_number(table, name) for name in _STAGES if name in table}
        sizes: dict[str, Any] = {name: float(_whole_number(table, name)) for name in _SIZES if name in table}
    except ValueError as error:
        raise ValueError(f"reminders: {error}") from None
    if wrong := [name for name, number in days.items() if not 1 <= number <= _YEAR]:
        raise ValueError(f"reminders: {wrong[0]}: expected 1 to {_YEAR} working days, found {days[wrong[0]]}")
    action = Action(table.get("action", "approve"))
    return ReminderPolicy(action, deadlines=DeadlinePolicy(**days), **sizes)


def _whole_number(table: Mapping[str, Any], name: str) -> int:
    value = table[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**6:
        raise ValueError(f"{name}: expected a whole number, found {value!r}")
    return value


def _rule(table: Mapping[str, Any], where: str) -> PolicyRule:
    conditions = {field.name for field in fields(PolicyRule)}
    if unknown := sorted(table.keys() - conditions):
        raise ValueError(f"{where}: {unknown[0]}: unknown condition")
    if table.get("action") not in list(Action):
        raise ValueError(f"{where}: action: expected send, approve or hold, found {table.get('action')!r}")
    if table.get("direction", "") not in ("", Verdict.REGRESSION, Verdict.IMPROVEMENT):
        raise ValueError(f"{where}: direction: expected regression or improvement, found {table['direction']!r}")
    values: dict[str, Any] = {"action": Action(table["action"])}
    for name in table.keys() - {"action"}:
        value = table[name]
        kinds = _KINDS.get(name)
        if kinds is None:
            if not isinstance(value, list) or not all(isinstance(pattern, str) for pattern in value):
                raise ValueError(f"{where}: {name}: expected a list of patterns, found {value!r}")
            if wrong := [pattern for pattern in value if not _is_pattern(pattern)]:
                raise ValueError(f"{where}: {name}: expected a pattern without commas, found {wrong[0][:80]!r}")
            value = tuple(value)
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{where}: {name}: expected {kinds[-1].__name__}, found {value!r}")
        elif isinstance(value, (int, float)) and not 0 <= value < 10**6:
            raise ValueError(f"{where}: {name}: expected a percentage, found {str(value)[:20]}")
        values[name] = value
    return PolicyRule(**values)


def _is_pattern(text: str) -> bool:
    """Whether a form can show a pattern in a list with commas, and read the same."""
    return bool(text) and text == text.strip() and "," not in text and text.isprintable()


def to_toml(policy: Policy) -> str:
    """Return a policy as TOML, which `read_policy` reads as the same policy."""
    reminders = policy.reminders
    lines = [f"{name} = {getattr(policy, own)}" for name, own in _LIMITS.items()]
    lines.append(f"quiet_days_after_fix = {policy.quiet_after_fix.days}")
    lines += [f"quiet_hours = {_text(str(policy.quiet_hours))}"] if policy.quiet_hours else []
    lines += [f"never = {_text(policy.never)}"] if policy.never else []
    for rule in policy.rules:
        lines += ["", "[[rule]]", f'action = "{rule.action}"']
        lines += [f"{name} = {_text(value)}" for name, value in _conditions(rule).items()]
    if policy.rates:
        lines += ["", "[rate]"]
        numbers = {name: getattr(policy.rates, own) for name, own in _RATES.items()}
        lines += [f"{name} = {number}" for name, number in numbers.items() if number]
        lines += [f"{_text(name)} = {number}" for name, number in policy.rates.own.items()]
    lines += ["", "[reminders]", f'action = "{reminders.action}"']
    lines += [f"{name} = {getattr(reminders.deadlines, name)}" for name in _STAGES]
    lines += [f"{name} = {getattr(reminders, name):.0f}" for name in _SIZES]
    return "\n".join(lines) + "\n"


def _conditions(rule: PolicyRule) -> dict[str, Any]:
    """Return the conditions that a rule has."""
    plain = PolicyRule(rule.action)
    names = [own.name for own in fields(PolicyRule) if own.name != "action"]
    return {name: getattr(rule, name) for name in names if getattr(rule, name) != getattr(plain, name)}


def _text(value: Any) -> str:
    """Return a TOML value. JSON writes strings, numbers, lists and booleans as TOML does, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
