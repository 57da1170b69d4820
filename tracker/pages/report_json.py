"""A report as JSON: one shape for the API and for what stands beside a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.urls import reverse

from tracker.models import Metric, Report

_COLUMNS = (
    *("subsystem", "branch", "verdict", "state", "status", "awaited", "assignee", "author", "blocks", "metric"),
    *("suite", "scenario", "machine", "base", "change", "noise_pct", "landing", "merged_release"),
    *("shift_left_release", "reported_at", "responded_at", "changed_at", "closed_at"),
)


# All that `report_json` depends on, beside the directions of metrics.
REPORT_VERSION = (
    *("pk", "title", "given_title", "fix_sha", "fix_title", "fix_landing", "lacks_fix", "culprit__sha"),
    *("culprit__title", "tree__name", *_COLUMNS),
)


def directions() -> Mapping[str, str]:
    """Return the metrics whose direction is known, each with higher or lower."""
    return dict(Metric.objects.exclude(direction="unknown").values_list("name", "direction"))


def report_json(report: Report, known: Mapping[str, str], absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return a report with its culprit and tree. `known`: directions of metrics; `absolute`: makes a URL of a path.

    `change`: the metric's own change in per cent; `change_pct`: plus is better, None if the direction is unknown.
    """
    sign = {"higher": 1, "lower": -1}.get(known.get(report.metric, ""))
    return {
        "culprit": report.culprit.sha,
        "culprit_title": report.culprit.title,
        "title": str(report),
        "tree": report.tree.name if report.tree else None,
        **{name: getattr(report, name) for name in _COLUMNS},
        "change_pct": None if sign is None or report.change is None else sign * report.change,
        "fix": {"sha": report.fix_sha, "title": report.fix_title, "landing": report.fix_landing},
        "lacks_fix_in_stable": report.lacks_fix,
        "url": absolute(reverse("report", args=[report.culprit.sha])),
    }
