"""Who we are on the lists: addresses, names, and the marks by which our reports are known. Pure."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field

from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.mailmap import Aliases

_TAG = re.compile(r"([0-9a-f]{16})(?:\.[0-9a-f]{12})?")


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot's own addresses in lower case, the robots whose reports it follows, and its operators."""

    address: str = "perfbot@localhost"
    name: str = "Perfwork"
    list_address: str = ""
    lists: tuple[str, ...] = ()
    prefix: str = "#lkp"
    base_url: str = "http://127.0.0.1:8000"
    robots: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    trust: str = "verified"
    believed: TrustAnchors = field(default_factory=TrustAnchors)
    aliases: Aliases = field(default_factory=Aliases)
    secret: bytes = field(default=b"", repr=False)
    rules_off: frozenset[str] = frozenset()  # of those that read plain English

    def tagged(self, tag: str) -> str:
        """The address that names a report: perfbot+7d3e91c0a45b28f6@bot.example.org."""
        local, _, domain = self.address.partition("@")
        return f"{local}+{tag}@{domain}"

    def return_path(self, tag: str, message_id: str) -> str:
        """Where one mail comes back to, if it does: perfbot+7d3e91c0a45b28f6.b1c2d3e4f5a6@bot.example.org. Only who got
        it can know that, since its last part is made with a secret.
        """
        mark = hmac.new(self.secret, message_id.encode("utf-8", "replace"), "sha256").hexdigest()
        return self.tagged(f"{tag}.{mark[:12]}")

    def mark_in(self, address: str) -> str:
        """The mark of one mail in a return path of ours, else ""."""
        return address.lower().partition("@")[0].rpartition("+")[2].partition(".")[2] if self.tag_in(address) else ""

    def tag_in(self, address: str) -> str:
        """The report tag in one of our own addresses, else ""; the same tag on a foreign domain is none."""
        local, _, domain = self.address.partition("@")
        theirs, _, their_domain = address.lower().rpartition("@")
        name, plus, tag = theirs.partition("+")
        ours = bool(plus) and name == local and their_domain == domain
        found = _TAG.fullmatch(tag) if ours else None
        return found[1] if found else ""

    def help(self, name: str) -> str:
        """A page for people who come from a mail."""
        return f"{self.base_url}/help/{name}/"

    def is_own(self, address: str) -> bool:
        """Whether a mail from this address is ours."""
        local, _, domain = address.lower().rpartition("@")
        return f"{local.partition('+')[0]}@{domain}" == self.address

    def speaks_for_lab(self, address: str) -> bool:
        """Whether an address is ours, a robot's that we follow, or an operator's."""
        address = address.lower()
        return self.is_own(address) or address in self.robots or address in self.operators

    def page(self, ref: str) -> str:
        """The page of a report, by its sha or tag."""
        return f"{self.base_url}/report/{ref}/"
