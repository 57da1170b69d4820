"""Addresses in a header: groups, comments, quotes and what people type, read without ever failing.

RFC 5322 section 3.4 is the grammar; one broken address never takes the others with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX = 2000  # addresses in a header: a bound, not a limit that real mail meets
_SPEC = re.compile(r"[^\s<>@,;:\"()\[\]]{1,256}@[^\s<>@,;:\"()]{1,256}")
_ANGLE = re.compile(r"<\s*([^<>]{1,520})")


@dataclass(frozen=True, slots=True)
class Address:
    """A name as shown, and the address in lower case."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>" if self.name else self.email


def parse_addresses(header: str) -> tuple[Address, ...]:
    """The addresses of a From, To or Cc header, in order; what holds no address is passed over."""
    found = (_address(item) for item in _items(_without_comments(header)))
    return tuple(address for address, _ in zip((a for a in found if a), range(_MAX)))  # noqa: B905


def _without_comments(header: str) -> str:
    """The header without RFC 5322 comments, which may be nested and hold anything."""
    if "(" not in header:
        return header
    kept: list[str] = []
    depth, quoted = 0, False
    for char in header:
        if char == '"' and not depth:
            quoted = not quoted
        if not quoted and char == "(":
            depth += 1
        elif not quoted and char == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
    return "".join(kept) if not depth else header.replace("(", " ").replace(")", " ")


def _items(header: str) -> Iterator[str]:
    """The header cut at commas, and at the colon and semicolon of groups, outside of closed quotes."""
    start = position = 0
    while position < len(header):
        char = header[position]
        if char == '"':
            closing = header.find('"', position + 1)
            # An unclosed quote is a typo, and so is one that would swallow the next address.
            if closing > 0 and "<" not in header[position:closing]:
                position = closing
        elif char in ",;":
            yield header[start:position]
            start = position + 1
        elif char == ":" and "<" not in header[start:position] and "@" not in header[start:position]:
            start = position + 1  # the name of a group
        position += 1
    yield header[start:]


def _address(item: str) -> Address | None:
    angle = _ANGLE.search(item)
    if angle:
        spec = _SPEC.search(angle[1].replace(" ", ""))
        name = item[: angle.start()]
    else:
        specs = list(_SPEC.finditer(item))
        spec = specs[-1] if specs else None
        name = ""
    if not spec:
        return None
    return Address(" ".join(name.replace("\\", "").replace('"', " ").split())[:200], spec[0].lower().rstrip("."))
