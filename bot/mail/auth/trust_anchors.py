"""Trust anchors: servers, keys, and the other domains that people sign with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4096)
def organisational_domain(domain: str) -> str:
    """Return the registered domain that a domain belongs to, by the Public Suffix List; "" for a public suffix."""
    try:
        ascii_domain = domain.encode("ascii")  # in a header a domain is ASCII, as registered
        own = _suffixes().privatesuffix(ascii_domain.decode("idna") if b"xn--" in ascii_domain else domain)
        return own.encode("idna").decode() if own and b"xn--" in ascii_domain else own or ""
    except UnicodeError:
        return ""


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_encoded_idn=False)  # encoding its 10,000 names takes 150 ms


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
        """Whether a domain may sign for an address: one of the same organisation, or one in `signers`.

        Relaxed alignment (RFC 7489 section 3.1.1): both have the same organisational domain, which is one label more
        than a public suffix. A public suffix ("co.uk", "github.io") signs for nobody below it.
        """
        own, domain = address.rpartition("@")[2].lower(), domain.lower().rstrip(".")
        if domain in self.signers.get(address.lower(), ()):
            return True
        if own == domain:
            return bool(own)
        organisation = organisational_domain(own)
        return bool(organisation) and organisation == organisational_domain(domain)
