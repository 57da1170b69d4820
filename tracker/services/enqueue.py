"""A nudge to the workers: there is something to do. It may be lost; the scheduler rings again (DESIGN rule 7)."""

from __future__ import annotations

import logging

from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)
QUEUE = "bot.celery.app"  # by its name only: nothing here imports the bot


def enqueue(task: str) -> None:
    """Ring for a task by its name; a broker that is not there is no trouble of who asked."""
    try:
        import_string(QUEUE).send_task(f"bot.tasks.{task}", retry=False)
    except (OperationalError, OSError) as error:
        log.warning("%s: no worker could be told: %s", task, error)
