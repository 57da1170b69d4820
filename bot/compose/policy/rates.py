"""Rate limits of outgoing mail: in total, per domain, per address. Pure.

Each mail is given the first time at which all rates that apply have room, and keeps it: a long queue is scheduled
once, and mails for a slow address delay no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

AHEAD = timedelta(seconds=2)  # the burst that may be sent at once
Slot = tuple[datetime, datetime]  # the first time that is taken, and the first that is free again


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
    recipients: Sequence[str], rates: Rates, taken: MutableMapping[str, list[Slot]], now: datetime
) -> datetime | None:
    """Return when a mail may be sent, None for now. In both cases its slots are reserved in `taken`.

    `taken`: by key, the reserved slots in order, joined where they touch. A mail that waits for a slow address takes a
    slot of that time from the other limits, and none of those before it.
    """
    keys = dict(rates.keys(recipients))
    begin, before = now, None
    while begin != before:
        before = begin
        for key, apart in keys.items():
            begin = _next_free(taken.get(key, ()), begin, apart)
    for key, apart in keys.items():
        _reserve(taken.setdefault(key, []), (begin, begin + apart), now)
    return None if begin <= now + AHEAD else begin


def _next_free(taken: Sequence[Slot], begin: datetime, apart: timedelta) -> datetime:
    """Return the first time, from `begin` on, after which nothing is reserved for `apart`."""
    for slot in taken[bisect_right(taken, begin, key=lambda slot: slot[1]) :]:
        if slot[0] >= begin + apart:
            break
        begin = slot[1]
    return begin


def _reserve(taken: list[Slot], slot: Slot, now: datetime) -> None:
    """Add a slot, which overlaps none that is reserved; forget those that are past."""
    del taken[: bisect_right(taken, now, key=lambda slot: slot[1])]
    at = bisect_right(taken, slot)
    begin, end = slot
    if at < len(taken) and taken[at][0] == end:
        end = taken.pop(at)[1]
    if at and taken[at - 1][1] == begin:
        at -= 1
        begin = taken.pop(at)[0]
    taken.insert(at, (begin, end))
