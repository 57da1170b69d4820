"""Open an archive: recognise the format of a path or URL, and return its sources of raw mail.

A *source* is one archive to read: an epoch, a file, a folder, a group. Its *cursor* says how far it was read, in a
format of its own. Names, which are stored and shown, and error messages never contain a password.

To add a format: a class like `Source`, a line in `open_sources`, a test in tests/bot/archives/test_sources.py.

`find_patch_mail` finds the mail that posted a commit as a patch, by its patch-id on a lore server, like `b4 dig`.
"""

import imaplib
import logging
import os
import re
import ssl
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from bot.archives.files import LIMIT, FileSource, MaildirSource, PipeSource, RawMail, SnapshotSource, read_mbox
from bot.archives.public_inbox import EpochSource, epochs
from bot.git import repository
from bot.git.repository import Unreadable
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import PatchMail, bare_title, is_answer
from bot.outbox.transports import imap_connection, imap_quoted
from tracker.domain.events import ArchiveKind

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from liblore import LoreNode

_NO_ADDRESS = "not a valid URL; in a password write # / ? [ @ : as %23 %2F %3F %5B %40 %3A"


class Source(Protocol):
    """An archive to read. A cursor says how far it was read, in the source's own format; "" is the beginning."""

    @property
    def name(self) -> str:
        """The name in the database and in messages; never contains a password."""

    @property
    def resumes(self) -> bool:
        """Whether reading can resume from a cursor. Other sources are read whole when they have changed."""

    @property
    def kind(self) -> ArchiveKind:
        """How mail gets into it."""

    @property
    def exclusive(self) -> bool:
        """Whether only one worker may read it at a time."""

    def goal(self) -> str:
        """Return where reading it now would end: the newest commit, the highest number. "" if only reading tells."""

    def is_done(self, cursor: str, goal: str) -> bool:
        """Whether nothing is new since that cursor."""

    def resume(self, cursor: str) -> str:
        """Return the cursor to resume from: as much of it as is still valid if the archive was rewritten."""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        """Yield the mails after a cursor that `resume` returned, up to the goal."""

    def after(self, cursor: str, position: str, seen: int) -> str:
        """Return the cursor after `seen` more mails up to a position, or to the goal."""


def printable(path: Path) -> str:
    """Return a path as text that can be shown and stored, whatever its bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def shown(name: str) -> str:
    """Return what `open_sources` is given as it may be stored and shown: without a password."""
    if "://" not in name:
        return printable(Path(name).resolve()) if name != "-" else name
    try:
        return _on_a_server(name).name
    except Unreadable:
        return f"{name.partition('://')[0][:20]}://…"


def open_sources(name: str) -> list[Source]:
    """Return the sources at a path or URL: the epochs of an inbox, or one archive. `-` is standard input.

    Raises Unreadable if there is nothing to read.
    """
    if name == "-":
        return [PipeSource()]
    if "://" in name:
        return [_on_a_server(name)]
    path = Path(name).resolve()
    if hidden := repository.hidden_part(path):
        raise Unreadable(f"{hidden}: {repository.complaint(hidden)}")
    if not path.exists():
        raise Unreadable(f"{name}: there is no such file or directory")
    if path.is_file():
        return [FileSource(path, printable(path))]
    if (path / "cur").is_dir() and (path / "new").is_dir():
        return [MaildirSource(path, printable(path))]
    if clones := epochs(path):
        for epoch in clones:
            if not repository.is_repository(epoch):
                raise Unreadable(f"{epoch}: {repository.complaint(epoch)}")
        return [EpochSource(epoch, printable(epoch)) for epoch in clones]
    raise Unreadable(
        f"{name}: not a mail archive; expected a public-inbox (git/0.git), one epoch, a Maildir (cur/, new/), an mbox"
        " or a mail"
    )


def _on_a_server(name: str) -> Source:
    """Return a folder or a group. Error messages never contain the password of the URL."""
    scheme = name.partition("://")[0][:20]
    try:
        url = urlsplit(name)
        port = url.port
    except ValueError:
        raise Unreadable(f"{scheme}://…: {_NO_ADDRESS}") from None
    if url.fragment or url.query or (port is None and ":" in url.netloc.rpartition("@")[2].rpartition("]")[2]):
        raise Unreadable(f"{scheme}://…: {_NO_ADDRESS}")
    if url.scheme in ("imap", "imaps") and url.hostname:
        return ImapSource(url)
    if url.scheme in ("nntp", "nntps") and url.hostname and url.path.strip("/"):
        return NntpSource(url)
    raise Unreadable(f"{scheme}://…: expected imap://, imaps://, nntp:// or nntps://, then host/folder or host/group")


def thread_source(server: str, message_id: str) -> Source:
    """Return a thread on a lore server; raises Unreadable if no server is set."""
    if not server.startswith(("http://", "https://")):
        raise Unreadable("no lore server is set; for example PERFWORK_LORE=https://lore.kernel.org/all")
    return ThreadSource(server, message_id)


# --- The mail of a patch ---

MOST = 50  # postings of one patch
_PATCH_ID = re.compile(r"[0-9a-f]{40}\Z")


def find_patch_mail(server: str, patch_id: str, title: str) -> PatchMail | None:
    """Return the last posting of this change under this title, or None if the server has none.

    `server` comes from our settings; its public-inbox must index more than `basic`. Raises Unreadable if the query
    fails.
    """
    if not _PATCH_ID.match(patch_id):
        return None
    mails = _from_lore(server, f"patch-id {patch_id[:12]}", lambda node: node.get_mbox_by_query(f"patchid:{patch_id}"))
    return chosen([parse(mail.raw) for mail in islice(mails, MOST)], title)


def chosen(mails: Sequence[ParsedMail], title: str) -> PatchMail | None:
    """Return the latest posting with this title, or None; replies may quote a whole patch, and so have its id too."""
    posted = [mail for mail in mails if not is_answer(mail.subject) and bare_title(mail.subject) == title]
    dated = [(mail.date, mail) for mail in posted if mail.date and mail.message_id]
    if not dated:
        return None
    _, last = max(dated, key=lambda pair: pair[0])
    return PatchMail(last.message_id, last.ancestors[::-1])


# --- Archives on servers: an IMAP folder, a news group, and a thread on a lore server ---
# IMAP (RFC 3501) and NNTP are for lists without a mirror: `imaps://user:password@host/folder`, `nntp://host/group`,
# `nntps://user:password@host:563/group`. Both resume: a folder after a UID, as long as its UIDVALIDITY is the same, a
# group after an article's number. A name, which is stored and shown, has no password in it.
#
# A thread is fetched by Message-ID with the library that b4 uses. A server's error raises Unreadable: nothing may be
# skipped for that.

_TIMEOUT = 60.0
_PORTS = {"imap": 143, "imaps": 993, "nntp": 119, "nntps": 563}


@dataclass(frozen=True, slots=True)
class _ServerSource:
    """A folder or a group, by its URL."""

    url: SplitResult
    resumes: bool = True
    exclusive: bool = True
    kind: ArchiveKind = ArchiveKind.DELIVERY

    @property
    def folder(self) -> str:
        return unquote(self.url.path.strip("/")) or "INBOX"  # a group always has a name

    @property
    def port(self) -> int:
        return self.url.port or _PORTS[self.url.scheme]

    @property
    def name(self) -> str:
        return f"{self.url.scheme}://{self.url.hostname}:{self.port}/{self.folder}"

    def is_done(self, cursor: str, goal: str) -> bool:
        return cursor == goal

    def after(self, cursor: str, position: str, seen: int) -> str:
        return position


# --- IMAP ---

_AT_ONCE = 50  # mails per FETCH
_RANGE = 10_000  # UIDs per SEARCH
_SIZE = re.compile(rb"RFC822\.SIZE (\d{1,12})")
_UID = re.compile(rb"UID (\d{1,10})")


@dataclass(frozen=True, slots=True)
class ImapSource(_ServerSource):
    """One folder, opened read-only. Its cursor is "UIDVALIDITY:UID"; another UIDVALIDITY makes it void."""

    def goal(self) -> str:
        with self._server() as server:
            return f"{_mailbox_number(server, 'UIDVALIDITY')}:{max(0, int(_mailbox_number(server, 'UIDNEXT')) - 1)}"

    def resume(self, cursor: str) -> str:
        with self._server() as server:
            return cursor if cursor.partition(":")[0] == _mailbox_number(server, "UIDVALIDITY") else ""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        with self._server() as server:
            validity, last = _mailbox_number(server, "UIDVALIDITY"), int(goal.partition(":")[2])
            for first in range(int(cursor.partition(":")[2] or 0) + 1, last + 1, _RANGE):
                until = min(last, first + _RANGE - 1)  # imaplib reads at most a million bytes per answer
                answer = self._answer(server, "SEARCH", f"UID {first}:{until}")[0]
                numbers = map(int, answer.split() if isinstance(answer, bytes) else ())
                uids = sorted(uid for uid in numbers if first <= uid <= until)
                for start in range(0, len(uids), _AT_ONCE):
                    yield from self._fetch(server, uids[start : start + _AT_ONCE], validity)

    def _fetch(self, server: imaplib.IMAP4, uids: list[int], validity: str) -> Iterator[RawMail]:
        """Yield mails in the order of their UIDs, which the cursor needs; of very large ones only the beginning."""
        response = self._answer(server, "FETCH", ",".join(map(str, uids)), "(UID RFC822.SIZE)")
        pairs = [(_UID.search(line), _SIZE.search(line)) for line in response if isinstance(line, bytes)]
        large = {int(uid[1]) for uid, size in pairs if uid and size and int(size[1]) > LIMIT}
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

    @contextmanager
    def _server(self) -> Iterator[imaplib.IMAP4]:
        try:
            server = imap_connection(self.url, _TIMEOUT)
            try:
                status, response = server.select(imap_quoted(self.folder), readonly=True)
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


def _bodies(response: list[Any]) -> dict[int, bytes]:
    """Return the bodies by UID, which may stand before a body or after it (RFC 3501 section 7.4.2: in any order)."""
    mails: dict[int, bytes] = {}
    for item, following in pairwise([*response, b""]):
        if isinstance(item, tuple):
            after = following if isinstance(following, bytes) else b""
            if uid := _UID.search(item[0]) or _UID.search(after):
                mails[int(uid[1])] = item[1]
    return mails


# --- NNTP ---

with warnings.catch_warnings():  # the stdlib's until Python 3.12; from 3.13 on the same module from PyPI
    warnings.simplefilter("ignore", DeprecationWarning)
    import nntplib

nntplib._MAXLINE = LIMIT  # type: ignore[attr-defined]  # mails have longer lines than its 2,048 bytes

_NO_SUCH_ARTICLE = ("423", "430")


@dataclass(frozen=True, slots=True)
class NntpSource(_ServerSource):
    """One group. Its cursor is the number of the last article that was read."""

    kind: ArchiveKind = ArchiveKind.PUBLIC

    def goal(self) -> str:
        with self._server() as server:
            return str(server.group(self.folder)[3])

    def resume(self, cursor: str) -> str:
        """Return the cursor, or "" if the group was recreated and its numbers start over."""
        return cursor if cursor and int(cursor) <= int(self.goal()) else ""

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        number = int(cursor or 0) + 1
        while number <= int(goal):
            with self._server() as server:
                number = max(number, int(server.group(self.folder)[2]))
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
                        # The rest of it is still coming in, also as the answer to QUIT: only a new connection helps.
                        with suppress(nntplib.NNTPError, OSError, EOFError):
                            server.quit()
                        break
                    yield RawMail((b"\n".join(article.lines) + b"\n")[:LIMIT], str(number - 1))

    @contextmanager
    def _server(self) -> Iterator[nntplib.NNTP]:
        connect: Callable[..., nntplib.NNTP] = nntplib.NNTP
        if self.url.scheme == "nntps":  # nntplib alone would send the password to whoever answers
            connect = partial(nntplib.NNTP_SSL, ssl_context=ssl.create_default_context())
        user, password = unquote(self.url.username or "") or None, unquote(self.url.password or "") or None
        try:
            with connect(self.url.hostname or "", self.port, user, password, timeout=_TIMEOUT) as server:
                yield server
        except (nntplib.NNTPError, OSError, EOFError, ValueError) as error:
            raise Unreadable(f"{self.name}: {' '.join(str(error).split())[:200] or 'connection closed'}") from error


# --- Threads of lore ---


@dataclass(frozen=True, slots=True)
class ThreadSource(SnapshotSource):
    """One thread on one server."""

    server: str
    message_id: str
    exclusive: bool = False
    kind: ArchiveKind = ArchiveKind.PUBLIC

    @property
    def name(self) -> str:
        return f"{self.server} {self.message_id}"

    def mails(self, cursor: str, goal: str) -> Iterator[RawMail]:
        return read_thread(self.server, self.message_id)


def read_thread(server: str, message_id: str) -> Iterator[RawMail]:
    """Yield the mails of the thread with `message_id`. `server` comes from our settings, never from mail."""
    mails = _from_lore(server, message_id, lambda node: node.get_mbox_by_msgid(message_id.strip("<> ")))
    first = next(mails, None)
    if first is None:
        raise Unreadable(f"{server}: there is no thread with {message_id}")
    yield first
    yield from mails


def _from_lore(server: str, what: str, ask: "Callable[[LoreNode], bytes]") -> Iterator[RawMail]:
    """Yield the mails that a public-inbox server answers with, none if it knows none. `what`: for errors."""
    import liblore  # 0.1 s, which other commands do without

    node = liblore.LoreNode(server, follow_upstream=False, request_timeout=(5.0, 60.0))
    try:
        mbox = ask(node)
    except (liblore.LibloreError, LookupError, OSError) as error:
        if isinstance(error, liblore.RemoteError) and error.status_code == 404:
            return
        raise Unreadable(f"{server}: {what}: {' '.join(str(error).split())[:300]}") from error
    finally:
        node.close()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "found.mbox"
        file.write_bytes(mbox)
        yield from read_mbox(file)
