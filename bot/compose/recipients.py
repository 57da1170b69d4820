"""Who gets a report, and why: the author, the people of the commit, its maintainers, and the lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bot.compose.conventions import DEFAULT, Conventions
from bot.git.maintainers import Duty, Responsible
from bot.mail.addresses import Address, parse_addresses
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import is_address

MOST_LISTS = 20
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
_TAGS = {each.lower(): each for each in _PEOPLE}
# Addresses that a report must never reach: they take patches for release or reports under embargo, or are nobody's.
_NEVER = re.compile(
    r"stable(?:-commits)?@|security@|(?:linux-)?distros@|no-?reply@|do-?not-?reply@|patchwork-bot|syzbot[+@]|tip-bot2?@"
    r"|[^@]*@(?:[\w-]+\.)*(?:noreply\.[\w.-]+|localhost|localdomain|local|invalid|\(none\))\Z|[^@]*@[^.]*\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """An address, and why it is told."""

    address: Address
    why: str
    is_list: bool = False

    @property
    def email(self) -> str:
        return self.address.email


@dataclass(frozen=True, slots=True)
class Recipients:
    """To and Cc, each address once; and who was left out, with the reason."""

    to: tuple[Recipient, ...]
    cc: tuple[Recipient, ...]
    left_out: tuple[Recipient, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitPeople:
    """The people of a commit. `responsible`: whom MAINTAINERS names for its files."""

    author: Address
    trailers: tuple[tuple[str, str], ...] = ()
    responsible: tuple[Responsible, ...] = ()
    tree: str = ""
    role: str = ""


def recipients_of(
    commit: CommitPeople,
    identity: BotIdentity,
    conventions: Conventions = DEFAULT,
    unwelcome: Mapping[str, str] | None = None,
) -> Recipients:
    """Who is told of a commit. `unwelcome`: addresses that get no mail of ours, with the reason.

    A cap keeps lists and maintainers and drops the others. Where no author can be told, the first list is addressed.
    """
    lists = list(_lists(commit, identity, conventions))
    people = [*_responsible(commit, Duty.MAINTAINER), *_responsible(commit, Duty.REVIEWER), *_of_trailers(commit)]
    kept: dict[str, Recipient] = {}
    left_out: dict[str, Recipient] = {}
    persons: set[str] = set()  # one who has several addresses is told once
    for each in (Recipient(commit.author, "the author"), *lists, *people):
        aliases = identity.aliases.of(each.email)
        if each.email in kept or each.email in left_out or aliases & persons:
            continue
        why = why_not(each.email, identity, unwelcome or {})
        if why := why or _no_room(each, kept.values(), conventions.most_people):
            left_out[each.email] = replace(each, why=why)
            continue
        kept[each.email] = each
        persons |= aliases
    everybody = tuple(kept.values())
    return Recipients(everybody[:1], everybody[1:], tuple(left_out.values()))


def _lists(commit: CommitPeople, identity: BotIdentity, conventions: Conventions) -> Iterator[Recipient]:
    """Our own list first: its archive proves what went out."""
    told = [
        (identity.list_address, "our own list"),
        *((each, "a list of ours") for each in identity.lists),
        (conventions.lkml, "every report goes there"),
        *((each, f"a list for {name}") for name in _names(commit) for each in conventions.tree_lists.get(name, ())),
    ]
    yield from (Recipient(Address("", email), why, is_list=True) for email, why in told if email)
    yield from _responsible(commit, Duty.LIST)
    if conventions.regzbot:
        yield Recipient(Address("", conventions.regzbot), "regzbot follows it", is_list=True)


def _names(commit: CommitPeople) -> Iterable[str]:
    """What a tree may be called where lists are set for it."""
    return dict.fromkeys(each for each in (commit.tree, commit.role) if each)


def _responsible(commit: CommitPeople, duty: Duty) -> Iterator[Recipient]:
    is_list = duty is Duty.LIST
    return (Recipient(each.address, str(each), is_list) for each in commit.responsible if each.duty is duty)


def _of_trailers(commit: CommitPeople) -> Iterator[Recipient]:
    for tag, value in commit.trailers:
        if known := _TAGS.get(tag.strip().lower()):
            yield from (Recipient(address, f"{known} in the commit") for address in parse_addresses(value)[:1])


def is_forbidden(email: str) -> bool:
    """Whether a report must never reach an address, whoever names it."""
    return _NEVER.match(email) is not None


def why_not(email: str, identity: BotIdentity, unwelcome: Mapping[str, str]) -> str:
    """Why an address is never told, or "". Who wants no mail wants none under his other addresses."""
    if not is_address(email):
        return "no address that a server takes"
    if identity.is_own(email) or email in identity.robots:
        return "a robot, or we ourselves"
    if is_forbidden(email):
        return "a report must never reach it"
    return next((unwelcome[each] for each in sorted(identity.aliases.of(email)) if each in unwelcome), "")


def _no_room(each: Recipient, kept: Collection[Recipient], most: int) -> str:
    """Why there is no room for one more, or ""."""
    if each.is_list and sum(other.is_list for other in kept) >= MOST_LISTS:
        return f"more than {MOST_LISTS} lists"
    return f"more than {most} recipients" if len(kept) >= most else ""
