"""A Celery task that notes when it last ran, how long it took and what it raised, and names itself in log lines."""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from typing import Any

from celery import Task
from django.db import DatabaseError
from django.utils import timezone

from tracker.log_context import bound
from tracker.models import TaskRun

log = logging.getLogger(__name__)


class RecordedTask(Task):  # type: ignore[type-arg]  # generic in the stubs only
    """Called by a worker only: a direct call, as in tests, records nothing."""

    _began = 0.0  # a worker process runs one task at a time
    _context: AbstractContextManager[None] | None = None

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        self._began = time.monotonic()
        self._context = bound(task=self.name, task_id=task_id, **({"of": args[0]} if args else {}))
        self._context.__enter__()

    def after_return(self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Record the run. An error here must not fail a task that succeeded."""
        error = f"{type(retval).__name__}: {' '.join(str(retval).split())}"[:500] if status == "FAILURE" else ""
        values = {"at": timezone.now(), "seconds": time.monotonic() - self._began, "error": error}
        try:
            TaskRun.objects.update_or_create(task=self.name, defaults=values)
        except DatabaseError as failure:
            log.error("the run could not be recorded: %s", " ".join(str(failure).split()))
        if self._context:
            self._context.__exit__(None, None, None)
            self._context = None
