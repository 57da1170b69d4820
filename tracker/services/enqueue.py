"""Wakes workers by enqueuing a task. It may be lost; the scheduler runs the task again (DESIGN rule 7)."""

import logging
from threading import Lock, Timer

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

_lock = Lock()
_soon: set[str] = set()  # the tasks that this process enqueues soon


def enqueue(task: str) -> None:
    """Enqueue a task by its name ("send_mail"). If the broker is down, log a warning and return."""
    try:
        current_app.send_task(task, retry=False, expires=max(10.0, settings.PERFWORK_PERIOD))
    except (OperationalError, OSError) as error:
        log.warning("%s: could not wake a worker: %s", task, error)


def enqueue_soon(task: str, seconds: float) -> None:
    """Enqueue a task once for all that asks for it in these seconds, without making the caller wait for the broker."""
    with _lock:
        if task in _soon:
            return
        _soon.add(task)
    timer = Timer(seconds, _enqueue_now, (task,))
    timer.daemon = True  # a server that stops does not wait: the scheduler finds what there is
    try:
        timer.start()
    except RuntimeError as error:  # no more threads
        log.warning("%s: could not wake a worker: %s", task, error)
        with _lock:
            _soon.discard(task)


def _enqueue_now(task: str) -> None:
    with _lock:
        _soon.discard(task)  # first, so that whoever comes meanwhile is not overlooked
    enqueue(task)
