"""The scheduler of periodic tasks: one is at work, a second one waits, and takes over when the first has ended."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from celery.beat import PersistentScheduler
from django.db import DatabaseError, close_old_connections

from bot.errors import Busy
from bot.runtime.leases import acquire, extend, release
from tracker.models import ServiceLease

LEASE = timedelta(seconds=60)
WAIT = 5  # seconds between two attempts to take over; the lease is renewed as often
log = logging.getLogger(__name__)


class LeasedScheduler(PersistentScheduler):
    """Celery's own scheduler, while it holds the lease."""

    leads = False
    waits = False
    max_interval = WAIT

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Enqueue what is due, if this is the scheduler; return the seconds until the next tick."""
        if not self._holds_lease():
            return WAIT
        return min(WAIT, float(super().tick(*arguments, **options)))

    def close(self) -> None:
        """Give the lease back, so that another scheduler need not wait for it to expire."""
        super().close()
        if not self.leads:
            return
        try:
            release(ServiceLease.objects.get(name="scheduler"))
        except (DatabaseError, ServiceLease.DoesNotExist):
            pass  # it expires

    def _holds_lease(self) -> bool:
        close_old_connections()
        try:
            row, _ = ServiceLease.objects.get_or_create(name="scheduler")
            extend(row, LEASE) if self.leads else acquire(row, LEASE)
        except Busy:
            if self.leads or not self.waits:
                log.warning("another scheduler is running; this one waits, and takes over if that one ends")
            self.leads, self.waits = False, True
        except DatabaseError as error:
            log.error("the scheduler could not reach the database: %s", " ".join(str(error).split()))
            self.leads = False
        else:
            if not self.leads and self.waits:
                log.warning("this scheduler took over")
            self.leads, self.waits = True, False
        return self.leads
