"""What a commit message names: the mails that it closes, the commits that it fixes, reverts or comes from. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.mail.addresses import parse_addresses
from bot.mail.identity import BotIdentity
from bot.mail.links import MailLink, find_links
from bot.mail.trailers import Trailer, find_trailers, fixed_commits

MAX_NAMED = 200  # per kind and message
# Documentation/process/stable-kernel-rules.rst ("commit <sha> upstream.", "[ Upstream commit <sha> ]"), and what
# `git cherry-pick -x` writes.
_UPSTREAM = re.compile(
    r"^(?:commit ([0-9a-f]{12,40}) upstream\.?|\[ ?upstream commit ([0-9a-f]{12,40}) ?\]"
    r"|\(cherry[ -]picked from commit ([0-9a-f]{12,40})\))\s*$",
    re.MULTILINE | re.IGNORECASE,
)
# What `git revert` writes, and what people write. Only at the start of a line, or below a revert title, does it mean
# that this commit reverts all of the other one.
_REVERTS = re.compile(
    r"(?P<whole>^This\s+)?\breverts\s+(?:the\s+)?commits?:?\s+(?P<shas>[0-9a-f]{7,40}\b"
    r"(?:(?:\s*,|\s+and)\s+(?:commit\s+)?[0-9a-f]{7,40}\b){0,50})",
    re.IGNORECASE | re.MULTILINE,
)
_LISTED = re.compile(r"\b[0-9a-f]{7,40}\b", re.IGNORECASE)
_REVERT_TITLE = re.compile(r'(?:revert|reapply) "(.*)"\Z', re.IGNORECASE)
_ROWS_OF_DASHES = re.compile(r"^--+\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MessageReferences:
    """What a message names, each with the quoted words. Shas are in lower case and may be abbreviated."""

    mails: tuple[tuple[str, str], ...] = ()  # Message-IDs linked by Closes: and Link:
    pages: tuple[tuple[str, str], ...] = ()  # our own pages linked there (a sha or a tag), and the tags in Reported-by:
    fixes: tuple[tuple[str, str], ...] = ()
    reverts: tuple[tuple[str, str], ...] = ()
    perhaps_reverts: tuple[tuple[str, str], ...] = ()  # partly, or another commit does
    reverted_title: str = ""
    upstream: tuple[tuple[str, str], ...] = ()  # the commits that it was taken from
    reporters: frozenset[str] = frozenset()


def find_references(message: str, identity: BotIdentity) -> MessageReferences:
    """Parse a message. Trailers count anywhere, folded or not; only links to our pages and to lore count."""
    # Unlike a patch, a commit message has no notes to cut off below a row of dashes.
    trailers = find_trailers(_ROWS_OF_DASHES.sub("", message).split("\n"))
    reporters = [each for each in trailers if each.key.startswith("Reported-")]
    addresses = [(_line(each), address.email) for each in reporters for address in parse_addresses(each.value)]
    linking = [each for each in trailers if each.key in ("Closes", "Link")]
    links = [(link, _line(each)) for each in linking for link in _links(each, identity)]
    tags = [(tag, line) for line, email in addresses if (tag := identity.tag_in(email))]
    title = " ".join(message.partition("\n\n")[0].split())
    reverted = _REVERT_TITLE.match(title)
    mentioned = [
        (sha.lower(), " ".join(found[0].split()), found["whole"] or reverted)
        for found in _REVERTS.finditer(message)
        for sha in _LISTED.findall(found["shas"])
    ]
    return MessageReferences(
        mails=_unique((link.message_id, line) for link, line in links if link.message_id),
        pages=_unique([*((link.page, line) for link, line in links if link.page), *tags]),
        fixes=_unique((sha, _line(each)) for each in trailers for sha in fixed_commits([each])),
        reverts=_unique((sha, quote) for sha, quote, is_complete in mentioned if is_complete),
        perhaps_reverts=_unique((sha, quote) for sha, quote, is_complete in mentioned if not is_complete),
        reverted_title=reverted[1] if reverted else "",
        upstream=_unique(
            (found[found.lastindex or 1].lower(), found[0].strip()) for found in _UPSTREAM.finditer(message)
        ),
        reporters=frozenset(email for _, email in addresses),
    )


def _links(trailer: Trailer, identity: BotIdentity) -> Iterator[MailLink]:
    """Yield the links in a trailer, except those that are part of another site's URL."""
    for word in trailer.value.split():
        for link in find_links(word, identity.base_url):
            if word.lstrip("<([").startswith(link.url):
                yield link


def _line(trailer: Trailer) -> str:
    return f"{trailer.key}: {trailer.value}"[:500]


def _unique(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return each name once, with the first words for it; at most MAX_NAMED."""
    first: dict[str, str] = {}
    for name, quote in pairs:
        if len(first) < MAX_NAMED:
            first.setdefault(name, quote)
    return tuple(first.items())
