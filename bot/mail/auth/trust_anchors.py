"""Whom we believe: servers, keys, and the domains that people sign with besides their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


def no_keys(name: str) -> str | None:
    """The key cache of who has none."""
    return None


@dataclass(frozen=True, slots=True)
class TrustAnchors:
    """`key` gives the DKIM record of a name ("selector._domainkey.domain"), None where it is not known; `signs` tells
    whether a domain is known to sign its mail; `warm` looks for the keys of mails beforehand. `signers`: other domains
    that an address signs with. `keyring`: a directory of developers' keys as patatt lays it out, "" for none.
    """

    servers: frozenset[str] = frozenset()
    signers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keyring: str = ""
    key: Callable[[str], str | None] = no_keys
    signs: Callable[[str], bool] = lambda domain: False
    warm: Callable[[Iterable[bytes], datetime], int] = lambda raws, now: 0

    def aligned(self, address: str, domain: str) -> bool:
        """Whether a domain may sign for an address: its own, one above or below it, or one that it is known to use.

        RFC 7489 section 3.1.1, relaxed; without a list of public suffixes, so a domain above needs two labels.
        """
        own, domain = address.rpartition("@")[2].lower(), domain.lower().rstrip(".")
        if domain in self.signers.get(address.lower(), ()):
            return True
        return own == domain or (own.endswith(f".{domain}") and domain.count(".") >= 1) or domain.endswith(f".{own}")
