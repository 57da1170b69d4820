"""`status`: what is wrong, what waits for a person, when each duty was last done; exit code 1 if anything is wrong."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.celery import app  # which also tells `faults` what is due
from tracker.domain.text import age, counted
from tracker.models import BisectResult, Decision, OutgoingMail, OutgoingState, Suggestion, TaskRun
from tracker.services.faults import faults


class Command(BaseCommand):
    help = "Print what is wrong, what waits for a person, and when each duty was last done; exit code 1 for a problem."
    requires_system_checks = []  # it must tell of a half configured installation

    def handle(self, **options: Any) -> None:
        now = timezone.now()
        problems = faults(now)
        self.stdout.write(f"{counted(len(problems), 'problem')}{':' if problems else ''}")
        for fault in problems:
            since = f" since {fault.since:%Y-%m-%d %H:%M} UTC" if fault.since else ""
            self.stdout.write(f"  {fault.name}{since}: {fault.error}")
        waiting = (
            (OutgoingMail.objects.filter(state=OutgoingState.COMPOSED).count(), "mail", "to approve: /outbox/"),
            (Suggestion.objects.filter(decision=Decision.OPEN).count(), "suggestion", "to decide: /review/"),
            (
                BisectResult.objects.exclude(held="").filter(report__reported_at=None, report__isnull=False).count(),
                "held result",
                "to look at: /results/?held=1",
            ),
        )
        self.stdout.write("Waiting for a person:")
        for number, noun, where in waiting:
            if number:
                self.stdout.write(f"  {counted(number, noun)} {where}")
        if not any(number for number, _, _ in waiting):
            self.stdout.write("  nothing")
        self.stdout.write("Duties, and when each was last done:")
        runs = {run.task: run for run in TaskRun.objects.all()}
        for task in sorted({entry["task"] for entry in app.conf.beat_schedule.values()}):
            run = runs.get(task)
            done = f"{age(run.at, now)} ago{f', failed: {run.error}' if run.error else ''}" if run else "never"
            self.stdout.write(f"  {task:24} {done}")
        if problems:
            raise CommandError(counted(len(problems), "problem"))
