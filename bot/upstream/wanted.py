"""Which commits of a million to look at: those whose title, author or names may have to do with a report. Pure.

Says yes too often rather than no, in some microseconds a commit; what it means is for naming.py and matching.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

DIGITS = 7  # of a sha: the least that anybody writes
_HOSTS = (b"kernel.org/", b"msgid.link/")  # the ends of the hosts in links to mail (bot/replies/links.py)
_BEFORE_SHA = (b"ixes:", b"ommit")
_AROUND = b".,;:!*()[]{}'\"<>"
_QUOTED = (b'revert "', b'reapply "')


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a commit may name, in lower case. `mails`: what stands behind the last slash of Message-IDs."""

    shas: frozenset[bytes]
    mails: frozenset[bytes]
    titles: frozenset[bytes]
    authors: frozenset[bytes]  # "seconds address", as the log writes it
    marks: tuple[bytes, ...]  # the local part of our tagged addresses, and the place of our pages

    def __call__(self, author: bytes, message: bytes) -> bool:
        """Whether a commit with this author line and this message may have to do with a report."""
        low = message.lower()
        if _title(low) in self.titles or author.lower() in self.authors:
            return True
        for mark in self.marks:
            if mark in low:
                return True
        for word in _BEFORE_SHA:
            if word in low:
                for rest in low.split(word)[1:]:
                    if _sha(rest) in self.shas:
                        return True
        for host in _HOSTS:
            if host in low:
                for rest in low.split(host)[1:]:
                    if self._leads_here(rest):
                        return True
        return False

    def _leads_here(self, rest: bytes) -> bool:
        """Whether what follows the host of a link may be one of our mails."""
        path = rest[:500].split(None, 1)[0] if rest[:1] > b" " else b""
        path = path.partition(b"#")[0].partition(b"?")[0]
        if b"%" in path:
            path = unquote_to_bytes(path)
        elif path.endswith(b"/") and b"@" not in path:
            return True  # its id may stand on the next line
        return any(b"@" in piece and piece.strip(_AROUND) in self.mails for piece in path.split(b"/"))


def _sha(rest: bytes) -> bytes:
    """The first digits of a sha that follows "Fixes:" or "commit", with another "commit" or a colon between."""
    return rest[:30].lstrip(b"s: \t\n").removeprefix(b"commit ").lstrip()[:DIGITS]


def _title(low: bytes) -> bytes:
    """The title, bare of `Revert "…"` and of "[PATCH …]"."""
    end = low.find(b"\n")
    title = low[:end] if low[end + 1 : end + 2] in (b"\n", b"") else low.partition(b"\n\n")[0]
    if b"  " in title or b"\n" in title:
        title = b" ".join(title.split())
    while title.startswith(_QUOTED):
        title = title.partition(b'"')[2].removesuffix(b'"')
    return title.partition(b"] ")[2] if title.startswith(b"[patch") else title


def wanted(
    *,
    shas: Iterable[str],
    mails: Iterable[str],
    titles: Iterable[str],
    authors: Iterable[tuple[int, str]],
    marks: Iterable[str],
) -> Wanted:
    """What to look for, from names as they are stored."""
    return Wanted(
        shas=frozenset(sha[:DIGITS].lower().encode() for sha in shas),
        mails=frozenset(mail.rpartition("/")[2].lower().encode().strip(_AROUND) for mail in mails),
        titles=frozenset(" ".join(title.lower().split()).encode() for title in titles if title),
        authors=frozenset(f"{at} {email}".lower().encode() for at, email in authors if email),
        marks=tuple(mark.lower().encode() for mark in marks if mark),
    )
