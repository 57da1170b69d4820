"""The other ways to read a body whose Content- headers nobody signed: whoever resends a mail can change them.

A signature covers the bytes of the body. Read as HTML, as flowed text or from another encoding, the same bytes may say
something else: a quoted line becomes a line of the writer. Only the readings that the bytes make plausible are tried;
among them is the one that the writer meant. Flowed text is read as plain: it has no more lines than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.mail.message import ParsedMail, parse, without_frame

_BODY_HEADER = re.compile(rb"(?:content-[!-9;-~]*|mime-version)[ \t]*:", re.I)
_HTML = re.compile(rb"\s*<[!a-z]", re.I)  # as every program begins it
# Charsets in which ASCII is ASCII; of any other (UTF-7, UTF-16) a line of the writer could be made.
_LIKE_ASCII = re.compile(r"us-ascii|utf-?8|iso-8859-\d+|windows-125\d|koi8-[ru]", re.I)
_BASE64 = re.compile(rb"\s*(?:[A-Za-z0-9+/]{4,76}\n)*[A-Za-z0-9+/]{2,76}={0,2}\s*\Z")
_ESCAPED = re.compile(rb"=(?:[0-9A-F]{2}|[ \t]*\n)", re.I)
# The first delimiter of a multipart, below nothing but what mail programs write there for others to read.
_DELIMITER = re.compile(
    rb"\s*(?:This is a (?:multi-part message in MIME format|cryptographically signed message in MIME format)\.?\s*|"
    rb"This is an OpenPGP/MIME signed message \(RFC 4880 and 3156\)\s*)?--([^\s\"]{1,70})[ \t]*\n"
    rb"(?:\n|(?:content-[!-9;-~]*|[ \t]+\S))",
    re.I,
)
_CODINGS = (b"", b"Content-Transfer-Encoding: quoted-printable\n", b"Content-Transfer-Encoding: base64\n")
_LONGEST = 78  # characters of an encoded line, a line break included
_MOST = 1_000_000  # bytes of a mail that is read several times; commands and answers are shorter


def other_readings(raw: bytes, mail: ParsedMail) -> tuple[ParsedMail, ...] | None:
    """Return the mail as others may read it, without readings of the same text; None if it is too long to try."""
    raw = without_frame(raw).replace(b"\r\n", b"\n")
    if len(raw) > _MOST:
        return None
    head, _, body = raw.partition(b"\n\n")
    kept = _without_body_headers(head)
    charset = mail.charset if _LIKE_ASCII.fullmatch(mail.charset) else "utf-8"
    read = (parse(kept + b"\n" + headers + b"\n" + body) for headers in _plausible_headers(body, charset.encode()))
    return tuple({each.text: each for each in read if each.text != mail.text}.values())


def _plausible_headers(body: bytes, charset: bytes) -> Iterator[bytes]:
    """Yield the Content- headers under which the bytes of this body make sense."""
    text = b"Content-Type: text/%s; charset=" + charset
    if (found := _DELIMITER.match(body)) and b"\n--" + found[1] + b"--" in body:
        for kind in (b"mixed", b"alternative"):
            yield b'Content-Type: multipart/%s; boundary="%s"\n' % (kind, found[1])
        return
    plain, quoted, base64 = _CODINGS
    codings = [plain]
    codings += [quoted] if _is_quoted_printable(body) else []
    codings += [base64] if _BASE64.match(body) else []
    for coding in codings:
        yield coding + text % b"plain" + b"\n"
        if _HTML.match(body):
            yield coding + text % b"html" + b"\n"


def _is_quoted_printable(body: bytes) -> bool:
    """Whether a program can have written it so: only ASCII, and short lines (RFC 2045 section 6.7)."""
    return body.isascii() and bool(_ESCAPED.search(body)) and max(map(len, body.split(b"\n"))) <= _LONGEST


def _without_body_headers(head: bytes) -> bytes:
    kept: list[bytes] = []
    inside = False
    for line in head.split(b"\n"):
        inside = bool(_BODY_HEADER.match(line)) or (inside and line[:1] in (b" ", b"\t"))
        if not inside:
            kept.append(line)
    return b"\n".join(kept)
