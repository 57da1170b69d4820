"""Thread our mail: as a reply to a patch, as a reply to our own report, or as a new thread. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.mail.links import find_links
from bot.mail.sanitising import is_message_id

MOST = 30  # ids in References: the first one and the last others (RFC 5322 section 3.6.4 sets no limit)
_PATCH_LINK = re.compile(r"https?://patch\.msgid\.link/", re.I)
_ABOUT = ("closes", "reported-by", "bug")


@dataclass(frozen=True, slots=True)
class ThreadPosition:
    """The Message-ID that a mail replies to, "" for none, and its References, which end with it."""

    in_reply_to: str = ""
    references: tuple[str, ...] = ()


def reply_position(message_id: str, references: Iterable[str] = ()) -> ThreadPosition:
    """Return the threading of a reply to a mail, which has these References itself."""
    if not is_message_id(message_id):
        return ThreadPosition()
    above = tuple(dict.fromkeys(each for each in references if is_message_id(each) and each != message_id))
    if len(above) >= MOST:
        above = (above[0], *above[-(MOST - 2) :])
    return ThreadPosition(message_id, (*above, message_id))


def patch_mail(trailers: Iterable[tuple[str, str]]) -> str:
    """Return the Message-ID of the patch that became a commit, from its `Link:`; "" if there is none.

    Maintainers' tools add it as the last Link when they apply a patch (Documentation/maintainer/configure-git.rst). A
    Link right after `Reported-by:` or `Closes:` points to a bug report, and one with "[1]" to a reference of the text.
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
