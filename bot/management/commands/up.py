"""`up`: run web, worker and scheduler with one command, and restart what dies.

A small installation is four processes: this one, a web server, a worker for mail and results, with the scheduler, and
one for archives and trees, since mail never waits for a fetch. They share what they have imported (bot/processes.py),
so this process imports what all need, and nothing else: settings are checked and migrations are run in one that ends.
"""

import ctypes
import gc
import importlib
import multiprocessing
import os
import signal
import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from bot.celery import QUEUES, app, run_scheduler, run_worker
from bot.management import config_error, unavailable, usage_error
from bot.processes import Supervisor
from bot.web.server import listen, serve
from tracker.domain.text import THIS_MACHINE
from tracker.models import Parameter, Suite
from tracker.services import event_log
from tracker.services.database import keep_journal

ROLES = ("web", "worker", "beat")
MOST_WORKERS = 64  # of each kind, on one machine
EXTRA_FETCHERS = 2  # more processes for archives and trees: most of their time they wait for a server
QUICK = ("mail", "results", "web")  # the queues of the first worker; all others belong to the fetcher


class Command(BaseCommand):
    help = "Run web, worker and scheduler together, or some of them. Ctrl-C stops all; dead processes are restarted."
    requires_system_checks = ()  # are run by `prepare`

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", type=host_and_port, default="127.0.0.1:8000", metavar="HOST:PORT")
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            metavar="N",
            help="processes each for pages, for mail and for archives; 1: a worker runs its tasks in threads",
        )
        roles, queues = partial(_some_of, ROLES), partial(_some_of, QUEUES)
        some = f"some of {','.join(ROLES)}, on this machine"
        parser.add_argument("--only", type=roles, default=ROLES, metavar="ROLES", help=some)
        parser.add_argument(
            "--queues", type=queues, default=(), metavar="QUEUES", help="one worker, for these queues only"
        )

    def handle(self, *, bind: str, workers: int, only: Sequence[str], queues: Sequence[str], **options: Any) -> None:
        if not 1 <= workers <= MOST_WORKERS:
            raise usage_error(f"--workers: expected 1 to {MOST_WORKERS}, found {str(workers)[:20]}")
        unhurried = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Ctrl-C waits for the migration's end
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), unhurried) as apart:
            if said := apart.submit(prepare, migrates=set(only) == set(ROLES)).result():
                self.stdout.write(said)
        listening = None
        if "web" in only:
            try:
                listening = listen(bind)
            except OSError as error:
                raise unavailable(f"--bind {bind}: cannot listen there: {error.strerror or error}") from None
            # Request times of web processes that have ended (bot/web/server.py); a worker's start must not remove those
            # of processes that run.
            for path in (settings.VAR / "metrics").glob("*.db"):
                path.unlink(missing_ok=True)
        settings.PERFWORK_DROP.mkdir(parents=True, exist_ok=True)
        processes = works(listening, workers, only, queues)
        pages = f"pages at http://{bind}/" if "web" in processes else f"{', '.join(processes)}"
        self.stdout.write(f"{pages} · results from {settings.PERFWORK_DROP} · Ctrl-C stops all")
        base = urlsplit(settings.PERFWORK_BASE_URL)
        if "web" in processes and base.hostname in THIS_MACHINE and str(base.port) != bind.rpartition(":")[2]:
            self.stdout.write(f"links on pages and in mail lead to {base.geturl()}: set PERFWORK_BASE_URL")
        self.stdout.flush()
        _share_memory()
        Supervisor(processes).run()


def prepare(*, migrates: bool) -> str:
    """Check the settings, and migrate the database or see that it needs no migration; return what is to be said.

    Raises CommandError. Runs in a process of its own, which closes its connection and frees its memory.
    """
    Command().check()
    if not migrates:  # several machines must not migrate at once
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise config_error(f"migrations are missing: run `{settings.PROGRAM} migrate` first, on one machine")
        return ""
    call_command("migrate", verbosity=0)
    if not Suite.objects.exists() and not Parameter.objects.exists():  # texts about tests for release reports
        call_command("loaddata", "lab_texts", verbosity=0)
    at = event_log.progress()
    return f"{at}; a worker does it, and pages say how far it is" if at else ""


def host_and_port(text: str) -> str:
    """Return an address to listen on. Raises ArgumentTypeError for anything else."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isdecimal() and port.isascii() and 0 < int(port[:6]) < 65536):
        raise ArgumentTypeError(f"expected HOST:PORT with a port from 1 to 65535, found {text[:80]}")
    return text


def works(
    listening: socket.socket | None, workers: int, only: Sequence[str] = ROLES, queues: Sequence[str] = ()
) -> dict[str, Callable[[], None]]:
    """Return what each process does, by name. Mail has a worker of its own: it never waits for a fetch."""
    processes: dict[str, Callable[[], None]] = {}
    if listening:
        names = ["web", *(f"web-{number}" for number in range(2, workers + 1))]
        processes |= dict.fromkeys(names, partial(serve, listening))
    threads = workers == 1
    if "worker" in only:
        others = [queue for queue in QUEUES if queue not in QUICK]
        schedules = threads and "beat" in only
        work = partial(run_worker, "+".join(queues) or "mail", queues or QUICK, workers, schedules=schedules)
        processes["worker"] = partial(_without_pages, listening, work)
        if not queues:
            fetchers = 1 if threads else workers + EXTRA_FETCHERS
            fetch = partial(run_worker, "archives", others, fetchers)
            processes["fetcher"] = partial(_without_pages, listening, fetch)
    if "beat" in only and not ("worker" in only and threads):
        processes["scheduler"] = partial(_without_pages, listening, run_scheduler)
    return processes


def _without_pages(listening: socket.socket | None, work: Callable[[], None]) -> None:
    """Do the work of a process that serves no pages.

    It gives up their socket, which would stay taken as long as this process. While one of them runs, SQLite's journal
    is kept in its place.
    """
    if listening:
        listening.close()
    journal = keep_journal()
    work()
    del journal


_M_ARENA_MAX = -8  # of mallopt(3)


def _share_memory() -> None:
    """Import what the workers need, and let the collector of garbage leave it alone, so that forks share its pages.

    Measured on SQLite without servers: 195 MB in all, instead of 650 (benchmarks/rest.py).
    """
    with suppress(AttributeError):  # musl has none
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)  # a thread of a worker needs no heap of its own
    os.environ["CELERY_SKIP_CHECKS"] = "on"  # `prepare` has run them; they import all pages
    app.finalize()
    app.loader.import_default_modules()
    importlib.import_module("scipy.special")  # of every result
    gc.collect()
    gc.freeze()


def _some_of(choices: Sequence[str], text: str) -> Sequence[str]:
    """Return comma-separated names. Raises ArgumentTypeError for an unknown one."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in choices]:
        raise ArgumentTypeError(f"expected some of {', '.join(choices)}, separated by commas; found {unknown[0]!r}")
    return names
