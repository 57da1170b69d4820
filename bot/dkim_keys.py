"""DKIM keys of mail domains: cached in the database, looked up in DNS only if that is switched on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from tracker.models import SigningKey

MOST = 100_000  # keys
AT_ONCE = 50  # DNS queries per batch
SECONDS = 3.0  # timeout of a query
STALE = timedelta(days=30)  # after which a name that had no key is looked up again
_SIGNATURE = re.compile(rb"^DKIM-Signature:(.{1,8000}?)(?=\n[^ \t])", re.I | re.M | re.S)
_TAG = re.compile(rb"(?:\A|;)\s*([ds])\s*=\s*([\w.-]{1,250})")
log = logging.getLogger(__name__)


class KeyCache:
    """The records by name, in memory; loaded once per run."""

    def __init__(self, *, ask_dns: bool = False) -> None:
        self.ask_dns = ask_dns
        rows = SigningKey.objects.order_by("pk").values_list("name", "record", "fetched_at")[:MOST]
        old = datetime.now(UTC) - STALE
        self._records = {name.lower(): record for name, record, at in rows if record or at > old}
        self._domains = {name.partition("._domainkey.")[2] for name, record in self._records.items() if record}

    def key(self, name: str) -> str | None:
        """Return the record of a name, "" if there is none, None if that is unknown."""
        return self._records.get(name)

    def signs(self, domain: str) -> bool:
        """Whether we have a key of exactly this domain."""
        return domain in self._domains

    def warm(self, raws: Iterable[bytes], now: datetime) -> int:
        """Look up unknown keys of these mails' signatures in DNS. To be called outside of any transaction.

        Returns the number of lookups. Failed ones are tried again another time.
        """
        if not self.ask_dns:
            return 0
        unknown = [name for name in dict.fromkeys(_names(raws)) if name not in self._records][:AT_ONCE]
        for name in unknown:
            record = _record(name)
            if record is None:
                continue
            self._records[name] = record
            if record:
                self._domains.add(name.partition("._domainkey.")[2])
            SigningKey.objects.update_or_create(name=name, defaults={"record": record, "fetched_at": now})
        return len(unknown)


def _names(raws: Iterable[bytes]) -> Iterable[str]:
    """Yield the names of the keys that sign these mails."""
    for raw in raws:
        head = raw[:100_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n."
        for signature in list(_SIGNATURE.finditer(head))[:5]:
            tags = {tag: value.decode("ascii", "replace").lower() for tag, value in _TAG.findall(signature[1])}
            if b"d" in tags and b"s" in tags:
                yield f"{tags[b's']}._domainkey.{tags[b'd']}"


def _record(name: str) -> str | None:
    """Return the TXT record of a name, "" if there is none, None if DNS did not answer."""
    import dns.exception
    import dns.resolver

    try:
        answers = dns.resolver.resolve(name, "TXT", lifetime=SECONDS)
        return b"".join(next(iter(answers)).strings).decode("ascii", "replace")[:10_000]
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer, StopIteration):
        return ""
    except (dns.exception.DNSException, OSError, ValueError) as error:
        log.warning("DNS lookup of the key %s failed: %s", name, error)
        return None
