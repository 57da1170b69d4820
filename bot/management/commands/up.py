"""`up`: run web, worker and scheduler with one command."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from bot.runtime.supervisor import Supervisor
from tracker.models import Parameter, Report, Suite


class Command(BaseCommand):
    help = "Run web, worker and scheduler together. Ctrl-C stops all; dead processes are restarted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bind", default="127.0.0.1:8000", metavar="HOST:PORT")
        parser.add_argument(
            "--workers", type=int, default=2, help="number of worker processes each for mail and for archives"
        )

    def handle(self, *, bind: str, workers: int, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        if Report.objects.filter(words="").exists():  # stored before report summaries existed
            call_command("refold", stdout=self.stdout)
        if not Suite.objects.exists() and not Parameter.objects.exists():  # texts about each test for release reports
            call_command("loaddata", "lab_texts", verbosity=0)
        settings.PERFWORK_DROP.mkdir(parents=True, exist_ok=True)
        self.stdout.write(f"pages at http://{bind}/ · results from {settings.PERFWORK_DROP} · Ctrl-C stops all")
        self.stdout.flush()
        Supervisor(commands(bind, workers)).run()


EXTRA_FETCHERS = 2  # more processes for archives and trees: most of their time they wait for a server


def _of(processes: int) -> list[str]:
    return ["--concurrency", str(processes)]


def commands(bind: str, workers: int) -> dict[str, list[str]]:
    """Return the commands of the processes, by name. Mail has workers of its own: it never waits for a fetch."""
    celery = [sys.executable, "-m", "celery", "-A", "bot", "--quiet"]
    web = [sys.executable, "-m", "bot.web.server", bind]
    worker = [*celery, "worker", "--loglevel", "WARNING", "--without-gossip"]
    return {
        "web": web,
        "web-2": web,  # on the same address: one is there while the other starts again
        "worker": [*worker, "--queues", "mail,results,web", "--hostname", "mail@%h", *_of(workers)],
        "fetcher": [
            *worker,
            "--queues",
            "archives,git,opinions,webhooks",
            "--hostname",
            "archives@%h",
            *_of(workers + EXTRA_FETCHERS),
        ],
        "scheduler": [
            *(*celery, "beat", "--loglevel", "WARNING", "--pidfile="),
            *("--schedule", str(settings.VAR / "beat-schedule")),
        ],
    }
