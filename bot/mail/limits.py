"""What a mail may cost: limits that are checked on its bytes, before any parser of ours or of a library sees it.

Parsers take quadratic time for some mails, and anybody can send one. Past a limit a mail is not read: it is kept whole
in quarantine, with one line that says which limit, and the next mail is read. Where nothing is lost by it, the rest of
a mail is cut off instead: of many recipients, references, lines of text. docs/archives.md lists all limits.
"""

import hashlib
import re

MAX_VALUE = 64_000  # characters of a header that are read: some thousand addresses or ids
MAX_SHORT = 4_000  # of From, Subject, and what says who or what wrote it
# The sum of the squares of runs of blanks: the relaxed form of a body (RFC 6376) takes quadratic time for each.
MAX_BLANKS = 20_000_000
MAX_PARTS = 100
MAX_NESTING = 20  # multiparts and messages within each other
MAX_HEADERS = 1000
MAX_HEAD = 1_000_000  # bytes
MAX_LINE = 2_000_000  # bytes, as of a picture within HTML
MAX_TAGS = 20_000  # in the HTML of a mail, and as many attributes
# Lexbor compares each attribute of a tag with all before it: 20,000 in one tag take two seconds.
MAX_COMPARED = 50_000_000
MAX_BODY = 5_000_000  # bytes; of its text a million characters are read
MAX_BODY_LINES = 150_000
MAX_LINES_OF_PARTS = 300_000  # of all parts together: 10 MB in base64 have 130,000
MAX_REOPENED = 200_000
MAX_REPORTS = 20  # named by our own addresses in To, Cc and the envelope
MAX_EFFECTS = 50  # events and suggestions of one mail
MAX_ID = 500  # bytes of a Message-ID
_KEPT_OF_ID = 400

OVER = "over_limit: "  # begins the problem of a mail that is past one


class OverLimit(ValueError):  # noqa: N818
    """A mail is past a limit; it says which."""


_BOUNDARY_NAME = re.compile(rb"boundary(?:\*\d{0,9}\*?)?[ \t]*=[ \t]*")  # or a part of it (RFC 2231)
_BOUNDARY = re.compile(rb"\"([^\"\r\n]{1,200})\"|([^\s;\"]{1,200})")
_WITHIN = re.compile(rb"\ncontent-type[ \t]*:[ \t]*message/")
_TAG = re.compile(r"<[A-Za-z!/?][^>]*")
_FORMATTING = re.compile(r"<(/?)(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b", re.I)
_BETWEEN = re.compile(r"[\s/\"']+")


def exceeded(raw: bytes) -> str:
    """Return which limit the bytes of a mail exceed, in words; "" for none."""
    end = re.search(rb"\n\r?\n", raw)
    head = raw[: end.start()] if end else raw
    if len(head) > MAX_HEAD:
        return f"a header of {len(head):,} bytes; at most {MAX_HEAD:,}"
    if (headers := head.count(b"\n") + 1 - head.count(b"\n ") - head.count(b"\n\t")) > MAX_HEADERS:
        return f"{headers:,} headers; at most {MAX_HEADERS:,}"
    if len(raw) > MAX_LINE and (longest := _longest_line(raw)) > MAX_LINE:
        return f"a line of {longest:,} bytes; at most {MAX_LINE:,}"
    lowered = raw.lower()
    declared = (_BOUNDARY.match(raw, match.end()) for match in _BOUNDARY_NAME.finditer(lowered))
    boundaries = {match[1] or match[2] for match in declared if match}
    if (depth := len(boundaries) + len(_WITHIN.findall(lowered))) > MAX_NESTING:
        return f"{depth:,} multiparts and messages; at most {MAX_NESTING}"
    lines = raw.count(b"\n") + raw.count(b"\r") - raw.count(b"\r\n")  # as the email package counts them
    if boundaries and lines > MAX_LINES_OF_PARTS:
        return f"{lines:,} lines in parts; at most {MAX_LINES_OF_PARTS:,}"
    parts = sum(raw.count(b"\n--" + boundary) - 1 for boundary in boundaries)
    parts = max(parts, lowered.count(b"\ncontent-type:"))
    return f"{parts:,} parts; at most {MAX_PARTS}" if parts > MAX_PARTS else ""


def _longest_line(raw: bytes) -> int:
    longest = start = 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        longest = max(longest, end - start)
        start = end + 1
        # No line that ends within the next MAX_LINE bytes matters.
        start = max(start, raw.rfind(b"\n", start, start + MAX_LINE) + 1)
    return longest


def exceeded_by_markup(markup: str, before: int = 0) -> str:
    """Return which limit the HTML of a mail exceeds, in words; "" for none. `before`: tags in its other parts."""
    compared = attributes = formatting = reopened = 0
    for tags, tag in enumerate(_TAG.finditer(markup), start=before + 1):
        count = len(_BETWEEN.findall(tag[0])) if len(tag[0]) > 2 else 0
        attributes += count
        compared += count * count
        # Each block opens again all formatting that was never closed.
        if name := _FORMATTING.match(tag[0]):
            formatting = max(0, formatting + (-1 if name[1] else 1))
        reopened += formatting
        if reopened > MAX_REOPENED:
            return "HTML formatting that is never closed"
        if tags > MAX_TAGS:
            return f"more than {MAX_TAGS:,} HTML tags"
        if compared > MAX_COMPARED:
            return f"HTML tags with {attributes:,} attributes"
    return ""


def cut(raw: bytes) -> bytes:
    """Return a mail without what is past MAX_BODY or MAX_BODY_LINES of its body, if that has no parts: of such a text
    nobody reads the end.
    """
    end = raw.find(b"\n\n") + 1
    if len(raw) <= MAX_BODY and raw.count(b"\n") <= MAX_BODY_LINES:
        return raw
    if not end or b"multipart/" in raw[:end].lower():
        return raw
    kept = raw[: end + MAX_BODY]
    pieces = kept.split(b"\n", MAX_BODY_LINES)
    return kept if len(pieces) <= MAX_BODY_LINES else kept[: -len(pieces[-1]) or None]


def bounded(message_id: bytes) -> bytes:
    """Return a Message-ID as it is stored: of one past 500 bytes the first 400 and a hash of the whole, so that it fits
    an index entry (2,704 bytes in PostgreSQL) with what is added to it, and no two become one.
    """
    if len(message_id) <= MAX_ID:
        return message_id
    kept = message_id[:_KEPT_OF_ID].decode("utf-8", "ignore").encode()  # not half a character
    return kept + b"#" + hashlib.sha256(message_id).hexdigest().encode()
