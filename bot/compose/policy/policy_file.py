"""Parse the policy from its TOML file; docs/mail.md has an example. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from bot.compose.policy.action import Action
from bot.compose.policy.policy import Policy, PolicyRule
from bot.compose.policy.rates import Rates
from bot.compose.policy.reminding import ReminderPolicy
from tracker.domain.events import Verdict
from tracker.domain.timing.deadlines import DeadlinePolicy

_LIMITS = {"per_author_a_day": "per_author", "per_list_a_day": "per_list", "a_day": "a_day"}
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
    """Return the policy of a file; ValueError with one line on what is wrong. A typo must not let mail out."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"invalid TOML: {error}") from None
    limits: dict[str, Any] = {own: _whole_number(table, name) for name, own in _LIMITS.items() if name in table}
    if "quiet_days_after_fix" in table:
        limits["quiet_after_fix"] = timedelta(days=_whole_number(table, "quiet_days_after_fix"))
    if "rate" in table:
        limits["rates"] = _rates(table["rate"])
    if unknown := sorted(table.keys() - _LIMITS.keys() - {"quiet_days_after_fix", "rate", "rule", "reminders"}):
        raise ValueError(f"{unknown[0]}: unknown setting")
    if "reminders" in table:
        limits["reminders"] = _reminders(table["reminders"])
    rules = table.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        raise ValueError("rule: expected [[rule]] above each rule")
    read = tuple(_rule(each, f"rule {number}") for number, each in enumerate(rules, 1))
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
    known = {field.name for field in fields(PolicyRule)}
    if unknown := sorted(table.keys() - known):
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
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise ValueError(f"{where}: {name}: expected a list of patterns, found {value!r}")
            value = tuple(value)
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{where}: {name}: expected {kinds[-1].__name__}, found {value!r}")
        values[name] = value
    return PolicyRule(**values)
