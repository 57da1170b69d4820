"""People with several addresses: mailmap, and the roles that follow from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import example, given
from hypothesis import strategies as st

from bot import config
from bot.mail.addresses import Address, parse_addresses
from bot.mail.authentication import UNPROVEN, authenticate
from bot.mail.message import parse
from bot.mail.settings import BotSettings, TrustAnchors, read_mailmap
from bot.replies.reading import read
from bot.replies.which_report import KnownReport
from tracker.domain.events import Role

# --- Addresses: valid ones by RFC 5322, what people type, and junk ---

CASES = [
    ("Lee Park <lee@dev.example>", [("Lee Park", "lee@dev.example")]),
    ("lee@dev.example", [("", "lee@dev.example")]),
    ("<LEE@Dev.Example>", [("", "lee@dev.example")]),
    ('"Park, Lee" <lee@dev.example>, b@dev.example', [("Park, Lee", "lee@dev.example"), ("", "b@dev.example")]),
    ('"Lee \\"P\\" Park" <lee@dev.example>', [("Lee P Park", "lee@dev.example")]),
    ('"<" <lee@dev.example>', [("<", "lee@dev.example")]),
    # A name that looks like an address is a name: else anybody could write as anybody.
    ('"<author@x.example>, Lee" <lee@dev.example>', [("<author@x.example>, Lee", "lee@dev.example")]),
    ('"Lee \\" <author@x.example>, " <lee@dev.example>', [("Lee <author@x.example>,", "lee@dev.example")]),
    ("author@x.example <lee@dev.example>", [("author@x.example", "lee@dev.example")]),
    ('Lee <"author@x.example"@dev.example>', []),
    ("author@x.example@dev.example", []),
    ('"(" <lee@dev.example> (")")', [("(", "lee@dev.example")]),
    ("undisclosed-recipients:;", []),
    (
        "People: a@x.example, Bo <b@x.example>;, c@x.example",
        [("", "a@x.example"), ("Bo", "b@x.example"), ("", "c@x.example")],
    ),
    ("lee@dev.example (Lee (the one) Park)", [("", "lee@dev.example")]),
    ("Lee (unclosed <lee@dev.example>", [("Lee unclosed", "lee@dev.example")]),
    ("Lee @ work <lee@dev.example>", [("Lee @ work", "lee@dev.example")]),
    ('Lee <lee@dev.example, "Unclosed <q@dev.example>', [("Lee", "lee@dev.example"), ("Unclosed", "q@dev.example")]),
    ("Lee Park", []),
    ("", []),
    (",,, ;;", []),
]


@pytest.mark.parametrize(("header", "expected"), CASES)
def test_headers(header: str, expected: list[tuple[str, str]]) -> None:
    assert parse_addresses(header) == tuple(Address(*each) for each in expected)


@given(st.text(alphabet='a@b.<>,;:"\\() \u00e9\n', max_size=200))
@example("(" * 5000)
@example('"' * 5001)
def test_junk_gives_addresses_or_none(header: str) -> None:
    for address in parse_addresses(header):
        assert "@" in address.email
        assert not set(address.email) & set('<>,;" \n')


@pytest.mark.slow
@given(st.lists(st.emails(), max_size=20))
def test_plain_lists_come_back(emails: list[str]) -> None:
    plain = [each.lower() for each in emails if not set(each) & set('"\\()<>,;: ')]
    assert [each.email for each in parse_addresses(", ".join(plain))] == [each.rstrip(".") for each in plain]


# --- People with several addresses: mailmap, and the roles that follow from it ---

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


# --- A From that a mailing list has rewritten hides no author, and proves nothing ---

DANA = ("Dana Brook", "dana@dev.example")
LIST = '"Dana Brook via linux-mm" <linux-mm@lists.example>'


def author(*lines: str) -> tuple[str, str]:
    mail = parse("".join(f"{line}\n" for line in (*lines, "Message-ID: <a@b>", "", "It is the lock.")).encode())
    return mail.author.name, mail.author.email


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((f"From: {LIST}", "Reply-To: Dana Brook <dana@dev.example>"), DANA),
        ((f"From: {LIST}", "Reply-To: linux-mm@lists.example, Dana Brook <Dana@Dev.example>"), DANA),
        ((f"From: {LIST}", "Reply-To: dana@dev.example"), DANA),
        ((f"From: {LIST}", "X-Original-From: Dana Brook <dana@dev.example>", "Reply-To: lee@dev.example"), DANA),
        (("From: 'Dana Brook' via perf <perf@googlegroups.com>", "X-Original-Sender: dana@dev.example"), DANA),
        (("From: =?utf-8?q?Dana_Brook_via_perf?= <perf@lists.example>", "X-Original-From: dana@dev.example"), DANA),
        (
            ("From: Dana via a <bounce@x.example>", "List-Post: <mailto:a@x.example>", "Reply-To: a@x.example"),
            ("Dana via a", "bounce@x.example"),
        ),
        # Nothing says who it was; and a Reply-To alone is no other author.
        ((f"From: {LIST}",), ("Dana Brook via linux-mm", "linux-mm@lists.example")),
        (("From: Dana Brook <dana@dev.example>", "Reply-To: lee@dev.example"), DANA),
        (("From: Dana Brook <dana@dev.example>", "X-Original-From: lee@dev.example"), DANA),
    ],
)
def test_who_wrote_it(lines: tuple[str, ...], expected: tuple[str, str]) -> None:
    assert author(*lines) == expected


def test_it_proves_nothing() -> None:
    raw = f"From: {LIST}\nX-Original-From: dana@dev.example\nDate: Wed, 11 Mar 2026 10:00:00 +0000\n\nHi.\n".encode()
    assert authenticate(raw, parse(raw), TrustAnchors()) == UNPROVEN


@given(st.text(), st.text(), st.text())
def test_junk(name: str, original: str, reply_to: str) -> None:
    raw = f"From: {name} via {name} <a@b>\nX-Original-From: {original}\nReply-To: {reply_to}\n\n"
    assert parse(raw.encode("utf-8", "replace")).author is not None
