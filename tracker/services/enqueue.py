"""Wakes the workers by enqueuing a task. It may be lost; the scheduler runs the task again (DESIGN rule 7)."""

from __future__ import annotations

import logging

from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)
QUEUE = "bot.celery.app"  # by name only: nothing here imports bot/


def enqueue(task: str) -> None:
    """Enqueue a task by name. If the broker is down, log a warning and return."""
    try:
        import_string(QUEUE).send_task(f"bot.tasks.{task}", retry=False)
    except (OperationalError, OSError) as error:
        log.warning("%s: could not wake a worker: %s", task, error)
