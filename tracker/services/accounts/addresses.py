"""Which addresses are personal, that is, read by one person only."""

from __future__ import annotations

import re

from django.conf import settings

# ASCII only, so that databases and mail servers agree on which addresses are equal; nothing that a header could take
# for an encoded word (RFC 2047).
_ADDRESS = re.compile(r"[\w.+\-!#$%&'*/?^`{|}~]+@[\w-]+(\.[\w-]+)+", re.ASCII)
# Hosts of public mailing lists, which everybody can read.
_OF_LISTS = re.compile(
    r"@(?:(?:.+\.)?(?:vger\.kernel\.org|kvack\.org|googlegroups\.com|sourceforge\.net)\Z|.*\blists?\b)"
)


def is_of_a_person(address: str) -> bool:
    """Return whether a lowercase address can be personal: well-formed, not a list, and not our own."""
    if not _ADDRESS.fullmatch(address) or address != address.lower():
        return False
    return not (_OF_LISTS.search(address) or address in _ours())


def _ours() -> set[str]:
    """Return the addresses of the bot, the robots and the lists in the settings."""
    own = [settings.PERFWORK_BOT_ADDRESS, settings.PERFWORK_LIST_ADDRESS, settings.PERFWORK_LKML]
    own += [
        *settings.PERFWORK_LISTS,
        *settings.PERFWORK_BULLETINS,
        *settings.PERFWORK_ROBOTS,
        settings.PERFWORK_REGZBOT,
    ]
    own += [address for addresses in settings.PERFWORK_TREE_LISTS.values() for address in addresses.split("+")]
    return {address.strip().lower() for address in own}
