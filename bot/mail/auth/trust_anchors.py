"""Trust anchors: servers, keys, and the other domains that people sign with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


def no_keys(name: str) -> str | None:
    """The key lookup without any keys."""
    return None


@dataclass(frozen=True, slots=True)
class TrustAnchors:
    """`key` returns the DKIM record of a name ("selector._domainkey.domain"), None if it is unknown; `signs` returns
    whether a domain is known to sign its mail; `warm` fetches the keys of mails beforehand. `signers`: other domains
    that an address signs with. `keyring`: a directory of developers' keys in patatt's layout, "" for none.
    """

    servers: frozenset[str] = frozenset()
    signers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keyring: str = ""
    key: Callable[[str], str | None] = no_keys
    signs: Callable[[str], bool] = lambda domain: False
    warm: Callable[[Iterable[bytes], datetime], int] = lambda raws, now: 0

    def aligned(self, address: str, domain: str) -> bool:
        """Whether a domain may sign for an address: its own, a parent or a subdomain, or one in `signers`.

        Relaxed alignment (RFC 7489 section 3.1.1) without a public suffix list, so a parent needs two labels.
        """
        own, domain = address.rpartition("@")[2].lower(), domain.lower().rstrip(".")
        if domain in self.signers.get(address.lower(), ()):
            return True
        return own == domain or (own.endswith(f".{domain}") and domain.count(".") >= 1) or domain.endswith(f".{own}")
