"""The writer behind a From that a mailing list has rewritten: "Dana via list <list@host>" (DMARC munging by Mailman and
Google Groups). Nothing proves such a mail, since its From is not the writer's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.mail import headers
from bot.mail.addresses import Address, parse_addresses

_VIA = re.compile(r"['\"]?(.{1,200}?)['\"]?\s+via\s+.{1,200}", re.I)
_ORIGINAL = ("x-original-from", "x-mailman-original-from", "x-original-sender")


def behind_list(author: Address, all_of: Callable[[str], str]) -> Address:
    """Return the writer, from the headers that lists leave; the author as given if From is not rewritten.

    `all_of` returns the values of a header by its lowercase name. Of Reply-To, which may name the list as well, the
    address counts that is not From's and not the list's.
    """
    via = _VIA.fullmatch(headers.decode(author.name))
    if not via:
        return author
    own = {author.email, *(each.email for each in parse_addresses(all_of("list-post").replace("mailto:", "")))}
    for name in (*_ORIGINAL, "reply-to"):
        found = [each for each in parse_addresses(all_of(name)) if each.email not in own]
        if found:
            return Address(headers.decode(found[0].name) or via[1], found[0].email)
    return author
