"""The MIME parts of a mail as text: what is said in the body, and what is attached.

RFC 2045 to 2049, and what is sent in their name. Reading order of charsets: as declared, else UTF-8,
else windows-1252, else latin-1, which takes every byte.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message as Part

from bot.replies.headers import decode

MAX_PARTS = 100
MAX_DEPTH = 20
_TYPE = re.compile(r"\s*([\w.+-]{1,80}/[\w.+-]{1,80})")
_CHARSET = re.compile(r"charset\s*=\s*\"?([^\s\";]{1,60})", re.I)
_FILENAME = re.compile(r"(?:file)?name\s*=\s*(?:\"([^\"]{1,300})\"|([^\s;]{1,300}))", re.I)
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
# A tag holds no other tag, so that junk is read in linear time.
_TAG = re.compile(r"<(?:!|(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,20}))[^<>]{0,4000}>")
_BREAKS = frozenset(["br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"])
_UNSEEN = frozenset(["script", "style", "head"])


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part that is not the body: its name and type, and its text where it is text."""

    filename: str
    content_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """What a mail says, what hangs on it, and what was guessed in reading it."""

    text: str
    attachments: tuple[Attachment, ...]
    problems: tuple[str, ...]


def read_body(message: Part) -> Body:
    """The text of a mail. Plain text is preferred over HTML; forwarded messages stay attachments."""
    texts: list[str] = []
    markup: list[str] = []
    attachments: list[Attachment] = []
    problems: list[str] = []
    for part, alternative in _leaves(message, problems):
        kind = content_type(part)
        disposition = str(part.get("Content-Disposition", "")).strip().lower()
        name = _filename(part)
        if kind == "text/html" and not disposition.startswith("attachment"):
            # Read only where nothing else is said.
            if not (alternative and texts):
                markup.append(_decode_part(part, problems))
        elif _is_body(kind, disposition, name):
            texts.append(_decode_part(part, problems))
        else:
            text = _decode_part(part, problems) if _may_be_text(kind) else ""
            attachments.append(Attachment(name, kind, text))
    if not texts and markup:
        problems.append("html_only")
        texts = [as_text(each) for each in markup]
    return Body("\n".join(texts), tuple(attachments), tuple(dict.fromkeys(problems)))


def _leaves(message: Part, problems: list[str]) -> Iterator[tuple[Part, bool]]:
    """The parts that hold content, in order, and whether each is one of several alternatives."""
    stack: list[tuple[Part, int, bool]] = [(message, 0, False)]
    count = 0
    while stack:
        part, depth, alternative = stack.pop()
        count += 1
        if count > MAX_PARTS or depth > MAX_DEPTH:
            problems.append("too_many_parts")
            return
        children = part.get_payload() if part.is_multipart() else None
        if isinstance(children, list) and content_type(part) != "message/rfc822":
            inner = content_type(part) == "multipart/alternative"
            stack.extend((child, depth + 1, inner) for child in reversed(children) if isinstance(child, Part))
        else:
            yield part, alternative


def content_type(part: Part) -> str:
    """The type of a part; one that cannot be read is plain text (RFC 2045 section 5.2)."""
    found = _TYPE.match(str(part.get("Content-Type", "")))
    return found[1].lower() if found else "text/plain"


def _is_body(kind: str, disposition: str, name: str) -> bool:
    if disposition.startswith("attachment"):
        return False
    return kind == "text/plain" and not (name and disposition.startswith("inline"))


def _may_be_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in ("application/octet-stream", "application/mbox", "application/x-patch")


def _filename(part: Part) -> str:
    for header in ("Content-Disposition", "Content-Type"):
        found = _FILENAME.search(str(part.get(header, "")))
        if found:
            return decode(found[1] or found[2])
    return ""


def _decode_part(part: Part, problems: list[str]) -> str:
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding.startswith("base64"):
        raw = _base64(str(part.get_payload()).encode("ascii", "replace"), problems)
    else:  # the parser undoes quoted-printable, and gives the bytes of all else as they stand
        payload = part.get_payload(decode=True)
        raw = payload if isinstance(payload, bytes) else b""
    found = _CHARSET.search(str(part.get("Content-Type", "")))
    return to_unicode(raw, found[1] if found else "", problems)


def _base64(raw: bytes, problems: list[str]) -> bytes:
    """Base64 as far as it goes: padding is mended, a footer in clear text ends it."""
    try:
        return base64.b64decode(b"".join(raw.split()), validate=True)
    except binascii.Error:
        problems.append("base64_dirty")
    good: list[str] = []
    for line in raw.decode("ascii", "replace").split("\n"):
        line = line.strip()
        if line and not _BASE64_LINE.match(line):
            break
        good.append(line)
    joined = "".join(good).replace("=", "")
    if len(joined) % 4 == 1:
        joined = joined[:-1]
    return base64.b64decode(joined + "=" * (-len(joined) % 4))


_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def to_unicode(raw: bytes, charset: str, problems: list[str]) -> str:
    """Bytes to text in the stated order of charsets; line ends become \\n, NUL and a BOM vanish."""
    for bom, name in _BOMS:
        if raw.startswith(bom):
            raw, charset = raw[len(bom) :], name
    declared = charset.strip().lower() or "us-ascii"
    for name in (declared, "utf-8", "windows-1252"):
        try:
            text = raw.decode(name)
        except (LookupError, ValueError):
            if name == declared and charset:
                problems.append("charset_wrong")
            continue
        break
    else:
        text = raw.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").removeprefix("\ufeff")


def as_text(markup: str) -> str:
    """HTML as the plain text that a reader would see; nothing in it is obeyed."""
    pieces: list[str] = []
    start, unseen = 0, ""
    for tag in _TAG.finditer(markup):
        if not unseen:
            pieces.append(markup[start : tag.start()])
        start = tag.end()
        name = (tag["name"] or "").lower()
        if unseen:
            unseen = "" if tag["end"] and name == unseen else unseen
        elif name in _UNSEEN and not tag["end"]:
            unseen = name
        elif name in _BREAKS and (tag["end"] or name == "br"):
            pieces.append("\n")
    if not unseen:
        pieces.append(markup[start:])
    return "\n".join(line.strip() for line in html.unescape("".join(pieces)).split("\n"))
