"""Simulated people: how long they take, what they answer, when they are away. Nothing here knows the policy."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# Deciles in hours, from the minimum to the maximum: of the first reply to 107 reports of the lists by somebody else
# than the reporter, and of the time between two such replies (282 of them).
FIRST_REPLY = (0.1, 0.7, 1.8, 4.7, 7.7, 11.4, 17.4, 34.5, 124.0, 620.2, 7998.9)
NEXT_REPLY = (0.1, 0.2, 0.7, 1.6, 3.7, 7.7, 14.3, 23.0, 64.2, 155.2, 15625.0)
SILENT = 21 / 43  # of the rows of v5.6's report have no response from the author


def drawn(dice: random.Random, deciles: tuple[float, ...]) -> timedelta:
    """Draw a time from a distribution given by its deciles."""
    place = dice.random() * (len(deciles) - 1)
    low, high = deciles[int(place)], deciles[int(place) + 1]
    return timedelta(hours=low + (high - low) * (place % 1))


@dataclass(slots=True)
class Developer:
    """An author: their time zone, and the weeks in which a mail program answers for them."""

    name: str
    email: str
    zone: int  # hours from UTC
    away: list[tuple[datetime, datetime]] = field(default_factory=list)
    no_mail_since: datetime | None = None  # opted out, or bouncing

    def is_away(self, at: datetime) -> bool:
        return any(start <= at < end for start, end in self.away)

    def awake(self, at: datetime) -> datetime:
        """Return the next time at which they work: from nine to eighteen, on weekdays, not while they are away."""
        local = at + timedelta(hours=self.zone)
        while local.weekday() > 4 or not 9 <= local.hour < 18 or self.is_away(local):
            local += timedelta(hours=1)
        return local - timedelta(hours=self.zone)


def developers(dice: random.Random, count: int, start: datetime) -> list[Developer]:
    """Make people; each is away twice, and one of fifteen wants no mail from some day on."""
    found = []
    for number in range(count):
        person = Developer(f"Dev {number}", f"dev{number}@x{number % 7}.example", dice.choice((-8, -5, 0, 1, 5, 8, 9)))
        for _ in range(2):
            first = start + timedelta(days=dice.randrange(340))
            person.away.append((first, first + timedelta(days=dice.choice((3, 7, 14)))))
        if number % 15 == 7:
            person.no_mail_since = start + timedelta(days=dice.randrange(300))
        found.append(person)
    return found
