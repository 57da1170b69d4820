"""Rate limits of outgoing mail: in total, per domain, per address. Pure.

Each mail is given the first time at which all rates that apply have room, and keeps it: a long queue is scheduled
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

AHEAD = timedelta(seconds=2)  # the burst that may be sent at once


@dataclass(frozen=True, slots=True)
class Rates:
    """Mails per minute; 0: no limit. `own`: overrides for a domain ("@kernel.org") or an address."""

    every: int = 0
    domain: int = 0
    address: int = 0
    own: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.every or self.domain or self.address or self.own)

    def keys(self, recipients: Sequence[str]) -> Iterator[tuple[str, timedelta]]:
        """Yield the rate limits that apply to a mail, as (key, time between two mails); the total's key is ""."""
        domains = dict.fromkeys("@" + each.lower().rpartition("@")[2] for each in recipients)
        addresses = dict.fromkeys(each.lower() for each in recipients)
        limits = {
            "": self.every,
            **{each: self.own.get(each, self.domain) for each in domains},
            **{each: self.own.get(each, self.address) for each in addresses},
        }
        for key, rate in limits.items():
            if rate:
                yield key, timedelta(minutes=1) / rate


def reserve_slot(
    recipients: Sequence[str], rates: Rates, used_until: MutableMapping[str, datetime], now: datetime
) -> datetime | None:
    """Return when a mail may be sent, None for now. In both cases its slot is reserved in `used_until`."""
    keys = dict(rates.keys(recipients))
    begin = max([now, *(used_until[key] for key in keys if key in used_until)])
    for key, apart in keys.items():
        used_until[key] = begin + apart
    return None if begin <= now + AHEAD else begin
