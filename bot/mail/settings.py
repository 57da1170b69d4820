"""The bot identity on the lists: its addresses, its name, and the tags by which mail refers to reports. Pure."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field

from bot.mail.auth.trust_anchors import TrustAnchors
from bot.mail.people.mailmap import Aliases

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
    trust_policy: str = "verified"
    trust_anchors: TrustAnchors = field(default_factory=TrustAnchors)
    aliases: Aliases = field(default_factory=Aliases)
    secret: bytes = field(default=b"", repr=False)
    rules_off: frozenset[str] = frozenset()  # names of rules for plain English

    def tagged(self, tag: str) -> str:
        """Return the address of a report: perfbot+7d3e91c0a45b28f6@bot.example.org."""
        local, _, domain = self.address.partition("@")
        return f"{local}+{tag}@{domain}"

    def return_path(self, tag: str, message_id: str) -> str:
        """Return the envelope sender of one mail: perfbot+7d3e91c0a45b28f6.b1c2d3e4f5a6@bot.example.org. Only those
        who got the mail can know it, since its last part is made with a secret.
        """
        mark = hmac.new(self.secret, message_id.encode("utf-8", "replace"), "sha256").hexdigest()
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
        found = _TAG.fullmatch(tag) if ours else None
        return found[1] if found else ""

    def help(self, name: str) -> str:
        """Return the URL of a help page for recipients of mail."""
        return f"{self.base_url}/help/{name}/"

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
