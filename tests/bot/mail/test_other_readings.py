"""The other ways to read a body whose headers nobody signed: each that the bytes make plausible, and no other."""

from __future__ import annotations

import base64

import pytest

from bot.mail import authentication
from bot.mail.authentication import other_readings
from bot.mail.message import parse

HEAD = b"From: Dana <dana@dev.example>\nSubject: Re: the report\nMessage-ID: <a@dev.example>\n"
PLAIN = b"Content-Type: text/plain; charset=utf-8\n"
HTML = b"Content-Type: text/html; charset=utf-8\n"
QUOTED = b"Content-Transfer-Encoding: quoted-printable\n"
MIXED = b'Content-Type: multipart/mixed; boundary="b"\n'


def read(headers: bytes, body: bytes, head: bytes = HEAD) -> set[str]:
    """The texts of the other readings, without white space around them."""
    raw = head + headers + b"\n" + body
    found = other_readings(raw, parse(raw))
    assert found is not None
    return {" ".join(each.text.split()) for each in found}


PARTS = b"--b\nContent-Type: text/plain\n\nIt is the lock.\n--b\nContent-Type: text/plain\n\n#lkp invalid\n--b--\n"
ALTERNATIVES = PARTS.replace(b"--b\nContent-Type: text/plain\n\n#lkp", b"--b\nContent-Type: text/html\n\n<p>#lkp")


@pytest.mark.parametrize(
    ("headers", "body", "others"),
    [
        (PLAIN, b"It is the lock.\n", set()),
        (b"", b"It is the lock.\n", set()),
        # Markup is a text, and a text that begins with a tag may be markup.
        (PLAIN, b"<p>It is the lock.</p>\n", {"It is the lock."}),
        (HTML, b"<p>It is the lock.</p>\n", {"<p>It is the lock.</p>"}),
        (HTML, b" \n<!DOCTYPE html><p>It is the lock.</p>\n", {"<!DOCTYPE html><p>It is the lock.</p>"}),
        (PLAIN, b"a < b\n<p>It is the lock.</p>\n", set()),  # it begins with words
        (PLAIN, b"<3 it\n", set()),
        # Quoted-printable: only what a program can have written so.
        (PLAIN, b"It is =\nthe lock=2E\n", {"It is the lock."}),
        (QUOTED + PLAIN, b"It is =\nthe lock=2E\n", {"It is = the lock=2E"}),
        (PLAIN, b"a == b, c=d\n", set()),
        (PLAIN, b"=41" + b" x" * 60 + b"\n", set()),  # words, on one line that is too long
        (PLAIN, "é =41\n".encode(), set()),  # not ASCII
        (PLAIN, b"=41" + b"x" * 75 + b"\n", {"A" + "x" * 75}),  # 78 characters
        (PLAIN, b"=41" + b"x" * 76 + b"\n", set()),
        (PLAIN, b"=3Cp>It is the lock.</p>\n", {"<p>It is the lock.</p>"}),
        (PLAIN, b"<p>It =41s</p>\n", {"It =41s", "<p>It As</p>", "It As"}),
        # base64, of lines of any length that programs write.
        (PLAIN, base64.encodebytes(b"It is the locks"), {"It is the locks"}),
        (PLAIN, base64.encodebytes(b"It is the lock, " * 12), {("It is the lock, " * 12).strip()}),
        (b"Content-Transfer-Encoding: base64\n" + PLAIN, b"SXQgaXMh\n", {"SXQgaXMh"}),
        (PLAIN, b"SXQg aXMh\n", set()),
        # A multipart: all of its parts, or one of them, whichever nobody meant; never half of it.
        (PLAIN, PARTS, {"It is the lock. #lkp invalid"}),
        (MIXED, PARTS, set()),
        (PLAIN, ALTERNATIVES, {"It is the lock. #lkp invalid", "It is the lock."}),
        (MIXED, ALTERNATIVES, {"It is the lock."}),
        (MIXED.replace(b"mixed", b"alternative"), ALTERNATIVES, {"It is the lock. #lkp invalid"}),
        (PLAIN, b"This is a multi-part message in MIME format.\n" + PARTS, {"It is the lock. #lkp invalid"}),
        (PLAIN, PARTS.replace(b"--b--", b""), set()),  # it does not end
        (PLAIN, b"Words.\n" + PARTS, set()),
        (PLAIN, b"--\nDana\n", set()),  # a signature
    ],
)  # fmt: skip
def test_the_plausible_readings(headers: bytes, body: bytes, others: set[str]) -> None:
    assert read(headers, body) == others


def test_the_lines_may_end_in_crlf_and_a_mailbox_may_stand_above() -> None:
    body = b"<p>It is the lock.</p>\n\n<p>Two.</p>\n"
    raw = (HEAD + PLAIN + b"\n" + body).replace(b"\n", b"\r\n")
    for each in (raw, b"From dana Wed Mar 11 10:15:00 2026\r\n" + raw):
        found = other_readings(each, parse(each))
        assert found is not None
        assert [" ".join(one.text.split()) for one in found] == ["It is the lock. Two."]


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Type: text/html;\n\tcharset=utf-8\n",
        b"Content-Type: text/html;\n charset=utf-8\nContent-Language: en\n",
        b"content-type : text/html\nMIME-Version: 1.0\n",
        b"Content-Disposition: inline\nContent-Type: text/html\n",
    ],
)
def test_none_of_the_headers_of_a_body_is_kept_and_every_other_is(headers: bytes) -> None:
    head = HEAD.replace(b"Subject: Re: the report", headers + b"Subject: Re:\n\tthe report")
    raw = head + b"\n<p>It is the lock.</p>\n"
    found = other_readings(raw, parse(raw))
    assert found is not None
    assert [" ".join(each.text.split()) for each in found] == ["<p>It is the lock.</p>"]
    assert (found[0].subject, found[0].message_id) == ("Re: the report", "a@dev.example")
    assert (found[0].author.name, found[0].author.email) == ("Dana", "dana@dev.example")
    first, subject, rest = HEAD.partition(b"Subject: Re: the report\n")
    below = first + rest + subject + headers + b"\n<p>It is the lock.</p>\n"
    (other,) = other_readings(below, parse(below)) or ()
    assert other.subject == "Re: the report"


@pytest.mark.parametrize(
    ("charset", "text"), [("iso-8859-1", "<b>é</b>"), ("koi8-r", "<b>И</b>"), ("utf-16", "<b>é</b>")]
)
def test_a_charset_in_which_ascii_is_ascii_is_kept(charset: str, text: str) -> None:
    """Of another one a line of the writer could be made: it is read as UTF-8, as far as that goes."""
    assert text in read(f"Content-Type: text/html; charset={charset}\n".encode(), b"<b>\xe9</b>\n")


def test_a_mail_that_is_too_long_is_not_tried() -> None:
    raw = HEAD + b"\n" + b"<p>word</p>\n"
    longest = raw + b" " * (authentication._MOST - len(raw))
    assert other_readings(longest, parse(longest)) is not None
    assert other_readings(longest + b" ", parse(longest)) is None
