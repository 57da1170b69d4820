"""What the bot knows of itself and of others: its addresses, trust anchors, people's aliases. Pure.

`BotSettings` has the bot's addresses and name on the lists, and the tags by which mail refers to reports: every
report has an address, and every mail a return path that only those who got the mail can know.

*Trust anchors* are the servers, the keys, and the other domains that people sign with. *Aliases* are the addresses
and names of one person, from a file in git's mailmap format (gitmailmap(5)).
"""

import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

# --- Trust anchors ---


@lru_cache(maxsize=4096)
def is_registered(domain: str) -> bool:
    """Whether a domain is registered, or below one that is: whether it is not a public suffix, by the list of those."""
    try:
        ascii_domain = domain.encode("ascii")  # in a header a domain is ASCII, as registered
        return bool(_suffixes().privatesuffix(ascii_domain.decode("idna") if b"xn--" in ascii_domain else domain))
    except UnicodeError:
        return False


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_encoded_idn=False)  # encoding its 10,000 names takes 150 ms


@dataclass(frozen=True, slots=True)
class TrustAnchors:
    """`key` returns the DKIM record of a name ("selector._domainkey.domain"), None if it is unknown; `signs` returns
    whether a domain is known to sign its mail; `warm` fetches the keys of mails beforehand. `signers`: other domains
    that an address signs with. `keyring`: a directory of developers' keys in patatt's layout, "" for none. `lists`:
    addresses of lists beside those that their hosts tell; nobody writes as a list.
    """

    servers: frozenset[str] = frozenset()
    signers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keyring: str = ""
    key: Callable[[str], str | None] = lambda name: None
    signs: Callable[[str], bool] = lambda domain: False
    warm: Callable[[Iterable[bytes], datetime], int] = lambda raws, now: 0
    lists: frozenset[str] = frozenset()

    def aligned(self, address: str, domain: str) -> bool:
        """Whether a domain may sign for an address: the address's own, one above it, or one in `signers`.

        Stricter than the relaxed alignment of RFC 7489 section 3.1.1, by which one below or beside it would do, too: a
        list's server often is that (vger.kernel.org), and signs whatever is sent to the list in whoever's name. A
        public suffix ("co.uk", "github.io") signs for nobody below it.
        """
        own, domain = address.rpartition("@")[2].lower(), domain.lower().rstrip(".")
        if domain in self.signers.get(address.lower(), ()):
            return True
        return bool(own) and (own == domain or (own.endswith(f".{domain}") and is_registered(domain)))


# --- Aliases ---

# Dana Brook <dana@dev.example> <dana@home.example>
# Dana Brook <dana@dev.example> D. Brook <db@old.example>
MAX_LINES = 100_000
_LINE = re.compile(r"([^<>#]{0,200}?)\s*<([^<>\s]{1,300})>\s*(?:([^<>#]{0,200}?)\s*<([^<>\s]{1,300})>)?\s*(?:#.*)?\Z")


@dataclass(frozen=True, slots=True)
class Aliases:
    """Maps each alias to its proper address, and each proper address to its aliases; all in lower case."""

    proper: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, address: str) -> frozenset[str]:
        """Return every address of the same person, including this one."""
        proper = self.proper.get(address, address)
        return self.others.get(proper, frozenset()) | {proper, address}


def read_mailmap(text: str) -> Aliases:
    """Parse a mailmap; invalid lines are skipped, as git does."""
    proper: dict[str, str] = {}
    for line in text.split("\n")[:MAX_LINES]:
        match = _LINE.match(line.strip())
        if match and match[4] and match[4].lower() != match[2].lower():
            proper[match[4].lower()] = match[2].lower()
    groups: dict[str, set[str]] = {}
    for other, address in proper.items():
        groups.setdefault(address, set()).add(other)
    return Aliases(proper, {address: frozenset(others) for address, others in groups.items()})


# --- The bot ---

_TAG = re.compile(r"([0-9a-f]{16})(?:\.[0-9a-f]{12})?")


@dataclass(frozen=True, slots=True)
class BotSettings:
    """The bot's own addresses in lower case, the robots whose reports it follows, and its operators."""

    address: str = "perfbot@localhost"
    name: str = "Perfwork"
    list_address: str = ""
    lists: tuple[str, ...] = ()
    lkml: str = ""  # the public list that every report goes to
    answer_on: frozenset[str] = frozenset()  # the lists on which a person who reports a regression gets an answer
    prefix: str = "#lkp"
    base_url: str = "http://127.0.0.1:8000"
    robots: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    trust_policy: str = "verified"
    trust_anchors: TrustAnchors = field(default_factory=TrustAnchors)
    aliases: Aliases = field(default_factory=Aliases)
    secret: bytes = field(default=b"", repr=False)
    rules_off: frozenset[str] = frozenset()  # names of rules for plain English

    def tagged(self, tag: str) -> str:
        """Return the address of a report: perfbot+7d3e91c0a45b28f6@bot.example.org."""
        local, _, domain = self.address.partition("@")
        return f"{local}+{tag}@{domain}"

    def return_path(self, tag: str, message_id: str, recipient: str = "") -> str:
        """Return the envelope sender of one mail: perfbot+7d3e91c0a45b28f6.b1c2d3e4f5a6@bot.example.org. Only those
        who got the mail can know it, since its last part is made with a secret. With a recipient: of an envelope to
        that one alone, who alone can know it.
        """
        words = f"{message_id} {recipient.lower()}" if recipient else message_id
        mark = hmac.new(self.secret, words.encode("utf-8", "replace"), "sha256").hexdigest()
        return self.tagged(f"{tag}.{mark[:12]}")

    def mark_in(self, address: str) -> str:
        """Return the part of one of our return paths that identifies the mail, else ""."""
        return address.lower().partition("@")[0].rpartition("+")[2].partition(".")[2] if self.tag_in(address) else ""

    def tag_in(self, address: str) -> str:
        """Return the report tag in one of our own addresses, else ""; a tag at another domain does not count."""
        local, _, domain = self.address.partition("@")
        theirs, _, their_domain = address.lower().rpartition("@")
        name, plus, tag = theirs.partition("+")
        ours = bool(plus) and name == local and their_domain == domain
        match = _TAG.fullmatch(tag) if ours else None
        return match[1] if match else ""

    @property
    def help(self) -> str:
        """The URL of the help for whoever gets our mail: how to answer it."""
        return f"{self.base_url}/help/answering/"

    def is_own(self, address: str) -> bool:
        """Whether the address is ours, with or without a tag."""
        local, _, domain = address.lower().rpartition("@")
        return f"{local.partition('+')[0]}@{domain}" == self.address

    def speaks_for_lab(self, address: str) -> bool:
        """Whether the address is ours, a followed robot's, or an operator's."""
        address = address.lower()
        return self.is_own(address) or address in self.robots or address in self.operators

    def page(self, ref: str) -> str:
        """Return the URL of a report, by its sha or tag."""
        return f"{self.base_url}/report/{ref}/"
