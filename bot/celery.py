"""The Celery app: which task runs when and in which queue, its broker of files, and its scheduler.

Each periodic task finds its work in the database (DESIGN rule 7), and a lost one is enqueued again at the next beat.
There is a queue for each kind of waiting: mail must never stand behind a fetch from a server that hangs.

`Channel` is the broker of an installation without servers: kombu's file-system queue, safe for several processes.
`RecordedTask` notes when a task last ran, how long it took and what it raised, and names the task in log lines. Of
several schedulers one is at work, by its lease; a second one waits, and takes over when the first has ended.

`celery -A bot` imports this before Django is set up, so models are imported where they are used.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from pathlib import Path
from queue import Empty
from time import monotonic_ns
from typing import Any

from celery import Celery, Task
from celery.beat import PersistentScheduler
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone
from kombu import Queue
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

from bot.errors import Busy
from tracker.logs import bound

# --- Broker of files ---


class Channel(filesystem.Channel):
    """A channel whose files appear whole.

    kombu opens a message's file, then locks and fills it, and takes one without asking for the lock: a second process
    may take it while it is empty, and its worker ends with a JSONDecodeError. The tables of exchanges have the same
    gap, and stay empty for good when their writer is killed in it. kombu takes a message by moving it to the folder for
    temporary files; where that is on another file system, the move is a copy, and two processes make it at once.
    """

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]  # as kombu does
        folder, name = Path(self.data_folder_out), f"{monotonic_ns() // 1_000_000}_{uuid.uuid4()}"
        part = folder / f"{name}.part"  # a name that no queue has
        part.write_text(dumps(payload))
        part.replace(folder / f"{name}.{queue}.msg")

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for file in sorted(Path(self.data_folder_in).iterdir()):
            if file.name.partition(".")[2] != f"{queue}.msg":
                continue
            try:
                message = file.read_text()
                file.unlink()  # succeeds in one process only, and the message is its own
            except FileNotFoundError:
                continue
            return loads(message)
        raise Empty

    def get_table(self, exchange: str) -> Any:
        return self._whole(exchange, super().get_table)

    def _queue_bind(self, exchange: str, *args: Any) -> None:
        self._whole(exchange, super()._queue_bind, *args)

    def _delete(self, queue: str, exchange: str, *args: Any, **kwargs: Any) -> None:
        self._whole(exchange, lambda _: super(Channel, self)._delete(queue, exchange, *args, **kwargs))

    def _whole(self, exchange: str, call: Callable[..., Any], *args: Any) -> Any:
        """Call with the table of the exchange to ourselves, and without one that a killed process left half written."""
        with (self.control_folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the file, also when the process is killed
            file: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]  # not in the stubs
            try:
                loads(file.read_text())
            except FileNotFoundError:
                pass
            except ValueError:
                file.unlink()
            return call(exchange, *args)


class Transport(filesystem.Transport):
    """kombu's file-system transport over our channel (the setting `CELERY_BROKER_TRANSPORT`)."""

    Channel = Channel


# --- Recorded tasks ---

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
        from tracker.models import TaskRun

        error = f"{type(retval).__name__}: {' '.join(str(retval).split())}"[:500] if status == "FAILURE" else ""
        values = {"at": timezone.now(), "seconds": time.monotonic() - self._began, "error": error}
        try:
            TaskRun.objects.update_or_create(task=self.name, defaults=values)
        except DatabaseError as failure:
            log.error("the run could not be recorded: %s", " ".join(str(failure).split()))
        if self._context:
            self._context.__exit__(None, None, None)
            self._context = None


# --- Scheduler ---

LEASE = timedelta(seconds=60)
WAIT = 5  # seconds between two attempts to take over; the lease is renewed as often


class LeasedScheduler(PersistentScheduler):
    """Celery's own scheduler, while it holds the lease."""

    leads = False
    waits = False
    max_interval = WAIT

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Enqueue what is due, if this is the scheduler; return the seconds until the next tick."""
        if not self._holds_lease():
            return WAIT
        self._forget_the_future()
        return min(WAIT, float(super().tick(*arguments, **options)))

    def _forget_the_future(self) -> None:
        """Make due at once what last ran in the future: the clock was ahead, and Celery would wait until then."""
        now = timezone.now()
        for name, entry in self.schedule.items():
            if entry.last_run_at and entry.last_run_at > now + timedelta(seconds=WAIT):
                log.warning(
                    "%s last ran in the future, at %s: the clock was wrong; it runs now", name, entry.last_run_at
                )
                entry.last_run_at = now - timedelta(days=1)
                self._heap = None  # is made again from the entries

    def close(self) -> None:
        """Give the lease back, so that another scheduler need not wait for it to expire."""
        from bot.leases import release
        from tracker.models import ServiceLease

        super().close()
        if self.leads:
            with suppress(DatabaseError, ServiceLease.DoesNotExist):  # then it expires
                release(ServiceLease.objects.get(name="scheduler"))

    def _holds_lease(self) -> bool:
        from bot.leases import acquire, extend
        from tracker.models import ServiceLease

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


# --- The app ---

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")

HOUR = 3600.0  # seconds
QUEUES = ("mail", "results", "archives", "git", "web", "opinions", "webhooks")
ROUTES = {
    "send_mail": "mail",
    "mail_faults": "web",  # it must not stand behind the mail that stalls
    "send_links": "web",  # somebody waits at a page
    "compose_reminders": "mail",
    "suggest_closings": "results",
    "take_results": "results",
    "fold_reports": "results",
    "read_archives": "archives",
    "read_archive": "archives",
    "clone_epochs": "git",
    "track_trees": "git",
    "track_tree": "git",
    "open_lab_jobs": "git",  # a patch is tried on a tree
    "call_webhooks": "webhooks",
    "call_webhook": "webhooks",
    "ask_second_opinions": "opinions",  # a language model may take a minute for each answer
}

app = Celery("perfwork", task_cls="bot.celery:RecordedTask")
app.set_default()  # for every thread of a web server: the pages enqueue through Celery's current app
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    # Acknowledged when it begins: a lost task is enqueued again at the next beat, and RabbitMQ closes the channel of a
    # worker that has not acknowledged a task for half an hour (its consumer_timeout).
    task_acks_late=False,
    task_ignore_result=True,
    task_soft_time_limit=1500,
    task_time_limit=1560,
    task_queues=[Queue(name) for name in QUEUES],
    task_default_queue="mail",
    task_routes={task: {"queue": queue} for task, queue in ROUTES.items()},
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    timezone="UTC",
    # Events for flower and `celery events`, which cost nothing much at a few tasks a minute.
    worker_send_task_events=True,
    task_send_sent_event=True,
)
app.autodiscover_tasks(["bot"])

# A lost task is enqueued again at the next beat, so that one older than a beat can expire.
app.conf.beat_scheduler = "bot.celery:LeasedScheduler"
OFTEN = ["take_results", "read_archives", "track_trees", "open_lab_jobs", "send_mail", "call_webhooks", "fold_reports"]
OFTEN += ["ask_second_opinions"] if settings.PERFWORK_READER_URL else []
HOURLY = ["compose_reminders", "suggest_closings", "mail_faults"]  # where days count, and not seconds
period = settings.PERFWORK_PERIOD
app.conf.beat_schedule = {
    **{name: {"task": name, "schedule": period, "options": {"expires": max(10.0, period)}} for name in OFTEN},
    **{name: {"task": name, "schedule": max(HOUR, period), "options": {"expires": HOUR}} for name in HOURLY},
}
