"""A group on a news server, for lists without a mirror: `nntp://host/group`, `nntps://user:password@host:563/group`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote

from bot.archives.sources.raw import LIMIT, RawMail
from bot.errors import Unreadable

with warnings.catch_warnings():  # the stdlib's until Python 3.12; from 3.13 on the same module from PyPI
    warnings.simplefilter("ignore", DeprecationWarning)
    import nntplib

nntplib._MAXLINE = LIMIT  # type: ignore[attr-defined]  # mails have longer lines than its 2,048 bytes
log = logging.getLogger(__name__)
_TIMEOUT = 60.0
_PORTS = {"nntp": 119, "nntps": 563}
_NO_SUCH_ARTICLE = ("423", "430")


@dataclass(frozen=True, slots=True)
class NntpSource:
    """One group. Its cursor is the number of the last article that was read."""

    url: SplitResult
    resumes: bool = True
    exclusive: bool = True

    @property
    def group(self) -> str:
        return unquote(self.url.path.strip("/"))

    @property
    def address(self) -> str:
        return self.url.geturl()

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.hostname}:{self.url.port or _PORTS[self.url.scheme]}/{self.group}"

    def goal(self) -> str:
        with self._server() as server:
            return str(server.group(self.group)[3])

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def resume(self, cursor: str) -> str:
        """Return the cursor, or "" if the group was recreated and its numbers start over."""
        return cursor if cursor and int(cursor) <= int(self.goal()) else ""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        number = int(cursor or 0) + 1
        while number <= int(goal):
            with self._server() as server:
                number = max(number, int(server.group(self.group)[2]))
                while number <= int(goal):
                    number += 1
                    try:
                        article = server.article(number - 1)[1]
                    except nntplib.NNTPTemporaryError as gone:
                        if str(gone)[:3] not in _NO_SUCH_ARTICLE:
                            raise
                        continue
                    except nntplib.NNTPDataError:
                        log.warning("%s: article %d has a line that is too long; it is skipped", self.name, number - 1)
                        break  # the rest of it is still coming in: only a new connection gets past it
                    yield RawMail((b"\n".join(article.lines) + b"\n")[:LIMIT], str(number - 1))

    def after(self, cursor: str, position: str, seen: int) -> str:
        return position

    @contextmanager
    def _server(self) -> Iterator[nntplib.NNTP]:
        connect = nntplib.NNTP_SSL if self.url.scheme == "nntps" else nntplib.NNTP
        user, password = unquote(self.url.username or "") or None, unquote(self.url.password or "") or None
        port = self.url.port or _PORTS[self.url.scheme]
        try:
            with connect(self.url.hostname or "", port, user, password, timeout=_TIMEOUT) as server:
                yield server
        except (nntplib.NNTPError, OSError, EOFError, ValueError) as error:
            raise Unreadable(f"{self.name}: {' '.join(str(error).split())[:200] or 'connection closed'}") from error
