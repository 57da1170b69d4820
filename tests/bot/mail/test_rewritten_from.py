"""A From that a mailing list has rewritten hides no author, and proves nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.authentication import UNPROVEN, authenticate
from bot.mail.message import parse
from bot.mail.settings import TrustAnchors

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
