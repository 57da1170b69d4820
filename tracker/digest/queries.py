"""The regressions of the cycle that goes on, or of a release: two queries."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from tracker.digest.compose import Told, Week, week
from tracker.listing import Calendar
from tracker.models import Report
from tracker.models.report import SHOWN
from tracker.status import Verdict

MOST = 5000  # reports of a cycle
_COLUMNS = ("culprit__sha", "title", "given_title", "culprit__title", "metric", "state", "status")


def current() -> str:
    """The release in the making, "" where no release is known."""
    return Calendar.load().current


def of(version: str, now: datetime) -> Week:
    """The week of a release's cycle, the most urgent reports first."""
    rows = Report.objects.filter(SHOWN, Q(merged=version) | Q(shifted=version), verdict=Verdict.REGRESSION)
    found = rows.order_by("-urgency", "pk").values_list(*_COLUMNS, "reported_at", "closed_at", "blocks")[:MOST]
    return week(
        (
            Told(sha, (given or title or own or sha[:10])[:200], metric, state, status, reported, closed, blocks)
            for sha, title, given, own, metric, state, status, reported, closed, blocks in found
        ),
        now,
    )
