"""A folder on an IMAP server (RFC 3501), for lists without a mirror: `imaps://user:password@host/folder`."""

from __future__ import annotations

import imaplib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from urllib.parse import SplitResult, unquote

from bot.archives.sources.raw import LIMIT, RawMail
from bot.errors import Unreadable

_TIMEOUT = 60.0
_PORTS = {"imap": 143, "imaps": 993}
_AT_ONCE = 50  # mails per FETCH
_RANGE = 10_000  # UIDs per SEARCH
_SIZE = re.compile(rb"RFC822\.SIZE (\d{1,12})")
_UID = re.compile(rb"UID (\d{1,10})")


@dataclass(frozen=True, slots=True)
class ImapSource:
    """One folder, opened read-only. Its cursor is "UIDVALIDITY:UID"; another UIDVALIDITY makes it void."""

    url: SplitResult
    resumes: bool = True
    exclusive: bool = True

    @property
    def folder(self) -> str:
        return unquote(self.url.path.strip("/")) or "INBOX"

    @property
    def address(self) -> str:
        return self.url.geturl()

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.hostname}:{self.url.port or _PORTS[self.url.scheme]}/{self.folder}"

    def goal(self) -> str:
        with self._server() as server:
            return f"{_mailbox_number(server, 'UIDVALIDITY')}:{max(0, int(_mailbox_number(server, 'UIDNEXT')) - 1)}"

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def resume(self, cursor: str) -> str:
        with self._server() as server:
            return cursor if cursor.partition(":")[0] == _mailbox_number(server, "UIDVALIDITY") else ""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        with self._server() as server:
            validity, last = _mailbox_number(server, "UIDVALIDITY"), int(goal.partition(":")[2])
            for first in range(int(cursor.partition(":")[2] or 0) + 1, last + 1, _RANGE):
                uids = self._uids(server, first, min(last, first + _RANGE - 1))
                for start in range(0, len(uids), _AT_ONCE):
                    yield from self._fetch(server, uids[start : start + _AT_ONCE], validity)

    def _uids(self, server: imaplib.IMAP4, first: int, last: int) -> list[int]:
        """Return the UIDs in a range; imaplib reads at most a million bytes per answer."""
        found = self._answer(server, "SEARCH", f"UID {first}:{last}")[0]
        numbers = found.split() if isinstance(found, bytes) else []
        return sorted(uid for uid in map(int, numbers) if first <= uid <= last)

    def _fetch(self, server: imaplib.IMAP4, uids: list[int], validity: str) -> Iterator[RawMail]:
        """Yield mails in the order of their UIDs, which the cursor needs; of very large ones only the beginning."""
        response = self._answer(server, "FETCH", ",".join(map(str, uids)), "(UID RFC822.SIZE)")
        lines = [each for each in response if isinstance(each, bytes)]
        large = {int(uid[1]) for each in lines if (uid := _UID.search(each)) and _size(each) > LIMIT}
        for is_large, group in groupby(uids, key=large.__contains__):
            part = f"BODY.PEEK[]<0.{LIMIT}>" if is_large else "BODY.PEEK[]"
            mails = _bodies(self._answer(server, "FETCH", ",".join(map(str, group)), f"(UID {part})"))
            for number in sorted(mails):
                yield RawMail(mails[number].replace(b"\r\n", b"\n"), f"{validity}:{number}")

    def _answer(self, server: imaplib.IMAP4, *command: str) -> list[Any]:
        """Return a server's answer. Raises Unreadable if it is NO or BAD: nothing may be skipped for that."""
        status, response = server.uid(*command)
        if status != "OK":
            raise Unreadable(f"{self.name}: {command[0]} failed: {str(response[0])[:150]}")
        return list(response)

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
                status, response = server.select(f'"{quoted}"', readonly=True)
                if status != "OK":
                    raise Unreadable(f"{self.name}: {response[0]!r}; check the folder's name")
                yield server
            finally:
                server.shutdown()
        except (imaplib.IMAP4.error, OSError, EOFError, ValueError) as error:
            raise Unreadable(f"{self.name}: {' '.join(str(error).split())[:200]}") from error


def _mailbox_number(server: imaplib.IMAP4, name: str) -> str:
    """Return a number that describes the open folder. With another UIDVALIDITY all UIDs stand for other mails."""
    value = server.untagged_responses.get(name, [b""])[-1]
    return value.decode("ascii", "replace") if isinstance(value, bytes) and value.isdigit() else "0"


def _size(line: bytes) -> int:
    found = _SIZE.search(line)
    return int(found[1]) if found else 0


def _bodies(response: list[Any]) -> dict[int, bytes]:
    """Return the bodies by UID, which may stand before a body or after it (RFC 3501 section 7.4.2: in any order)."""
    mails: dict[int, bytes] = {}
    for each, following in pairwise([*response, b""]):
        if isinstance(each, tuple):
            after = following if isinstance(following, bytes) else b""
            if uid := _UID.search(each[0]) or _UID.search(after):
                mails[int(uid[1])] = each[1]
    return mails
