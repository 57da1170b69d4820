"""One pass over a configured archive: lease, fetch, read, release. Whatever fails is stored, and shown on `/inbox/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from billiard.exceptions import SoftTimeLimitExceeded  # what Celery raises, without Celery
from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Coalesce

from bot.archives.reader import read_source
from bot.archives.sources import open_sources, shown
from bot.archives.sources.mirror import fetch, is_mirror, next_epoch
from bot.archives.tally import ReadTally
from bot.errors import Busy, Unreadable
from bot.mail.identity import BotIdentity
from bot.runtime.leases import acquire, extend, release
from tracker.models import Mirror

_MOST_DOUBLED = 5  # times
_REMOTE_EPOCH = 30.0  # seconds for asking whether there is a new epoch


@dataclass(frozen=True, slots=True)
class MirrorPatience:
    """`fetch`: seconds for a fetch, None for no fetch; `lease`: how long a worker that has died keeps others away.

    `interval`: between two fetches, and between two attempts at an archive that fails. Both double with every failure:
    a large fetch gets its time, and a server that hangs takes ever less of the workers'. `longest`: of a fetch.
    """

    fetch: float | None
    lease: timedelta
    interval: timedelta
    longest: float = 900.0

    def fetching(self, failures: int) -> float:
        """Return the seconds for the fetch after so many failures."""
        first = self.fetch or 0.0
        return min(first * (1 << min(failures, _MOST_DOUBLED)), max(self.longest, first))

    def waiting(self, failures: int) -> timedelta:
        """Return the time until the next attempt."""
        return self.interval * (1 << min(max(0, failures - 1), _MOST_DOUBLED))


@dataclass(frozen=True, slots=True)
class MirrorPass:
    """What was read; `has_next`: whether a new epoch waits to be cloned; `error`: why it is not complete, or ""."""

    tally: ReadTally = field(default_factory=ReadTally)
    has_next: bool = False
    error: str = ""


def read_mirror(address: str, identity: BotIdentity, now: datetime, patience: MirrorPatience) -> MirrorPass:
    """Fetch and read one configured archive, if it is due. `address`: as in PERFWORK_ARCHIVES.

    Raises Busy if another worker has it. No other error of the archive is raised: each is stored on its row.
    """
    mirror, _ = Mirror.objects.get_or_create(path=shown(address))
    fetches = patience.fetch is not None and "://" not in address and is_mirror(Path(address))
    waits = fetches or mirror.error
    if waits and mirror.tried_at and now - mirror.tried_at < patience.waiting(mirror.failures):
        return MirrorPass()
    acquire(mirror, patience.lease + timedelta(seconds=patience.fetching(mirror.failures)))
    try:
        Mirror.objects.filter(pk=mirror.pk).update(tried_at=now)
        try:
            done = _fetch_and_read(mirror, address, identity, now, patience, fetches=fetches)
        except SoftTimeLimitExceeded:
            done = MirrorPass(error=f"{mirror}: not finished within the time limit; it continues at the next attempt")
        _store(mirror, done.error, now)
        return done
    finally:
        release(mirror)


def forget_others(addresses: Iterable[str]) -> None:
    """Forget the archives that are not in PERFWORK_ARCHIVES any more, so that nobody is told that they stand still."""
    Mirror.objects.exclude(path__in=[shown(each) for each in addresses]).delete()


def _fetch_and_read(
    mirror: Mirror, address: str, identity: BotIdentity, now: datetime, patience: MirrorPatience, *, fetches: bool
) -> MirrorPass:
    tally, errors = ReadTally(), []
    try:
        if fetches:
            # A stale archive does not count as read: it may lack a copy that resolves a doubt.
            fetch(Path(address), patience.fetching(mirror.failures))
        sources = open_sources(address)
    except (Unreadable, OSError) as error:
        return MirrorPass(error=str(error))
    for source in sources:
        extend(mirror, patience.lease)
        try:
            tally += read_source(source, identity, now, lease=patience.lease)
        except Busy:
            continue  # `read` is at it
        except (Unreadable, OSError, OperationalError) as error:
            errors.append(str(error))
    has_next = fetches and next_epoch(Path(address), min(_REMOTE_EPOCH, patience.fetch or 0)) is not None
    return MirrorPass(tally, has_next, "; ".join(errors))


def _store(mirror: Mirror, error: str, now: datetime) -> None:
    """Store the error, and since when there has been one; nothing is written while all is well."""
    error = " ".join(error.split())[:1000]
    row = Mirror.objects.filter(pk=mirror.pk)
    if error:
        row.update(error=error, failing_since=Coalesce("failing_since", now), failures=F("failures") + 1)
    else:
        row.exclude(error="").update(error="", failing_since=None, failures=0)
