"""The recipients of a report, each with the reason: author, people of the commit, maintainers, lists.

The author comes first, then the lists, our own before others, since its archive proves what was sent; then whom
MAINTAINERS names, and the people in the trailers. A person with several addresses gets one mail, and an opt-out
covers all of a person's addresses.

Those left out are kept with the reason: an invalid address, a robot, one that must never get a report, an opt-out, or
a limit. Above the maximum, those who come first in this order are kept. If the author can't be mailed, To is the
first list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bot.compose.conventions import DEFAULT, Conventions
from bot.git.maintainers import Duty, Responsible
from bot.mail.addresses import Address, parse_addresses
from bot.mail.message import is_address
from bot.mail.settings import BotSettings

MOST_LISTS = 20
UNREACHABLE = ("invalid address", "must never get a report", "bounces")  # how the reasons for an exclusion begin
_PEOPLE = "Signed-off-by Co-developed-by Reviewed-by Acked-by Tested-by Reported-by Suggested-by Cc"
_TAGS = {tag.lower(): tag for tag in _PEOPLE.split()}
# Addresses that must never get a report: for stable patches, for embargoed reports, robots, and ones nobody reads.
_NEVER = re.compile(
    r"stable(?:-commits)?@|security@|(?:linux-)?distros@|no-?reply@|do-?not-?reply@|patchwork-bot|syzbot[+@]|tip-bot2?@"
    r"|[^@]*@(?:[\w-]+\.)*(?:noreply\.[\w.-]+|localhost|localdomain|local|invalid|\(none\))\Z|[^@]*@[^.]*\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """An address, and why it gets the mail."""

    address: Address
    why: str
    is_list: bool = False
    is_maintainer: bool = False

    @property
    def email(self) -> str:
        return self.address.email


@dataclass(frozen=True, slots=True)
class Recipients:
    """To and Cc, each address once, and those left out with the reason."""

    to: tuple[Recipient, ...]
    cc: tuple[Recipient, ...]
    left_out: tuple[Recipient, ...] = ()

    @property
    def lists(self) -> list[str]:
        return [recipient.email for recipient in (*self.to, *self.cc) if recipient.is_list]

    @property
    def maintainers(self) -> list[str]:
        return [recipient.email for recipient in (*self.to, *self.cc) if recipient.is_maintainer]


@dataclass(frozen=True, slots=True)
class CommitPeople:
    """The people of a commit. `responsible`: whom MAINTAINERS lists for its files."""

    author: Address
    trailers: tuple[tuple[str, str], ...] = ()
    responsible: tuple[Responsible, ...] = ()
    tree: str = ""
    role: str = ""


def recipients_of(
    commit: CommitPeople,
    settings: BotSettings,
    conventions: Conventions = DEFAULT,
    excluded: Mapping[str, str] | None = None,
) -> Recipients:
    """Return the recipients of a report. `excluded`: addresses that must get no mail from us, with the reason."""
    candidates = _candidates(commit, settings, conventions)
    kept, left_out = choose(candidates, settings, excluded or {}, conventions.most_people)
    return Recipients(kept[:1], kept[1:], left_out)


def choose(
    candidates: Iterable[Recipient], settings: BotSettings, excluded: Mapping[str, str], most: int
) -> tuple[tuple[Recipient, ...], tuple[Recipient, ...]]:
    """Return who of the candidates gets a mail, the first `most` at best, and who is left out, each with the reason."""
    kept: dict[str, Recipient] = {}
    left_out: dict[str, Recipient] = {}
    persons: set[str] = set()  # a person with several addresses gets one mail
    for recipient in candidates:
        aliases = settings.aliases.of(recipient.email)
        if recipient.email in kept or recipient.email in left_out or aliases & persons:
            continue
        why = exclusion_reason(recipient.email, settings, excluded)
        if not why and recipient.is_list and sum(other.is_list for other in kept.values()) >= MOST_LISTS:
            why = f"more than {MOST_LISTS} lists"
        if not why and len(kept) >= most:
            why = f"more than {most} recipients"
        if why:
            left_out[recipient.email] = replace(recipient, why=why)
        else:
            kept[recipient.email] = recipient
            persons |= aliases
    return tuple(kept.values()), tuple(left_out.values())


def _candidates(commit: CommitPeople, settings: BotSettings, conventions: Conventions) -> Iterator[Recipient]:
    """Yield the author, the lists, our own first since its archive proves what was sent, and the people."""
    yield Recipient(commit.author, "author")
    names = dict.fromkeys(name for name in (commit.tree, commit.role) if name)
    lists = [
        (settings.list_address, "our own list"),
        *((address, "one of our lists") for address in settings.lists),
        (conventions.lkml, "gets every report"),
        *((address, f"list for {name}") for name in names for address in conventions.tree_lists.get(name, ())),
    ]
    yield from (Recipient(Address("", email), why, is_list=True) for email, why in lists if email)
    of_duty: dict[Duty, list[Recipient]] = {duty: [] for duty in Duty}
    for entry in commit.responsible:
        kind = {"is_list": entry.duty is Duty.LIST, "is_maintainer": entry.duty is Duty.MAINTAINER}
        of_duty[entry.duty].append(Recipient(entry.address, str(entry), **kind))
    yield from of_duty[Duty.LIST]
    if conventions.regzbot:
        yield Recipient(Address("", conventions.regzbot), "read by regzbot", is_list=True)
    yield from (*of_duty[Duty.MAINTAINER], *of_duty[Duty.REVIEWER])
    for tag, value in commit.trailers:
        if trailer := _TAGS.get(tag.strip().lower()):
            yield from (Recipient(address, f"{trailer} in the commit") for address in parse_addresses(value)[:1])


def is_forbidden(email: str) -> bool:
    """Return whether an address must never get a report, no matter who names it."""
    return _NEVER.match(email) is not None


def exclusion_reason(email: str, settings: BotSettings, excluded: Mapping[str, str]) -> str:
    """Return why an address gets no mail, or "". An opt-out covers all of a person's addresses."""
    if not is_address(email):
        return "invalid address"
    if settings.is_own(email) or email in settings.robots:
        return "a robot, or the bot itself"
    if is_forbidden(email):
        return "must never get a report"
    return next((excluded[alias] for alias in sorted(settings.aliases.of(email)) if alias in excluded), "")
