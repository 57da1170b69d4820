"""Stage one: does a raw mail concern us at all? Looks at bytes only, and lets nothing relevant fall."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote_to_bytes

from bot.archive.raw import head_of
from bot.identity import Identity
from bot.ingest.robot_mail.recogniser import Recogniser

_IDS = re.compile(rb"<\s*([^<>\s]{3,900})\s*>")
_LINK = re.compile(rb"kernel\.org/([^\s<>\"']{3,400})")


class Sieve:
    """Built once for a set of tracked Message-IDs, which may grow; asked for every mail."""

    def __init__(self, tracked: Collection[str], identity: Identity) -> None:
        self.tracked = {message_id.encode("utf-8", "surrogateescape") for message_id in tracked}
        local, _, domain = identity.address.lower().partition("@")
        self._local = local.encode()
        self._own = re.compile(re.escape(self._local) + rb"(?:\+[0-9a-f]{4,64})?@" + re.escape(domain.encode()))
        self._reports = Recogniser(identity.robots)
        self._page = f"{identity.base_url}/report/".encode()

    def add(self, message_id: str) -> None:
        """Track one more mail: answers to it concern us."""
        self.tracked.add(message_id.encode("utf-8", "surrogateescape"))

    def passes(self, raw: bytes) -> bool:
        """Whether the mail must be parsed: of a tracked thread, perhaps a robot's report, to us, or with a link to what
        is tracked.
        """
        head = head_of(raw)
        if not self.tracked.isdisjoint(_IDS.findall(head)):
            return True
        lower = head.lower()
        if self._local in lower and self._own.search(lower):
            return True
        if self._reports.may_be_report(lower, raw):
            return True
        # What is encoded is read as its reader will: a soft line end of quoted-printable may cut a link in two.
        if b"base64" in lower or (b"multipart/" in lower and b"base64" in raw):
            return True
        if b"=\n" in raw or b"=\r\n" in raw:
            raw = raw.replace(b"=\r\n", b"").replace(b"=\n", b"").replace(b"=3D", b"=")
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
