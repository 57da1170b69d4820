"""Links to mail (lore and lkml URLs) and to our own report pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

# https://lore.kernel.org/<list>/<id>/, /r/<id>, lkml.kernel.org/r/<id>, (patch.)msgid.link/<id>; the id may be
# percent-encoded, and its own slashes are part of it.
_LORE = re.compile(
    r"(?<![\w/=])(?:https?://)?(?:(?:www\.)?lore\.kernel\.org/(?:[\w.+-]{1,80}/)|lkml\.kernel\.org/r/|(?:patch\.)?msgid\.link/"
    r"|lkml\.kernel\.org/|lore\.kernel\.org/)(<?[^\s<>\"'\])}）`，。]{3,400})",
    re.I,
)
_VIEW = re.compile(r"/(?:raw|t\.mbox\.gz|t\.atom|t|T)?/?\Z")
_AFTER = ".,;:!*。，、_`"
MAX_LINKS = 200


@dataclass(frozen=True, slots=True)
class MailLink:
    """A link as written, and its target: a Message-ID, or the sha or tag of a report page."""

    url: str
    message_id: str = ""
    page: str = ""


def find_links(text: str, base_url: str = "") -> tuple[MailLink, ...]:
    """Return the links in a text that lead to a mail or a report page; other links are ignored."""
    found = [MailLink(match[0].rstrip(_AFTER), message_id=message_id) for match, message_id in _mails(text)]
    if base_url:
        bare = re.escape(base_url.partition("://")[2])
        pages = re.finditer(rf"(?<![\w/])https?://{bare}/report/([0-9a-f]{{7,64}})/?(?![\w/])", text, re.I)
        found.extend(MailLink(match[0], page=match[1].lower()) for match in pages)
    return tuple(dict.fromkeys(found))[:MAX_LINKS]


def _mails(text: str) -> Iterable[tuple[re.Match[str], str]]:
    for match in _LORE.finditer(text):
        path = re.split(r"[?#]", match[1], maxsplit=1)[0]
        message_id = _VIEW.sub("", unquote(path).rstrip(_AFTER)).strip("<>/ ")
        if "@" in message_id and " " not in message_id:
            yield match, message_id
