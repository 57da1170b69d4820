"""A nudge to the workers: there is something to do. It may be lost; the scheduler rings again (DESIGN rule 7)."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)


def nudge(task: str) -> None:
    """Ring for a task by its name; a broker that is not there is no trouble of who asked."""
    try:
        current_app.send_task(task, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("%s: no worker could be told: %s", task, error)
