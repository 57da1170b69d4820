"""Which addresses belong to one person, who alone reads what is sent there."""

from __future__ import annotations

import re

from django.conf import settings

# ASCII alone, so that no two spellings are one to a database and two to a mail server; and nothing that a header could
# take for an encoded word (RFC 2047).
_ADDRESS = re.compile(r"[\w.+\-!#$%&'*/?^`{|}~]+@[\w-]+(\.[\w-]+)+", re.ASCII)
# Where lists of this trade live: what is sent there, everybody reads.
_OF_LISTS = re.compile(
    r"@(?:(?:.+\.)?(?:vger\.kernel\.org|kvack\.org|googlegroups\.com|sourceforge\.net)\Z|.*\blists?\b)"
)


def is_of_a_person(address: str) -> bool:
    """Whether it can be one person's, in lower case: no list, nothing of our own, nothing odd."""
    if not _ADDRESS.fullmatch(address) or address != address.lower():
        return False
    return not (_OF_LISTS.search(address) or address in _ours())


def _ours() -> set[str]:
    """The bot, robots, and the lists that the settings name."""
    told = [settings.PERFWORK_BOT_ADDRESS, settings.PERFWORK_LIST_ADDRESS, settings.PERFWORK_LKML]
    told += [
        *settings.PERFWORK_LISTS,
        *settings.PERFWORK_BULLETINS,
        *settings.PERFWORK_ROBOTS,
        settings.PERFWORK_REGZBOT,
    ]
    told += [address for addresses in settings.PERFWORK_TREE_LISTS.values() for address in addresses.split("+")]
    return {address.strip().lower() for address in told}
