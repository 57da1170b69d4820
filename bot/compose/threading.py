"""Where a mail of ours stands in a thread: below a patch, below our own report, or at the top. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.mail.links import find_links
from bot.mail.sanitising import is_message_id

MOST = 30  # ids in References: the first, and the last of the others (RFC 5322 section 3.6.4 sets no bound)
_PATCH_LINK = re.compile(r"https?://patch\.msgid\.link/", re.I)
_ABOUT = ("closes", "reported-by", "bug")


@dataclass(frozen=True, slots=True)
class ThreadPosition:
    """What a mail answers, "" for nothing, and its References, which end with that."""

    answers: str = ""
    references: tuple[str, ...] = ()


def below(message_id: str, references: Iterable[str] = ()) -> ThreadPosition:
    """The place of an answer to a mail that has these References itself."""
    if not is_message_id(message_id):
        return ThreadPosition()
    above = tuple(dict.fromkeys(each for each in references if is_message_id(each) and each != message_id))
    if len(above) >= MOST:
        above = (above[0], *above[-(MOST - 2) :])
    return ThreadPosition(message_id, (*above, message_id))


def patch_mail(trailers: Iterable[tuple[str, str]]) -> str:
    """The mail that carried a commit as a patch, by its `Link:`; "" where none tells.

    Maintainers' tools add it when they apply a patch, as the last one (Documentation/maintainer/configure-git.rst). A
    Link right below a `Reported-by:` or `Closes:` leads to the report of a bug, one with "[1]" to what the text quotes.
    """
    found = ""
    before = ""
    for tag, value in trailers:
        if tag.strip().lower() == "link":
            ids = [link.message_id for link in find_links(value) if link.message_id]
            if ids and _PATCH_LINK.match(value.strip()):
                return ids[0]
            if ids and before not in _ABOUT and not re.search(r"[\[#]\s*\d", value.partition(" ")[2]):
                found = ids[0]
        before = tag.strip().lower()
    return found
