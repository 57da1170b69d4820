"""For commands that print reports: none is printed until all are folded after an upgrade."""

from __future__ import annotations

from django.core.management.base import CommandError

from tracker.services.reports.folding import progress


def require_folded() -> None:
    """Raise CommandError while reports are being folded."""
    if at := progress():
        raise CommandError(f"{at}; wait for a worker, or run manage.py refold")
