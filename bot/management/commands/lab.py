"""`lab`: open a job for each request that waits for the lab, and list the jobs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.config import bot_identity, tree_paths
from bot.lab import open_jobs
from bot.management import no_input, usage_error, user_at_terminal
from tracker.domain.lab_jobs import UNFINISHED
from tracker.models import LabJob
from tracker.services import lab_jobs

_APPLIES = {True: "applies", False: "does not apply", None: "not checked"}


class Command(BaseCommand):
    help = "Open a job for each request that waits for the lab, and list the jobs with what became of them."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--retry", type=int, metavar="ID", help="offer a job to runners again")
        parser.add_argument("--cancel", type=int, metavar="ID", help="end a job without a result; with --reason")
        parser.add_argument("--reason", default="", help="why, for those who asked")
        parser.add_argument("--all", action="store_true", help="list finished jobs, too")

    def handle(self, *, all: bool, retry: int | None, cancel: int | None, reason: str, **options: Any) -> None:
        person, now = user_at_terminal(), timezone.now()
        if cancel is not None and not reason.strip():
            raise usage_error("--cancel needs --reason: why, for those who asked")
        if cancel is not None and not lab_jobs.cancel(cancel, person, reason.strip(), now, notify_thread=True):
            raise no_input(f"there is no unfinished job {cancel}")
        if retry is not None and not lab_jobs.retry(retry, person, now):
            raise no_input(f"there is no job {retry} that waits, or that ended without a measurement")
        open_jobs(bot_identity(), tree_paths(), now)
        rows = LabJob.objects.select_related("report__culprit").order_by("due_at", "pk")
        jobs = list(rows if all else rows.filter(state__in=UNFINISHED))
        if not jobs:
            self.stdout.write("no jobs" if all else "nothing to test; --all lists what has ended")
        for job in jobs:
            what = job.title or job.branch or f"about {job.report.culprit.title}"
            patch = f", {_APPLIES[job.applies]}" if job.patch_mail else ""
            state = job.outcome or (f"{job.state} by {job.runner}" if job.runner else job.state)
            about = f"{job.report.culprit.sha10}{patch}, {state}, due {job.due_at:%Y-%m-%d}"
            self.stdout.write(f"{job.pk}: {job.request}: {what} ({about})")
