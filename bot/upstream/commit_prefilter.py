"""Prefilter for a million commits: those whose title, author or names may relate to a report. Pure.

Prefers false positives, at some microseconds per commit; references.py and matching.py decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

DIGITS = 7  # of a sha: the shortest abbreviation in use
_HOSTS = (b"kernel.org/", b"msgid.link/")  # the ends of the hosts in links to mail (bot/mail/links.py)
_BEFORE_SHA = (b"ixes:", b"ommit")
_MAX_PATH = 500  # bytes of a path
_PUNCTUATION = b".,;:!*()[]{}'\"<>"
_QUOTED = (b'revert "', b'reapply "')
_ODD_BEGINNINGS = frozenset(
    {b"r", b"[", b"\n", b" ", b"\t"}
)  # of reverts, titles with tags, messages with leading white space


@dataclass(frozen=True, slots=True)
class CommitPrefilter:
    """What a commit may name, in lower case. `mails`: the part of Message-IDs after the last slash."""

    shas: frozenset[bytes]
    mails: frozenset[bytes]
    titles: frozenset[bytes]
    authors: frozenset[bytes]  # "seconds address", as the log writes it
    own_identifiers: tuple[bytes, ...]  # the local part of our tagged addresses, and the URL of our pages

    def __call__(self, author: bytes, message: bytes) -> bool:
        """Whether a commit with this author line and this message may relate to a report."""
        low = message.lower()
        end = low.find(b"\n")
        if low[:end] in self.titles or author.lower() in self.authors or self._names_something(low):
            return True
        if low[:1] in _ODD_BEGINNINGS or low[end + 1 : end + 2] > b"\n" or b"  " in low[:end]:
            # Every revert passes: it may revert a fix found in this same walk.
            return low.startswith(_QUOTED) or _title(low) in self.titles
        return False

    def _names_something(self, low: bytes) -> bool:
        for identifier in self.own_identifiers:
            if identifier in low:
                return True
        for word in _BEFORE_SHA:
            if word in low:
                if b"reverts" in low:
                    return True
                for rest in low.split(word)[1:]:
                    if _sha(rest) in self.shas:
                        return True
        for host in _HOSTS:
            at = low.find(host)
            while at >= 0:
                at += len(host)
                end = low.find(b"\n", at, at + _MAX_PATH)
                if self._names_our_mail(low[at : end if end >= 0 else at + _MAX_PATH]):
                    return True
                at = low.find(host, at)
        return False

    def _names_our_mail(self, path: bytes) -> bool:
        """Whether the text after the host of a link, to the end of its line, may name one of our mails."""
        path = path.strip()
        if b"%" in path or b"#" in path or b"?" in path or b" " in path:
            path = path.split(b" ", 1)[0].partition(b"#")[0].partition(b"?")[0]
            path = unquote_to_bytes(path)
        if b"@" not in path:
            return path.endswith(b"/")  # its Message-ID may be on the next line
        return not self.mails.isdisjoint([piece.strip(_PUNCTUATION) for piece in path.split(b"/")])


def _sha(rest: bytes) -> bytes:
    """Return the first digits of a sha after "Fixes:" or "commit", skipping another "commit" or a colon."""
    return rest[:30].lstrip(b"s: \t\n").removeprefix(b"commit ").lstrip()[:DIGITS]


def _title(low: bytes) -> bytes:
    """Return the title on one line, without "[PATCH …]"."""
    title = b" ".join(low.lstrip(b"\n").partition(b"\n\n")[0].split())
    return title.partition(b"] ")[2] if title.startswith(b"[patch") else title


def build_prefilter(
    *,
    shas: Iterable[str],
    mails: Iterable[str],
    titles: Iterable[str],
    authors: Iterable[tuple[int, str]],
    own_identifiers: Iterable[str],
) -> CommitPrefilter:
    """Return the prefilter for names as they are stored."""
    return CommitPrefilter(
        shas=frozenset(sha[:DIGITS].lower().encode() for sha in shas),
        mails=frozenset(mail.rpartition("/")[2].lower().encode().strip(_PUNCTUATION) for mail in mails),
        titles=frozenset(" ".join(title.lower().split()).encode() for title in titles if title),
        authors=frozenset(f"{at} {email}".lower().encode() for at, email in authors if email),
        own_identifiers=tuple(identifier.lower().encode() for identifier in own_identifiers if identifier),
    )
