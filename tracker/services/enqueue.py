"""Wakes the workers by enqueuing a task. It may be lost; the scheduler runs the task again (DESIGN rule 7)."""

from __future__ import annotations

import logging

from celery import current_app
from django.conf import settings
from django.core.cache import cache
from kombu.exceptions import OperationalError

WITHOUT_A_BROKER = 30.0  # seconds until it is tried again: an attempt may take seconds
log = logging.getLogger(__name__)


def enqueue(task: str, *, gather: float = 0.0) -> None:
    """Enqueue a task by its name ("send_mail"). If the broker is down, log a warning and return.

    `gather`: it starts so many seconds later, and until then no process enqueues another one, since this one does what
    is found by then.
    """
    key = f"enqueued:{task}"
    if gather and not cache.add(key, True, gather):
        return
    try:
        current_app.send_task(task, retry=False, expires=max(10.0, settings.PERFWORK_PERIOD), countdown=gather or None)
    except (OperationalError, OSError) as error:
        log.warning("%s: could not wake a worker: %s", task, error)
        if gather:
            cache.set(key, True, WITHOUT_A_BROKER)
