"""Stage one: does a raw mail concern us at all? Looks at bytes only, and lets nothing relevant fall."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote_to_bytes

from bot.identity import Identity

_IDS = re.compile(rb"<\s*([^<>\s]{3,900})\s*>")
_LINK = re.compile(rb"kernel\.org/([^\s<>\"']{3,400})")
_FROM = re.compile(rb"^from:[^\n]*(?:\n[ \t][^\n]*)*", re.I | re.M)
_BLANK = re.compile(rb"\r?\n\r?\n")


class Sieve:
    """Built once for a set of tracked Message-IDs, which may grow; asked for every mail."""

    def __init__(self, tracked: Collection[str], identity: Identity) -> None:
        self.tracked = {message_id.encode("utf-8", "surrogateescape") for message_id in tracked}
        local, _, domain = identity.address.partition("@")
        self._own = re.compile(
            re.escape(local.encode()) + rb"(?:\+[0-9a-f]{4,64})?@" + re.escape(domain.encode()), re.I
        )
        robots = b"|".join(re.escape(address.encode()) for address in sorted(identity.robots))
        self._robots = re.compile(robots or rb"(?!)", re.I)
        self._page = f"{identity.base_url}/report/".encode()

    def add(self, message_id: str) -> None:
        """Track one more mail: answers to it concern us."""
        self.tracked.add(message_id.encode("utf-8", "surrogateescape"))

    def passes(self, raw: bytes) -> bool:
        """Whether the mail must be parsed: of a tracked thread, by a robot, to us, or with a link to a tracked mail."""
        end = _BLANK.search(raw)
        head = raw[: end.start()] if end else raw
        if not self.tracked.isdisjoint(_IDS.findall(head)) or self._own.search(head):
            return True
        sender = _FROM.search(head)
        if sender and self._robots.search(sender[0]):
            return True
        if self._page in raw:
            return True
        return b"kernel.org/" in raw and any(self._names_tracked(link) for link in _LINK.findall(raw))

    def _names_tracked(self, link: bytes) -> bool:
        path = unquote_to_bytes(link)
        pieces = path.split(b"/")
        # The id is what follows the list's name; what follows the id is a view of it, or punctuation.
        return any(
            b"/".join(pieces[start:stop]).rstrip(b".,;:)]}") in self.tracked
            for start in range(min(3, len(pieces)))
            for stop in range(start + 1, min(len(pieces), start + 4) + 1)
        )
