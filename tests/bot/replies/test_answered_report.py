"""Answers that name no Message-ID of a report are found by the report's subject, or by what they quote of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mail.message import parse
from bot.replies.reading import answered_culprit

SHA = "3b1f0c9d2e440000000000000000000000000000"
SUBJECT = "[linus:master] [mm/vmscan]  3b1f0c9d2e:  vm-scan.ops_per_sec -12.4% regression"
QUOTE = f'> Hello,\n>\n> kernel test robot noticed a -12.4% regression on:\n>\n> commit: {SHA} ("mm: walk")\n'


def read(subject: str, text: str = "Thanks.", reply_to: str = "") -> str:
    answers = f"In-Reply-To: <{reply_to}>\n" if reply_to else ""
    return answered_culprit(parse(f"Subject: {subject}\n{answers}Message-ID: <a@b>\n\n{text}\n".encode()))


@pytest.mark.parametrize(
    ("subject", "text", "reply_to", "expected"),
    [
        (f"Re: {SUBJECT}", "Thanks.", "", SHA[:10]),
        (f"Re: {SUBJECT}", "Thanks.", "lost@mail", SHA[:10]),
        (f"RE: [External] {SUBJECT}", "Thanks.", "", SHA[:10]),
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE + "Odd.", "", SHA),
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE.replace("> ", "> > ") + "Odd.", "", SHA),
        # The thread is named: what is quoted may be from another one.
        ("Re: [PATCH v3 2/5] mm: walk", QUOTE + "Odd.", "lost@mail", ""),
        # Not an answer, not quoted, no report.
        (SUBJECT, "Thanks.", "", ""),
        ("[PATCH] mm: mend", QUOTE, "", ""),
        ("Re: [PATCH] mm: mend", f"commit: {SHA}", "", ""),
        ("Re: deadbeef12: it is slow", "Thanks.", "", ""),
    ],
)
def test_answers(subject: str, text: str, reply_to: str, expected: str) -> None:
    assert read(subject, text, reply_to) == expected


@given(st.text(), st.text())
def test_junk(subject: str, text: str) -> None:
    mail = parse(f"Subject: Re: {subject}\n\n> commit: {text}".encode("utf-8", "replace"))
    found = answered_culprit(mail)
    assert found in f"{mail.subject} {mail.text}".lower()
    assert set(found) <= set("0123456789abcdef")
