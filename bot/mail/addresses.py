"""Addresses in a header: groups, comments, quotes and what people type, read without ever failing.

RFC 5322 section 3.4 is the grammar; one broken address never takes the others with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX = 2000  # addresses in a header: a bound, not a limit that real mail meets
_SPEC = re.compile(r"[^\s<>@,;:\"()\[\]]{1,256}@[^\s<>@,;:\"()]{1,256}")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_QUOTED_LOCAL = re.compile(r'"([\w.+-]{1,100})"@')
_WITH_COMMENT = re.compile(r"([^\s<>@,;:\"()]{1,256}@[^\s<>@,;:\"()]{1,256})\s+\(([^()<>@,;:\"]{1,100})\)")
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
    header = _QUOTED_LOCAL.sub(r"\1@", header)
    if alone := _WITH_COMMENT.fullmatch(header.strip()):  # "dana@dev.example (Dana Brook)"
        header = f"{alone[2]} <{alone[1]}>"
    found = (_address(item) for item in _items(_without_comments(header)))
    return tuple(address for address, _ in zip((a for a in found if a), range(_MAX)))  # noqa: B905


def _without_comments(header: str) -> str:
    """The header without RFC 5322 comments, which may be nested and hold anything."""
    if "(" not in header:
        return header
    kept: list[str] = []
    depth = position = 0
    unclosed = False
    while position < len(header):
        char = header[position]
        quoted = None
        if char == '"' and not depth and not unclosed:
            quoted = _QUOTED.match(header, position)
            unclosed = quoted is None
        if quoted:
            kept.append(quoted[0])
            position = quoted.end()
            continue
        if char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
        position += 1
    return "".join(kept) if not depth else header.replace("(", " ").replace(")", " ")


def _items(header: str) -> Iterator[str]:
    """The header cut at commas, and at the colon and semicolon of groups, outside of closed quotes."""
    start = position = 0
    unclosed = False
    while position < len(header):
        char = header[position]
        if char == '"' and not unclosed:
            # What is quoted is a name, whatever it looks like; a quote that is never closed is a typo.
            quoted = _QUOTED.match(header, position)
            position = quoted.end() - 1 if quoted else position
            unclosed = quoted is None  # nor is any after it
        elif char in ",;":
            yield header[start:position]
            start = position + 1
        elif char == ":" and "<" not in header[start:position] and "@" not in header[start:position]:
            start = position + 1  # the name of a group
        position += 1
    yield header[start:]


def _address(item: str) -> Address | None:
    # The last angle counts: a quoted name may hold others.
    angles = [(angle, spec) for angle in _ANGLE.finditer(item) if (spec := _SPEC.search("".join(angle[1].split())))]
    if angles:
        angle, spec = angles[-1]
        name = item[: angle.start()]
    else:
        specs = list(_SPEC.finditer(item))
        if not specs:
            return None
        name, spec = "", specs[-1]
    return Address(" ".join(name.replace("\\", "").replace('"', " ").split())[:200], _plain_spec(spec[0]))


def _plain_spec(spec: str) -> str:
    """The address in lower case, without apostrophes around it."""
    if spec[0] == spec[-1] == "'":
        spec = spec[1:-1]
    return spec.lower().rstrip(".")
