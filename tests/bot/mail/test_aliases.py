"""People with several addresses: mailmap, and the roles that follow from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from bot import config
from bot.mail.message import parse
from bot.mail.settings import BotSettings, read_mailmap
from bot.replies.reading import read
from bot.replies.which_report import KnownReport
from tracker.domain.events import Role

MAP = """\
# people
Dana Brook <dana@dev.example> <dana@home.example>
Dana Brook <dana@dev.example> D. Brook <DB@old.example>  # before 2020
Lee Park <lee@dev.example>
nonsense
<lee@dev.example> <lee@home.example>
"""


def test_every_address_of_a_person() -> None:
    people = read_mailmap(MAP)
    assert people.of("db@old.example") == {"dana@dev.example", "dana@home.example", "db@old.example"}
    assert people.of("lee@dev.example") == {"lee@dev.example", "lee@home.example"}
    assert people.of("otto@dev.example") == {"otto@dev.example"}


@pytest.mark.parametrize(
    ("writer", "role"),
    [
        ("D B <dana@home.example>", Role.AUTHOR),
        ("Dana Brook <dana@elsewhere.example>", Role.AUTHOR),  # by her name
        ("<lee@home.example>", Role.MAINTAINER),
        ("Otto <otto@dev.example>", Role.THIRD_PARTY),
        ("Olga <olga@lab.example>", Role.REPORTER),
        ("Olga Lind <bot@lab.example>", Role.REPORTER),  # an operator by name, from the robot's address
        ("Olga Lind <olga@evil.example>", Role.THIRD_PARTY),  # anybody may call himself so
    ],
)
def test_roles(writer: str, role: Role) -> None:
    lab = BotSettings(
        aliases=read_mailmap(MAP),
        robots=frozenset({"bot@lab.example"}),
        operators=frozenset({"olga@lab.example", "olga lind"}),
    )
    report = KnownReport(
        *("x", "c", "t", ()), frozenset({"dana@dev.example", "dana brook"}), frozenset({"lee@dev.example"})
    )
    mail = parse(f"From: {writer}\nMessage-ID: <a@b>\n\nIt is the lock.\n".encode())
    assert report.role_of(read(mail, lab), lab) is role


@given(st.text(max_size=300))
def test_junk_names_nobody_or_somebody(text: str) -> None:
    people = read_mailmap(text)
    assert "a@b" in replace(people).of("a@b")


def test_settings_that_cannot_be_meant(settings: Any, db: None) -> None:
    settings.PERFWORK_MAILMAP = "/nonexistent/mailmap"
    with pytest.raises(
        ImproperlyConfigured, match="PERFWORK_MAILMAP: /nonexistent/mailmap can't be read: No such file"
    ):
        config.bot_identity()
    settings.PERFWORK_MAILMAP = ""
    settings.PERFWORK_RULES_OFF = ["expected", "exxpected"]
    with pytest.raises(ImproperlyConfigured, match="unknown rule 'exxpected'"):
        config.bot_identity()
