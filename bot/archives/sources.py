"""Open an archive: recognise the format of a path or URL, and return its sources of raw mail.

A *source* is one archive to read: an epoch, a file, a folder, a group. Its *cursor* says how far it was read, in a
format of its own. Names, which are stored and shown, and error messages never contain a password.

To add a format: a file with a class like `Source`, a line in `open_sources`, a test in
tests/bot/archives/test_sources.py.

`find_patch_mail` finds the mail that posted a commit as a patch, by its patch-id on a lore server, like `b4 dig`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import urlsplit

from bot.archives.files import FileSource, MaildirSource, PipeSource, RawMail, read_mbox
from bot.archives.public_inbox import EpochSource, epochs
from bot.archives.servers import ImapSource, NntpSource, ThreadSource
from bot.errors import Unreadable
from bot.git import repository
from bot.mail.message import ParsedMail, parse
from bot.mail.patches import PatchMail, bare_title, is_answer
from tracker.domain.events import ArchiveKind

_NO_ADDRESS = "not a valid URL; in a password write # / ? [ @ : as %23 %2F %3F %5B %40 %3A"


class Source(Protocol):
    """An archive to read. A cursor says how far it was read, in the source's own format; "" is the beginning."""

    @property
    def name(self) -> str:
        """The name in the database and in messages; never contains a password."""

    @property
    def address(self) -> str:
        """The argument of `open_sources` that opens it; may contain a password, and is never shown."""

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
    import liblore

    node = liblore.LoreNode(server, follow_upstream=False, request_timeout=(5.0, 30.0))
    try:
        mbox = node.get_mbox_by_query(f"patchid:{patch_id}")
    except (liblore.LibloreError, LookupError, OSError) as error:
        if isinstance(error, liblore.RemoteError) and "404" in str(error):
            return None
        raise Unreadable(f"{server}: patch-id {patch_id[:12]}: {' '.join(str(error).split())[:300]}") from error
    finally:
        node.close()
    if not mbox:
        return None
    with TemporaryDirectory() as folder:
        file = Path(folder) / "found.mbox"
        file.write_bytes(mbox)
        return chosen([parse(mail.raw) for mail in islice(read_mbox(file), MOST)], title)


def chosen(mails: Sequence[ParsedMail], title: str) -> PatchMail | None:
    """Return the latest posting with this title, or None; replies may quote a whole patch, and so have its id too."""
    posted = [mail for mail in mails if not is_answer(mail.subject) and bare_title(mail.subject) == title]
    dated = [(mail.date, mail) for mail in posted if mail.date and mail.message_id]
    if not dated:
        return None
    _, last = max(dated, key=lambda pair: pair[0])
    return PatchMail(last.message_id, last.ancestors[::-1])
