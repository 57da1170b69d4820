"""The Celery app: which task runs when and in which queue, its broker of files, and its scheduler.

Each periodic task finds its work in the database (DESIGN rule 7), and a lost one is enqueued again at the next beat.
There is a queue for each kind of waiting: mail must never stand behind a fetch from a server that hangs.

`Channel` is the broker of an installation without servers: kombu's file-system queue, safe for several processes, and
woken by inotify. `RecordedTask` notes when a task last ran, how long it took and what it raised, and names the task in
log lines. Of several schedulers one is at work, by its lease; a second one waits, and takes over when the first has
ended. It keeps no file: when a task last ran stands in the database.

`run_worker` is what `up` starts. A small installation's worker runs tasks in threads, and the scheduler beside them;
with more processes they are Celery's own pool, which can end a task that takes too long.

`celery -A bot` imports this before Django is set up, so models are imported where they are used.
"""

import fcntl
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from queue import Empty
from time import monotonic_ns
from typing import Any

from celery import Celery, Task, bootsteps
from celery.beat import Scheduler, Service
from celery.worker import state
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone
from inotify_simple import INotify, flags
from kombu import Queue
from kombu.exceptions import KombuError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

from bot.git.repository import Busy
from bot.processes import free_memory, own_memory
from tracker.logs import bound

log = logging.getLogger(__name__)

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


class FolderTransport(filesystem.Transport):
    """kombu's file-system transport over our channel (the setting `CELERY_BROKER_TRANSPORT`)."""

    Channel = Channel
    _watch: INotify | None = None
    _blind = False

    def drain_events(  # type: ignore[override]  # as kombu's own
        self, connection: Any, timeout: float | None = None
    ) -> Any:
        """Deliver a message, or wait for one. Raises TimeoutError after `timeout` seconds.

        kombu looks into the folder ten times a second; so do we where Linux has no inotify left (inotify(7)).
        """
        if self._watch is None and not self._blind:
            assert self.client
            options: dict[str, Any] = self.client.transport_options or {}
            try:
                self._watch = watch_folder(options["data_folder_in"], flags.MOVED_TO)
            except OSError as error:
                self._blind = True
                log.warning("%s is looked into ten times a second: %s", options["data_folder_in"], error)
        ends = time.monotonic() + (LONGEST_WAIT if timeout is None else timeout)
        while True:
            with suppress(Empty):
                return self.cycle.get(self._deliver, timeout=timeout)  # type: ignore[union-attr]  # the stubs are too wide
            left = ends - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self._watch:
                self._watch.read(timeout=int(1000 * left) + 1)  # what came since the last look ends it at once
            else:
                time.sleep(min(left, 0.1))


def watch_folder(folder: str, mask: int) -> INotify:
    """Return what tells of changes in a folder. Raises OSError."""
    watch = INotify()
    try:
        watch.add_watch(folder, mask)
    except OSError:
        watch.close()
        raise
    return watch


LONGEST_WAIT = 5.0  # seconds

# --- Recorded tasks ---


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that a thread, or the one thread of a process, is at."""

    began: float  # by the monotonic clock
    limit: float  # seconds
    context: AbstractContextManager[None]  # of log lines


_runs: dict[str, RunningTask] = {}  # by the task's id


class RecordedTask(Task):  # type: ignore[type-arg]  # generic in the stubs only
    """Called by a worker only: a direct call, as in tests, records nothing."""

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        context = bound(task=self.name, task_id=task_id, **({"of": args[0]} if args else {}))
        context.__enter__()
        _runs[task_id] = RunningTask(time.monotonic(), self.time_limit or app.conf.task_time_limit, context)

    def after_return(self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Record the run. An error here must not fail a task that succeeded."""
        from tracker.models import TaskRun

        error = f"{type(retval).__name__}: {' '.join(str(retval).split())}"[:500] if status == "FAILURE" else ""
        run = _runs.pop(task_id)
        values = {"at": timezone.now(), "seconds": time.monotonic() - run.began, "error": error}
        try:
            TaskRun.objects.update_or_create(task=self.name, defaults=values)
        except DatabaseError as failure:
            log.error("the run could not be recorded: %s", " ".join(str(failure).split()))
        run.context.__exit__(None, None, None)
        free_memory()


# --- Scheduler ---

LEASE = timedelta(seconds=60)
WAIT = 5  # seconds between two attempts to take over
APART = timedelta(seconds=0.5)
RENEWED = 15.0  # seconds after which the lease is renewed
RETRY = timedelta(hours=1)  # after which a daily task that failed runs again


class LeasedScheduler(Scheduler):
    """Celery's own scheduler, while it holds the lease. When tasks last ran is known to all from the database."""

    leads = False
    waits = False
    renewed = 0.0  # by the monotonic clock
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
                release(ServiceLease.objects.get(name="scheduler"), of_any_thread=True)

    def _holds_lease(self) -> bool:
        from bot.leases import acquire, extend
        from tracker.models import ServiceLease

        if self.leads and time.monotonic() - self.renewed < RENEWED:
            return True
        close_old_connections()
        try:
            row, _ = ServiceLease.objects.get_or_create(name="scheduler")
            try:
                extend(row, LEASE)  # ours may still be valid after an error of the database
            except Busy:
                acquire(row, LEASE)
            if not self.leads:
                self._know_last_runs()
            self._retry_failed()
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
            self.renewed = time.monotonic()
        return self.leads

    def _know_last_runs(self) -> None:
        """Let tasks go on in their periods. What is due, as what never ran is, starts APART from the next one.

        It stays so: tasks that start together take the interpreter from each other, two hundred times a second.
        """
        from tracker.models import TaskRun
        from tracker.services.faults import SILENCE, STARTED

        now, last = timezone.now(), dict(TaskRun.objects.values_list("task", "at"))
        began = last.pop(STARTED, None)
        newest = max(last.values(), default=None)
        # Not again before anything has run: what never runs would never be late.
        if newest and now - newest > SILENCE and (began is None or newest > began):
            TaskRun.objects.update_or_create(task=STARTED, defaults={"at": now, "seconds": 0})
        for number, name in enumerate(self.app.conf.beat_schedule):
            entry = self.schedule[name]
            period: timedelta = entry.schedule.run_every  # type: ignore[union-attr]  # all are in seconds
            due = now - period + number * APART
            entry.last_run_at = min(now, max(due, last.get(name, due)))
        self._heap = None  # is made again from the entries

    def _retry_failed(self) -> None:
        """Make due what runs once a day and failed: the next try comes an hour after the last, not a day."""
        from tracker.models import TaskRun

        now = timezone.now()
        failed = TaskRun.objects.filter(task__in=DAILY, at__lt=now - RETRY).exclude(error="")
        for name, at in failed.values_list("task", "at"):
            entry = self.schedule[name]
            if entry.last_run_at and entry.last_run_at - at < RETRY:  # else the next try waits for a worker
                entry.last_run_at = now - entry.schedule.run_every  # type: ignore[union-attr]  # all are in seconds
                self._heap = None  # is made again from the entries


# --- The app ---

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")

HAS_SERVER = not settings.CELERY_BROKER_URL.startswith("filesystem:")
HOUR, DAY = 3600.0, 86_400.0  # seconds
QUEUES = ("mail", "results", "archives", "git", "web", "opinions", "webhooks")
ROUTES = {
    "send_mail": "mail",
    "mail_suggestions": "mail",
    "mail_faults": "web",  # it must not stand behind the mail that stalls
    "prune": "git",  # the queue whose worker is late for nobody
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
    # Events for flower and `celery events`, which nobody can ask for without a server.
    worker_send_task_events=HAS_SERVER,
    task_send_sent_event=HAS_SERVER,
)
app.autodiscover_tasks(["bot"])

# A lost task is enqueued again at the next beat, so that one older than a beat can expire.
app.conf.beat_scheduler = "bot.celery:LeasedScheduler"
OFTEN = ["take_results", "read_archives", "track_trees", "open_lab_jobs", "send_mail", "call_webhooks", "fold_reports"]
OFTEN += ["ask_second_opinions"] if settings.PERFWORK_READER_URL else []
HOURLY = ["compose_reminders", "suggest_closings", "mail_faults"]  # where days count, and not seconds
DAILY = ["prune", "mail_suggestions"]
period = settings.PERFWORK_PERIOD
app.conf.beat_schedule = {
    **{name: {"task": name, "schedule": period, "options": {"expires": max(10.0, period)}} for name in OFTEN},
    **{name: {"task": name, "schedule": max(HOUR, period), "options": {"expires": HOUR}} for name in HOURLY},
    **{name: {"task": name, "schedule": max(DAY, period), "options": {"expires": DAY}} for name in DAILY},
}

# --- What `up` starts ---

THREADS = 4  # tasks that a worker of one process runs at a time; most of their time they wait for a server
GROWN = 56 << 20  # bytes of its own at which a worker with threads starts anew; a new one has 30 MB
YOUNG = 600.0  # seconds for which it doesn't
BLIND = 60.0  # seconds until a drop directory that can't be watched, or was removed, is looked for again
SETTLED = 1.05  # seconds after which a file in the drop directory is taken (bot/results/intake.py)


def run_worker(name: str, queues: Sequence[str], processes: int, *, schedules: bool = False) -> None:
    """Run the tasks of these queues until SIGTERM: in threads, or in several processes; `schedules`: be the scheduler.

    The worker of `results` also watches the drop directory.
    """
    steps: list[type[bootsteps.StartStopStep]] = [_Schedules] if schedules else []
    steps += [_WatchesDrop] if "results" in queues else []
    steps += [_StartsAnew] if processes == 1 else []
    app.steps["worker"].update(steps)
    worker = app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        queues=list(queues),
        pool="threads" if processes == 1 else "prefork",
        concurrency=THREADS if processes == 1 else processes,
        loglevel=settings.LOG_LEVEL,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=not HAS_SERVER,
    )
    worker.start()
    sys.exit(worker.exitcode)


def run_scheduler() -> None:
    """Enqueue what is due until SIGTERM, while no other scheduler does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Service(app, scheduler_cls=LeasedScheduler).start()


class _Schedules(bootsteps.StartStopStep):
    """The scheduler, in a thread of a worker, which ends when that does: `up` starts both again."""

    ending = False

    def start(self, worker: Any) -> None:
        self.service = Service(app, scheduler_cls=LeasedScheduler)
        threading.Thread(target=self._run, name="scheduler", daemon=True).start()

    def stop(self, worker: Any) -> None:
        self.ending = True
        self.service.stop()
        self.service.sync()  # gives the lease back

    def _run(self) -> None:
        try:
            self.service.start()
        except Exception:
            log.exception("the scheduler failed")
        if not self.ending:
            state.should_stop = os.EX_SOFTWARE  # type: ignore[assignment]  # the stubs know no codes


class _WatchesDrop(bootsteps.StartStopStep):
    """Has results taken when they are dropped, and not only at the next beat."""

    def start(self, worker: Any) -> None:
        threading.Thread(target=self._watch, name="drop", daemon=True).start()

    def _watch(self) -> None:
        while True:
            try:
                with watch_folder(str(settings.PERFWORK_DROP), flags.CLOSE_WRITE | flags.MOVED_TO) as watch:
                    is_there = True
                    while is_there:  # what came before the watch is taken, too
                        time.sleep(SETTLED)
                        app.send_task("take_results", expires=60.0)
                        is_there = not any(event.mask & flags.IGNORED for event in watch.read())
            except (OSError, KombuError) as error:
                log.warning("%s is looked into only periodically: %s", settings.PERFWORK_DROP, error)
            time.sleep(BLIND)


class _StartsAnew(bootsteps.StartStopStep):
    """Ends a process with threads that has grown, or is at a task for too long; `up` starts it again at once.

    Memory in pieces can't be given back, and a thread can't be ended.
    """

    def start(self, worker: Any) -> None:
        threading.Thread(target=self._look, name="limits", daemon=True).start()

    def _look(self) -> None:
        ends_youth = time.monotonic() + YOUNG
        while True:
            time.sleep(60.0)
            now = time.monotonic()
            for task, run in list(_runs.items()):
                if now - run.began > run.limit:
                    log.critical("task %s takes longer than %.0f s; this worker starts anew", task, run.limit)
                    os._exit(os.EX_SOFTWARE)
            if now > ends_youth and own_memory() > GROWN:
                log.info("this worker has grown, and starts anew")
                state.should_stop = os.EX_OK  # type: ignore[assignment]  # it ends once its tasks have
