"""Wakes the workers by enqueuing a task. It may be lost; the scheduler runs the task again (DESIGN rule 7)."""

from __future__ import annotations

import logging

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)


def enqueue(task: str) -> None:
    """Enqueue a task by its name ("send_mail"). If the broker is down, log a warning and return."""
    try:
        current_app.send_task(task, retry=False, expires=max(10.0, settings.PERFWORK_PERIOD))
    except (OperationalError, OSError) as error:
        log.warning("%s: could not wake a worker: %s", task, error)
