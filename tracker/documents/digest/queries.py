"""The regressions of the current cycle or of a given release: two queries."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from tracker.documents.digest.compose import DigestLine, Week, week
from tracker.domain.events import Verdict
from tracker.models import Release, Report
from tracker.services.reports.report_summary import ReleaseCalendar

MOST = 5000  # reports per cycle
_COLUMNS = ("culprit__sha", "title", "given_title", "culprit__title", "metric", "state", "status")


def current() -> str:
    """Return the release in development; until its -rc1, the previous one. "" if no release is known."""
    newest = Release.objects.order_by("-number").values_list("version", flat=True).first()
    return ReleaseCalendar.load().current or newest or ""


def of(version: str, now: datetime) -> Week:
    """Return the week of a release cycle, most urgent reports first."""
    rows = Report.objects.filter(Q(merged_release=version) | Q(shift_left_release=version), verdict=Verdict.REGRESSION)
    rows = rows.filter(reported_at__isnull=False)  # authors hear of a report before the lists do
    found = rows.order_by("-urgency", "pk").values_list(*_COLUMNS, "reported_at", "closed_at", "blocks")[:MOST]
    return week(
        (
            DigestLine(sha, (given or title or own or sha[:10])[:200], metric, state, status, reported, closed, blocks)
            for sha, title, given, own, metric, state, status, reported, closed, blocks in found
        ),
        now,
    )
