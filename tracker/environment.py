"""Typed settings from the environment: a bad value is rejected in one line that names the setting."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import environ
from django.core.exceptions import ImproperlyConfigured

env = environ.Env()
T = TypeVar("T")
_SWITCH_VALUES = {
    "on": True,
    "true": True,
    "yes": True,
    "1": True,
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}
_ADDRESS = re.compile(r"[\w.!#$%&'*/=?^`{|}~-]+@[\w.-]+", re.ASCII)


def parse_setting(name: str, expected: str, read: Callable[[], T]) -> T:
    """Return `read()`. Raises ImproperlyConfigured, which says what was expected and what was found."""
    try:
        return read()
    except (ValueError, KeyError, TypeError, ImproperlyConfigured):
        # A URL may hold a password, which must not be logged.
        found = "" if name.endswith("_URL") else f", found {os.environ.get(name, '')[:80]!r}"
        raise ImproperlyConfigured(f"{name}: expected {expected}{found}") from None


def flag(name: str, default: bool) -> bool:
    """Return a switch. A word that is neither on nor off is rejected: a typo must not let mail go out."""
    return parse_setting(
        name, "on or off", lambda: _SWITCH_VALUES[env.str(name, default="on" if default else "off").strip().lower()]
    )


def seconds(name: str, default: float) -> float:
    """Return a time span in seconds, above 0 and below 10**7 (some months)."""

    def read() -> float:
        span = float(env.str(name, default=str(default)))
        if not 0 < span < 10**7:
            raise ValueError
        return span

    return parse_setting(name, "a number of seconds", read)


def positive_int(name: str, default: int) -> int:
    """Return a whole number above 0 and below one million."""

    def read() -> int:
        number = int(env.str(name, default=str(default)))
        if not 0 < number < 10**6:
            raise ValueError
        return number

    return parse_setting(name, "a whole number from 1 to 999999", read)


def pairs(name: str, expected: str = "comma-separated name=path pairs", key: str = r".+") -> dict[str, str]:
    """Return comma-separated name=value pairs as a dict; `key`: the pattern that a name must match."""

    def read() -> dict[str, str]:
        found = dict(pair.split("=", 1) for pair in env.list(name, default=[]))
        if not all(re.fullmatch(key, own) and value for own, value in found.items()):
            raise ValueError
        return found

    return parse_setting(name, expected, read)


def address(name: str, default: str) -> str:
    """Return an email address in ASCII, without a +tag."""

    def read() -> str:
        found: str = env.str(name, default=default)
        if not _ADDRESS.fullmatch(found):
            raise ValueError
        return found

    return parse_setting(name, "an address like perfbot@bot.example.org", read)


def database(name: str, default: str) -> dict[str, Any]:
    """Return Django's database settings from a URL."""

    def read() -> dict[str, Any]:
        if not env.str(name, default=default).startswith(("sqlite:", "postgres:", "postgresql:")):
            raise ValueError
        return dict(env.db_url(name, default=default))

    return parse_setting(name, "sqlite:///path or postgres://user:password@host/name", read)


def postgresql_options(period: float, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to connect to PostgreSQL so that a machine that vanishes holds up no other; `given` has precedence.

    `period`: seconds after which the server ends an idle transaction, and frees its locks; at least 5. A process
    notices within half a minute that the server's machine is gone; TCP alone takes up to two hours.
    """
    ours = {
        "options": f"-c idle_in_transaction_session_timeout={int(1000 * max(5.0, period))}",
        "connect_timeout": 10,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    if "options" in given:  # the later of two wins
        given = {**given, "options": f"{ours['options']} {given['options']}"}
    return {**ours, **given}
