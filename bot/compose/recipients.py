"""Who gets a report: the author, the people of the commit's trailers, and the lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.compose.mail import is_address
from bot.identity import Identity
from bot.replies.addresses import Address, parse_addresses

MAX_PEOPLE = 40
_PEOPLE = (
    "Signed-off-by",
    "Co-developed-by",
    "Reviewed-by",
    "Acked-by",
    "Tested-by",
    "Reported-by",
    "Suggested-by",
    "Cc",
)
# Addresses that a report must never reach: they take patches for release, or nobody reads them.
_NEVER = re.compile(r"stable@|no-?reply@|[^@]*@(?:[\w-]+\.)*noreply\.", re.I)


@dataclass(frozen=True, slots=True)
class Recipients:
    """To and Cc, each address once."""

    to: tuple[Address, ...]
    cc: tuple[Address, ...]


def recipients_of(author: Address, trailers: Iterable[tuple[str, str]], identity: Identity) -> Recipients:
    """The recipients by the commit alone. Lists stand first in Cc, so that a cap never cuts them off."""
    lists = [Address("", email) for email in (identity.list_address, *identity.lists) if email]
    people = [
        address
        for tag, value in trailers
        if tag.strip().title() in {each.title() for each in _PEOPLE}
        for address in parse_addresses(value)[:1]
    ]
    to = [author] if _welcome(author, identity) else []
    cc = [each for each in lists if is_address(each.email)]
    for person in people:
        if _welcome(person, identity) and person.email not in {each.email for each in (*to, *cc)}:
            cc.append(person)
    if not to:  # nobody to address: the lists must know all the same
        to, cc = cc[:1], cc[1:]
    return Recipients(tuple(to), tuple(cc[: MAX_PEOPLE + len(lists)]))


def _welcome(address: Address, identity: Identity) -> bool:
    own = identity.is_own(address.email)
    return is_address(address.email) and not own and not _NEVER.match(address.email)
