"""Addresses: valid ones by RFC 5322, what people type, and junk."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.mail.addresses import Address, parse_addresses

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
