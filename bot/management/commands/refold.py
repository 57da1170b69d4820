"""`refold`: recompute every report's state from its events, for example after loading a fixture."""

from typing import Any

from django.core.management.base import BaseCommand

from bot.management import counting
from tracker.models import Report
from tracker.services import event_log

AT_ONCE = 500


class Command(BaseCommand):
    help = "Fold every report's events again, and refresh its cached state and status text."
    requires_system_checks = []  # it reads the database only

    def handle(self, **options: Any) -> None:
        pks = list(Report.objects.values_list("pk", flat=True))
        with counting("folding", "reports") as progress:
            for start in range(0, len(pks), AT_ONCE):
                event_log.fold(pks[start : start + AT_ONCE])
                progress(min(len(pks), start + AT_ONCE))
        event_log.mark_complete()
        self.stdout.write(f"{len(pks)} reports folded")
