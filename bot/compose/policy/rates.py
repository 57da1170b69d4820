"""How fast mail may go: to all, to any one domain, to any one address. Pure.

Each mail gets the first moment at which all the rates that it falls under have room, and keeps it: a long queue is
looked at once, not again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

AHEAD = timedelta(seconds=2)  # what may go at once rather than evenly


@dataclass(frozen=True, slots=True)
class Rates:
    """Mails a minute; 0 is no limit. `own`: of a domain ("@kernel.org") or an address, in place of the general one."""

    every: int = 0
    domain: int = 0
    address: int = 0
    own: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.every or self.domain or self.address or self.own)

    def keys(self, recipients: Sequence[str]) -> Iterator[tuple[str, timedelta]]:
        """What a mail counts for: all, each domain and each address once; with the time between two mails there."""
        domains = dict.fromkeys("@" + each.lower().rpartition("@")[2] for each in recipients)
        addresses = dict.fromkeys(each.lower() for each in recipients)
        told = {
            "": self.every,
            **{each: self.own.get(each, self.domain) for each in domains},
            **{each: self.own.get(each, self.address) for each in addresses},
        }
        for key, rate in told.items():
            if rate:
                yield key, timedelta(minutes=1) / rate


def turn(
    recipients: Sequence[str], rates: Rates, used_until: MutableMapping[str, datetime], now: datetime
) -> datetime | None:
    """When a mail may go: None for now, else a later moment; either way it has taken its place in `used_until`."""
    keys = dict(rates.keys(recipients))
    begin = max([now, *(used_until[key] for key in keys if key in used_until)])
    for key, apart in keys.items():
        used_until[key] = begin + apart
    return None if begin <= now + AHEAD else begin
