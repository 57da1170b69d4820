"""The body of a mail: its MIME parts as text, and the attachments.

RFC 2045 to 2049, and common violations of them: if in doubt, a part is shown rather than lost, and what was guessed
is listed in `problems`. Plain text is preferred over HTML; forwarded messages stay attachments.

In format=flowed (RFC 3676) soft line breaks are joined, space-stuffing is undone, and quotes are kept. HTML becomes
the plain text that its reader sees: Lexbor parses it, as a browser would, nothing in it is executed, quotes stay
quotes, and what is hidden is left out.
"""

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from email.message import Message as Part

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bot.mail.headers import decode, decode_bytes
from bot.mail.limits import MAX_BODY, OverLimit, exceeded_by_markup

# --- format=flowed ---

# Lines that are never joined to the line above: a command, a signature, a trailer.
_BEGINS = re.compile(r"#|-- \Z|[A-Z][\w-]{2,30}-by: |(?:Fixes|Closes|Link|Cc): ")
_DIFF = re.compile(r"^(?:diff --git |--- \S|Index: \S|@@ -)")


def unflow(text: str, delsp: bool) -> str:
    """Return the text as its writer typed it. From the first line of a diff on it is left unchanged."""
    lines = text.split("\n")
    out: list[str] = []
    depth, paragraph = 0, list[str]()  # a paragraph whose last line ended in a soft break
    for number, line in enumerate(lines):
        if _DIFF.match(line.removeprefix(" ")):
            return "\n".join([*out, *([_quoted(depth, paragraph)] if paragraph else []), *lines[number:]])
        quotes = len(line) - len(line.lstrip(">"))
        content = line[quotes:].removeprefix(" ")
        if paragraph and (quotes != depth or _BEGINS.match(content)):
            out.append(_quoted(depth, paragraph))
            paragraph = []
        soft = content.endswith(" ") and content != "-- "
        if soft and delsp:
            content = content[:-1]
        depth = quotes
        paragraph.append(content)
        if not soft:
            out.append(_quoted(depth, paragraph))
            paragraph = []
    if paragraph:
        out.append(_quoted(depth, paragraph))
    return "\n".join(out)


def _quoted(depth: int, pieces: list[str]) -> str:
    content = "".join(pieces)
    return f"{'>' * depth} {content}" if depth else content


# --- HTML ---

MAX = 2_000_000  # characters of HTML
MAX_TEXT = 1_000_000  # characters of the text of a mail
MAX_LINES = 100_000  # of format=flowed, of which several may become one
_BLOCKS = frozenset(
    "br p div tr li ul ol table h1 h2 h3 h4 h5 h6 blockquote pre hr section article header footer".split()  # noqa: SIM905
)
_UNSEEN = frozenset("script style head template noscript title textarea select svg math iframe object".split())  # noqa: SIM905
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
# An HTML parser looks through all open elements at each of these, which takes quadratic time if they are never closed.
_NESTING = re.compile(
    r"<(/?)(?:div|blockquote|ul|ol|dl|section|article|aside|nav|main|header|footer|center|fieldset|details|figure|address"
    r"|dir|menu|summary|pre|listing)\b",
    re.I,
)
_DEEPEST = 5000
_LINK = re.compile(r"https?://[^\s\"'<>]{3,500}", re.I)
_MOST_QUOTES = 20


class _Page:
    """The text so far: finished lines, the current line, and the depth of quotes and of preformatted text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.depth = 0
        self.pre = 0

    def write(self, text: str) -> None:
        if not self.pre:
            self.line.append(re.sub(r"[ \t\r\n\f]+", " ", text))
            return
        first, *rest = text.split("\n")
        self.line.append(first)
        for line in rest:
            self.end_line()
            self.line.append(line)

    def end_line(self) -> None:
        text = "".join(self.line)
        self.lines.append("> " * min(self.depth, _MOST_QUOTES) + (text.rstrip() if self.pre else text.strip()))
        self.line = []

    def open(self, node: LexborNode, name: str) -> None:
        """An element begins."""
        if name in _BLOCKS:
            self._end_block(name)
            self.depth += name == "blockquote"
            self.pre += name == "pre"
        elif name in ("td", "th"):
            self.line.append(" ")
        elif name == "a" and (link := _LINK.match((node.attributes.get("href") or "").strip())):
            self.line.append(f"<{link[0]}> ")

    def close(self, name: str) -> None:
        """An element ends."""
        if name in _BLOCKS and name not in ("br", "hr"):
            self._end_block(name)
            self.depth -= name == "blockquote"
            self.pre -= name == "pre"

    def _end_block(self, name: str) -> None:
        if name == "br" or any(piece.strip() for piece in self.line):
            self.end_line()
        self.line.clear()


def as_text(markup: str, before: int = 0) -> str:
    """Return plain text: one line per block, `> ` before the lines of a blockquote, and links in angle brackets.

    `before`: tags in other parts of the mail. Raises OverLimit if they are too many.
    """
    markup, depth = markup[:MAX], 0
    if over := exceeded_by_markup(markup, before):
        raise OverLimit(over)
    for tag in _NESTING.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            markup = markup[: tag.start()]
            break
    page = _Page()
    root = LexborHTMLParser(markup).root
    if root is not None:
        _walk(root, page)
    page.end_line()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page.lines)).strip("\n")


def _walk(root: LexborNode, page: _Page) -> None:
    """Visit all nodes in document order, without recursion: mails may be nested arbitrarily deep."""
    node: LexborNode | None = root
    while node is not None:
        name = node.tag or ""
        if name == "-text":
            page.write(node.text_content or "")
        is_element = not name.startswith(("-", "_", "!")) and name not in _UNSEEN
        attributes = node.attributes if is_element else {}
        if is_element and "hidden" not in attributes and not _HIDDEN_STYLE.search(attributes.get("style") or ""):
            page.open(node, name)
            if node.child is not None:
                node = node.child
                continue
            page.close(name)
        while node.next is None:
            parent = node.parent
            if parent is None or parent.mem_id == root.mem_id:
                return
            page.close(parent.tag or "")
            node = parent
        node = node.next


# --- MIME parts ---

MAX_PARTS = 100
MAX_DEPTH = 20
_TYPE = re.compile(r"\s*([\w.+-]{1,80}/[\w.+-]{1,80})")
_CHARSET = re.compile(r"charset\s*=\s*\"?([^\s\";]{1,60})", re.I)
_FLOWED = re.compile(r"format\s*=\s*\"?flowed", re.I)
_DELSP = re.compile(r"delsp\s*=\s*\"?yes", re.I)
_MAX_PARAMETERS = 4000  # characters; no file name is looked for in a longer header
_FILENAME = re.compile(r"(?:file)?name\s*=\s*(?:\"([^\"]{1,300})\"|([^\s;]{1,300}))", re.I)
_BINARY = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_URL_SAFE = str.maketrans("-_", "+/")
_MAYBE_TEXT = ("application/octet-stream", "application/mbox", "application/x-patch", "application/x-diff")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")


@dataclass(frozen=True, slots=True)
class MimeAttachment:
    """A part that is not the body: its name and type, and its content if that is text."""

    filename: str
    content_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a mail, its attachments, and what was guessed in decoding them."""

    text: str
    attachments: tuple[MimeAttachment, ...]
    problems: tuple[str, ...]
    charset: str = ""  # as its first part declares it
    first: int = 0  # characters of `text` that are its first part; 0 if that may be an attachment


def read_body(message: Part) -> Body:
    """Return the body of a mail. Plain text is preferred over HTML; forwarded messages stay attachments."""
    texts: list[tuple[int, bool, str]] = []  # (group of alternatives, is it HTML, text)
    attachments: list[MimeAttachment] = []
    problems: list[str] = []
    charset, tags, left = "", 0, MAX_BODY
    for number, (part, kind, group) in enumerate(_leaves(message, problems)):
        name = _filename(part)
        if part is message:  # a multipart that could not be split is text, too
            is_body = kind.startswith(("text/", "multipart/")) and kind != "multipart/digest"
        else:
            disposition = str(part.get("Content-Disposition", "")).strip().lower()
            is_named = bool(name) and (disposition.startswith("inline") or number > 0)
            is_body = kind in ("text/plain", "text/html") and not disposition.startswith("attachment") and not is_named
        if is_body:
            text, declared = _decode_part(part, problems)
            charset = charset or declared
            is_html = kind == "text/html"
            texts.append((group, is_html, as_text(text, tags) if is_html else text))
            tags += text.count("<") if is_html else 0
        else:
            is_text = (
                kind.startswith("text/") or kind in _MAYBE_TEXT or name.lower().endswith((".patch", ".diff", ".txt"))
            )
            text = _decode_part(part, problems)[0] if is_text else ""
            if len(text) > left:
                problems.append("long_text")
                text = ""
            left -= len(text)
            attachments.append(MimeAttachment(name, kind, text))
    body_is_attachment = not any(text.strip() for _, _, text in texts)
    if body_is_attachment:  # without a body, the first unnamed text attachment is the body
        unnamed = (part for part in attachments if part.content_type.startswith("text/") and not part.filename)
        if first := next(unnamed, None):
            texts = [(0, False, first.text)]
            attachments.remove(first)
    plain = {group for group, markup, text in texts if group and not markup and text.strip()}
    chosen = [entry for entry in texts if entry[0] not in plain or not entry[1]]
    if any(markup and text.strip() for _, markup, text in chosen):
        problems.append("html_only")
    nonempty = [text for _, _, text in chosen if text.strip()]
    first_length = 0 if body_is_attachment else len(nonempty[0])
    return Body("\n".join(nonempty), tuple(attachments), tuple(dict.fromkeys(problems)), charset, first_length)


def _leaves(message: Part, problems: list[str]) -> Iterator[tuple[Part, str, int]]:
    """Yield the parts with content, in order, each with its type and the multipart/alternative that it belongs to, 0
    for none. A message within the message has another writer, and is one part.
    """
    stack: list[tuple[Part, int, int]] = [(message, 0, 0)]
    count = 0
    while stack:
        part, depth, group = stack.pop()
        count += 1
        if count > MAX_PARTS or depth > MAX_DEPTH:
            problems.append("too_many_parts")
            return
        children = part.get_payload() if part.is_multipart() else None
        match = _TYPE.match(str(part.get("Content-Type", "")))
        kind = match[1].lower() if match else "text/plain"  # as is an invalid one (RFC 2045 section 5.2)
        if isinstance(children, list) and kind.startswith("multipart/") and kind != "multipart/digest":
            inner = group or (count if kind == "multipart/alternative" else 0)
            stack.extend((child, depth + 1, inner) for child in reversed(children) if isinstance(child, Part))
        else:
            yield part, kind, group


def _filename(part: Part) -> str:
    for header in ("Content-Disposition", "Content-Type"):
        value = str(part.get(header, ""))
        if len(value) > _MAX_PARAMETERS:
            return ""  # the library's own parser takes quadratic time
        if match := _FILENAME.search(value):
            return decode(match[1] or match[2])
    try:
        return decode(part.get_filename("") or "")  # RFC 2231: in several pieces, or with its own charset
    except (LookupError, ValueError, TypeError, AttributeError):
        return ""


def _decode_part(part: Part, problems: list[str]) -> tuple[str, str]:
    """Return the text of a part, and the charset that it declares, or ""."""
    header = str(part.get("Content-Type", ""))
    match = _CHARSET.search(header)
    charset = match[1].lower() if match else ""
    encoding = re.sub(r"[^a-z0-9-].*", "", str(part.get("Content-Transfer-Encoding", "")).strip("\"' \t").lower())
    if encoding in ("base64", "quoted-printable") and not part.is_multipart():
        raw = _undecoded(part, charset)
        if encoding == "base64":
            raw = _base64(raw, problems)
        else:  # blanks may follow a soft line break (RFC 2045 section 6.7, rule 3)
            raw = quopri.decodestring(re.sub(rb"=[ \t]+(?=\r?\n)", b"=", raw))
    else:  # the parser decodes uuencode, and returns all else unchanged
        decoded = part.get_payload(decode=True)
        raw = decoded if isinstance(decoded, bytes) else b""
    text, as_declared = decode_bytes(raw, charset)
    if not as_declared:
        problems.append("charset_wrong")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").removeprefix("\ufeff")
    if not _FLOWED.search(header):
        return text, charset
    if len(text) > MAX_TEXT or text.count("\n") > MAX_LINES:
        problems.append("long_text")
        text = "\n".join(text[:MAX_TEXT].split("\n", MAX_LINES)[:MAX_LINES])
    return unflow(text, bool(_DELSP.search(header))), charset


def _undecoded(part: Part, charset: str) -> bytes:
    """Return the encoded text of a part as bytes. The parser decodes what is not ASCII by the charset."""
    try:
        payload = str(part.get_payload())
        try:
            return payload.encode("ascii", "surrogateescape")
        except UnicodeEncodeError:
            return payload.encode(charset, "replace")
    except (LookupError, ValueError, TypeError):  # no charset of a text
        bare = copy(part)
        del bare["Content-Transfer-Encoding"], bare["Content-Type"]
        raw = bare.get_payload(decode=True)  # the bytes as they came, now that nothing says what they are
        return raw if isinstance(raw, bytes) else b""


def _base64(raw: bytes, problems: list[str]) -> bytes:
    """Decode base64 leniently: padding is repaired, a plain-text footer ends it. Returns `raw` if no text results."""
    try:
        return base64.b64decode(b"".join(raw.split()), validate=True)
    except binascii.Error:
        problems.append("base64_dirty")
    good: list[str] = []
    for line in raw.decode("ascii", "replace").translate(_URL_SAFE).split("\n"):
        line = line.strip()
        if len(line) > 40 and len(repaired := re.sub(r"[^A-Za-z0-9+/=]", "", line)) == len(line) - 1:
            line = repaired  # one character was damaged
        if line and not _BASE64_LINE.match(line):
            if good:
                break
            continue  # text that a gateway put above it
        if line:
            good.append(line)
    joined = "".join(good).replace("=", "")
    if len(joined) % 4 == 1:
        joined = joined[:-1]
    decoded = base64.b64decode(joined + "=" * (-len(joined) % 4))
    is_text = decoded and not _BINARY.search(decoded[:2000].replace(b"\0", b""))
    return decoded if is_text else raw
