"""The addresses of a header, and the people who signed a commit. Never raises.

The grammar is RFC 5322 section 3.4: groups, comments, quotes, and typos besides; a broken address does not affect the
others. Who signed, reviewed or tested a commit speaks for it as a maintainer does. Those whom it only thanks or
copies (Reported-by, Suggested-by, Cc) are left out: they need not know it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MAX = 2000  # addresses per header, far more than real mail has
# What has another "@" beside it is a part of something else: a quoted local part may hold somebody's address.
_SPEC = re.compile(r"(?<![^\s<>,;:\"()\[\]])[^\s<>@,;:\"()\[\]]{1,256}@[^\s<>@,;:\"()]{1,256}+(?!\"?@)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_QUOTED_LOCAL = re.compile(r'"([\w.+-]{1,100})"@')
_WITH_COMMENT = re.compile(r"([^\s<>@,;:\"()]{1,256}@[^\s<>@,;:\"()]{1,256})\s+\(([^()<>@,;:\"]{1,100})\)")
_ANGLE = re.compile(r"<\s*([^<>]{1,520})")


@dataclass(frozen=True, slots=True)
class Address:
    """A display name, and the address in lower case."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>" if self.name else self.email


def parse_addresses(header: str) -> tuple[Address, ...]:
    """Return the addresses of a From, To or Cc header in order; items without an address are skipped."""
    header = _QUOTED_LOCAL.sub(r"\1@", header)
    if alone := _WITH_COMMENT.fullmatch(header.strip()):  # "dana@dev.example (Dana Brook)"
        header = f"{alone[2]} <{alone[1]}>"
    addresses: list[Address] = []
    for item in _items(_without_comments(header)):
        # The last angle bracket counts: a quoted name may contain others.
        angles = [(angle, spec) for angle in _ANGLE.finditer(item) if (spec := _SPEC.search("".join(angle[1].split())))]
        if angles:
            name, email = item[: angles[-1][0].start()], angles[-1][1][0]
        elif specs := list(_SPEC.finditer(item)):
            name, email = "", specs[-1][0]
        else:
            continue
        if email[0] == email[-1] == "'":
            email = email[1:-1]
        name = " ".join(name.replace("\\", "").replace('"', " ").split())[:200]
        addresses.append(Address(name, email.lower().rstrip(".")))
        if len(addresses) == _MAX:
            break
    return tuple(addresses)


def _without_comments(header: str) -> str:
    """Return the header without RFC 5322 comments, which may nest and contain anything."""
    if "(" not in header:
        return header
    kept: list[str] = []
    depth = position = 0
    unclosed = False
    while position < len(header):
        char = header[position]
        if char == '"' and not depth and not unclosed:
            if quoted := _QUOTED.match(header, position):
                kept.append(quoted[0])
                position = quoted.end()
                continue
            unclosed = True
        if char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
        position += 1
    return "".join(kept) if not depth else header.replace("(", " ").replace(")", " ")


def _items(header: str) -> Iterator[str]:
    """Split the header at commas, and at the colon and semicolon of groups, outside closed quotes."""
    start = position = 0
    unclosed = in_address = False
    while position < len(header):
        char = header[position]
        if char == '"' and not unclosed:
            # A quoted string is a name, whatever it looks like; an unclosed quote is a typo.
            quoted = _QUOTED.match(header, position)
            position = quoted.end() - 1 if quoted else position
            unclosed = quoted is None  # then no later quote is closed either
        elif char in "<@":
            in_address = True
        elif char in ",;":
            yield header[start:position]
            start, in_address = position + 1, False
        elif char == ":" and not in_address:
            start = position + 1  # the name of a group
        position += 1
    yield header[start:]


# --- Signers ---

_TAGS = frozenset({"signed-off-by", "co-developed-by", "reviewed-by", "acked-by", "tested-by"})
MOST = 100  # in one commit; a longer list is not one of people


def signers(trailers: Iterable[tuple[str, str]]) -> Iterator[Address]:
    """Yield the people, in the order of the trailers (Documentation/process/submitting-patches.rst)."""
    values = [value for tag, value in trailers if tag.strip().lower() in _TAGS]
    for value in values[:MOST]:
        yield from parse_addresses(value)[:1]
