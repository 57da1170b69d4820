"""`up`: run web, worker and scheduler with one command, and restart what dies."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from bot.celery import QUEUES
from bot.processes import Supervisor
from tracker.models import Parameter, Suite
from tracker.services import database, event_log

ROLES = ("web", "worker", "beat")
MOST_WORKERS = 64  # of each kind, on one machine
EXTRA_FETCHERS = 2  # more processes for archives and trees: most of their time they wait for a server
QUICK = ("mail", "results", "web")  # the queues of the first worker; all others belong to the fetcher


class Command(BaseCommand):
    help = "Run web, worker and scheduler together, or some of them. Ctrl-C stops all; dead processes are restarted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", type=host_and_port, default="127.0.0.1:8000", metavar="HOST:PORT")
        parser.add_argument(
            "--workers", type=int, default=2, help="number of worker processes each for mail and for archives"
        )
        roles, queues = partial(_some_of, ROLES), partial(_some_of, QUEUES)
        some = f"some of {','.join(ROLES)}, on this machine"
        parser.add_argument("--only", type=roles, default=ROLES, metavar="ROLES", help=some)
        parser.add_argument(
            "--queues", type=queues, default=(), metavar="QUEUES", help="one worker, for these queues only"
        )

    def handle(self, *, bind: str, workers: int, only: Sequence[str], queues: Sequence[str], **options: Any) -> None:
        if not 1 <= workers <= MOST_WORKERS:
            raise CommandError(
                f"--workers: expected 1 to {MOST_WORKERS}, found {str(workers)[:20]}", returncode=os.EX_USAGE
            )
        if set(only) == set(ROLES):
            call_command("migrate", verbosity=0)
            if at := event_log.progress():
                self.stdout.write(f"{at}; a worker does it, and pages say how far it is")
            if not Suite.objects.exists() and not Parameter.objects.exists():  # texts about tests for release reports
                call_command("loaddata", "lab_texts", verbosity=0)
        else:
            # several machines must not migrate at once
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                raise CommandError(
                    "migrations are missing: run manage.py migrate first, on one machine", returncode=os.EX_CONFIG
                )
        if "web" in only:
            # Request times of web processes that have ended (bot/web/server.py); a worker's start must not remove those
            # of processes that run.
            for path in (settings.VAR / "metrics").glob("*.db"):
                path.unlink(missing_ok=True)
        settings.PERFWORK_DROP.mkdir(parents=True, exist_ok=True)
        processes = commands(bind, workers, only, queues)
        pages = f"pages at http://{bind}/" if "web" in processes else f"{', '.join(processes)}"
        self.stdout.write(f"{pages} · results from {settings.PERFWORK_DROP} · Ctrl-C stops all")
        self.stdout.flush()
        journal = database.keep_journal()  # also while a web process starts anew
        Supervisor(processes).run()
        del journal


def host_and_port(text: str) -> str:
    """Return an address to listen on. Raises ArgumentTypeError for what is none."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isdecimal() and port.isascii() and 0 < int(port[:6]) < 65536):
        raise ArgumentTypeError(f"expected HOST:PORT with a port from 1 to 65535, found {text[:80]}")
    return text


def commands(bind: str, workers: int, only: Sequence[str] = ROLES, queues: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the commands of the processes, by name. Mail has workers of its own: it never waits for a fetch."""
    processes: dict[str, list[str]] = {}
    if "web" in only:
        web = [sys.executable, "-m", "bot.web.server", bind]
        processes |= {"web": web, "web-2": web}  # on the same address: one is there while the other starts again
    if "worker" in only and queues:
        processes["worker"] = _worker("+".join(queues), queues, workers)
    elif "worker" in only:
        others = [queue for queue in QUEUES if queue not in QUICK]
        processes["worker"] = _worker("mail", QUICK, workers)
        processes["fetcher"] = _worker("archives", others, workers + EXTRA_FETCHERS)
    if "beat" in only:
        schedule = str(settings.VAR / "beat-schedule")
        beat = ["beat", "--loglevel", settings.LOG_LEVEL, "--pidfile=", "--schedule", schedule]
        processes["scheduler"] = [*_CELERY, *beat]
    return processes


_CELERY = (sys.executable, "-m", "celery", "-A", "bot", "--quiet")


def _worker(name: str, queues: Sequence[str], processes: int) -> list[str]:
    worker = [*_CELERY, "worker", "--loglevel", settings.LOG_LEVEL, "--without-gossip"]
    return [*worker, "--queues", ",".join(queues), "--hostname", f"{name}@%h", "--concurrency", str(processes)]


def _some_of(choices: Sequence[str], text: str) -> Sequence[str]:
    """Return comma-separated names. Raises ArgumentTypeError for an unknown one."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in choices]:
        raise ArgumentTypeError(f"expected some of {', '.join(choices)}, separated by commas; found {unknown[0]!r}")
    return names
