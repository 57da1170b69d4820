"""`lab`: open a job for each request that waits for the lab, and list the jobs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.config import bot_identity, tree_paths
from bot.lab import open_jobs
from tracker.domain.lab_jobs import UNFINISHED
from tracker.models import LabJob
from tracker.services import lab_jobs

_APPLIES = {True: "applies", False: "does not apply", None: "not checked"}


class Command(BaseCommand):
    help = "Open a job for each request that waits for the lab, and list the jobs with what became of them."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--retry", type=int, metavar="ID", help="offer a job again whose runners did not come back")
        parser.add_argument("--all", action="store_true", help="list finished jobs, too")

    def handle(self, *, all: bool, retry: int | None, **options: Any) -> None:
        if retry is not None and not lab_jobs.retry(retry):
            raise CommandError(f"there is no unfinished job {retry}")
        open_jobs(bot_identity(), tree_paths(), timezone.now())
        rows = LabJob.objects.select_related("report__culprit").order_by("due_at", "pk")
        for job in rows if all else rows.filter(state__in=UNFINISHED):
            what = job.title or job.branch or f"about {job.report.culprit.title}"
            patch = f", {_APPLIES[job.applies]}" if job.patch_mail else ""
            state = job.outcome or (f"{job.state} by {job.runner}" if job.runner else job.state)
            about = f"{job.report.culprit.sha10}{patch}, {state}, due {job.due_at:%Y-%m-%d}"
            self.stdout.write(f"{job.pk}: {job.request}: {what} ({about})")
