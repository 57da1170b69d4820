"""`refold`: recompute every report's state from its events, for example after loading a fixture."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from tracker.models import Report
from tracker.services.reports.event_log import refold
from tracker.services.reports.report_summary import refresh


class Command(BaseCommand):
    help = "Fold every report's events again, and refresh its cached state and status text."
    requires_system_checks = []  # it reads the database only

    def handle(self, **options: Any) -> None:
        pks = list(Report.objects.values_list("pk", flat=True))
        for start in range(0, len(pks), 500):
            refold(pks[start : start + 500])
            refresh(pks[start : start + 500])
        self.stdout.write(f"{len(pks)} reports folded")
