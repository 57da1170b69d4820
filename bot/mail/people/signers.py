"""Who signed, reviewed or tested a commit, from its trailers: they speak for it as a maintainer does.

Those whom a commit only thanks or copies (Reported-by, Suggested-by, Cc) are left out: they need not know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.mail.addresses import Address, parse_addresses

_TAGS = frozenset({"signed-off-by", "co-developed-by", "reviewed-by", "acked-by", "tested-by"})
MOST = 100  # in one commit; a longer list is no list of people


def signers(trailers: Iterable[tuple[str, str]]) -> Iterator[Address]:
    """Yield the people, in the order of the trailers (Documentation/process/submitting-patches.rst)."""
    values = [value for tag, value in trailers if tag.strip().lower() in _TAGS]
    for value in values[:MOST]:
        yield from parse_addresses(value)[:1]
