"""A folder on an IMAP server (RFC 3501), for lists without a mirror: `imaps://user:password@host/folder`."""

from __future__ import annotations

import imaplib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import SplitResult, unquote

from bot.archive.raw import LIMIT, RawMail
from bot.errors import Unreadable

_TIMEOUT = 60.0
_PORTS = {"imap": 143, "imaps": 993}
_AT_ONCE = 50  # mails in one answer
_SIZE = re.compile(rb"RFC822\.SIZE (\d{1,12})")
_UID = re.compile(rb"UID (\d{1,10})")


@dataclass(frozen=True, slots=True)
class ImapSource:
    """One folder, opened read-only. Its cursor is "UIDVALIDITY:UID"; new numbers for all mails make it void."""

    url: SplitResult
    resumes: bool = True
    exclusive: bool = True

    @property
    def folder(self) -> str:
        return unquote(self.url.path.strip("/")) or "INBOX"

    @property
    def place(self) -> str:
        return self.url.geturl()

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.hostname}:{self.url.port or _PORTS[self.url.scheme]}/{self.folder}"

    def goal(self) -> str:
        with self._server() as server:
            uids = _uids(server, 0)
            return f"{_validity(server)}:{uids[-1] if uids else 0}"

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def resume(self, cursor: str) -> str:
        with self._server() as server:
            return cursor if cursor.partition(":")[0] == _validity(server) else ""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        with self._server() as server:
            validity = _validity(server)
            last = int(goal.partition(":")[2])
            uids = [uid for uid in _uids(server, int(cursor.partition(":")[2] or 0)) if uid <= last]
            for start in range(0, len(uids), _AT_ONCE):
                yield from self._fetch(server, uids[start : start + _AT_ONCE], validity)

    def _fetch(self, server: imaplib.IMAP4, uids: list[int], validity: str) -> Iterator[RawMail]:
        """Some mails; of the very large ones the beginning."""
        told = server.uid("FETCH", ",".join(map(str, uids)), "(UID RFC822.SIZE)")[1]
        lines = [each for each in told if isinstance(each, bytes)]
        large = {int(uid[1]) for each in lines if (uid := _UID.search(each)) and _size(each) > LIMIT}
        for is_large, some in groupby(uids, key=large.__contains__):  # in their order, which the cursor goes by
            part = f"BODY.PEEK[]<0.{LIMIT}>" if is_large else "BODY.PEEK[]"
            answer = server.uid("FETCH", ",".join(map(str, some)), f"(UID {part})")[1]
            for each in answer:
                if isinstance(each, tuple) and (uid := _UID.search(each[0])):
                    yield RawMail(each[1].replace(b"\r\n", b"\n"), f"{validity}:{int(uid[1])}")

    def after(self, cursor: str, position: str, seen: int) -> str:
        return position

    @contextmanager
    def _server(self) -> Iterator[imaplib.IMAP4]:
        connect = imaplib.IMAP4_SSL if self.url.scheme == "imaps" else imaplib.IMAP4
        try:
            server = connect(self.url.hostname or "", self.url.port or _PORTS[self.url.scheme], timeout=_TIMEOUT)
            try:
                server.login(unquote(self.url.username or "anonymous"), unquote(self.url.password or "anonymous"))
                quoted = self.folder.replace("\\", "\\\\").replace('"', '\\"')
                status, told = server.select(f'"{quoted}"', readonly=True)
                if status != "OK":
                    raise Unreadable(f"{self.name}: {told[0]!r}; is the folder's name right?")
                yield server
            finally:
                server.shutdown()
        except (imaplib.IMAP4.error, OSError, EOFError, ValueError) as error:
            raise Unreadable(f"{self.name}: {' '.join(str(error).split())[:200]}") from error


def _validity(server: imaplib.IMAP4) -> str:
    """What tells whether the numbers of a folder still mean the same mails."""
    told = server.untagged_responses.get("UIDVALIDITY", [b"0"])[-1]
    return told.decode("ascii", "replace") if isinstance(told, bytes) else "0"


def _size(line: bytes) -> int:
    found = _SIZE.search(line)
    return int(found[1]) if found else 0


def _uids(server: imaplib.IMAP4, after: int) -> list[int]:
    """The numbers of the mails after one. `n:*` names the last mail even where it is older."""
    found = server.uid("SEARCH", f"UID {after + 1}:*")[1][0]
    told = found.split() if isinstance(found, bytes) else []
    return sorted(uid for uid in map(int, told) if uid > after)
