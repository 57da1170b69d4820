"""Findings and reports as JSON: one shape of each, for pages, API and exports; and KCIDB objects.

A finding has one shape for a report's JSON, the API and the exports; a report has one for the API and for what stands
beside a page. FINDING_VERSION and REPORT_VERSION name all columns that these depend on.

KCIDB is KernelCI's shared database. By the schema of kcidb-io, version 5.3, a culprit becomes a checkout, a finding
the test that shows the regression, and a report an issue, with an incident for what was measured. Improvements are not
issues.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.urls import reverse

from tracker.domain.events import Verdict
from tracker.models import Finding, Metric, Report

# --- Findings ---

# All that `finding_json` depends on.
FINDING_VERSION = (
    "pk", "headline", "verdict", "change_pct", "change_pct_raw", "low_pct", "high_pct", "p_value", "effect",
    "old_mean", "old_stddev_pct", "old_runs", "old_samples",
    "new_mean", "new_stddev_pct", "new_runs", "new_samples",
    "metric__name", "metric__unit", "scenario__suite", "scenario__params", "machine__name",
)  # fmt: skip
_SIDE = ("mean", "stddev_pct", "runs", "samples")


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return what is known of a finding. `change_pct`: plus is better; `change_pct_raw`: the metric's own change."""
    return {
        "metric": finding.metric.name,
        "unit": finding.metric.unit,
        "suite": finding.scenario.suite,
        "parameters": finding.scenario.params,
        "scenario": str(finding.scenario),
        "machine": finding.machine.name,
        "headline": finding.headline,
        "verdict": finding.verdict,
        "change_pct": finding.change_pct,
        "change_pct_raw": finding.change_pct_raw,
        "interval_pct": None if finding.low_pct is None else [finding.low_pct, finding.high_pct],
        "p_value": finding.p_value,
        "effect": finding.effect,
        **{side: {name: getattr(finding, f"{side}_{name}") for name in _SIDE} for side in ("old", "new")},
    }


# --- Reports ---

_COLUMNS = (
    "subsystem", "branch", "verdict", "state", "status", "awaited", "awaited_since", "assignee", "author", "blocks",
    "metric", "suite", "scenario", "machine", "base", "change", "noise_pct", "landing", "merged_release",
    "shift_left_release", "reported_at", "responded_at", "changed_at", "closed_at", "reported_by",
)  # fmt: skip

# All that `report_json` depends on, beside the directions of metrics.
REPORT_VERSION = (
    "pk", "title", "given_title", "fix_sha", "fix_title", "fix_landing", "lacks_fix", "tags", "culprit__sha",
    "culprit__title", "culprit__placeholder", "tree__name", "facts", *_COLUMNS,
)  # fmt: skip


def facts_json(report: Report) -> dict[str, Any]:
    """Return what a person's mail says, each fact with its sentence; null for what it doesn't say."""
    facts = report.person_report
    names = ("metric", "suite", "magnitude", "good", "bad", "machine", "culprit", "culprit_title")
    values = {name: getattr(facts, name) for name in names}
    return {name: {"value": fact.value, "sentence": fact.sentence} if fact else None for name, fact in values.items()}


def directions() -> Mapping[str, str]:
    """Return the metrics whose direction is known, each with higher or lower."""
    return dict(Metric.objects.exclude(direction="unknown").values_list("name", "direction"))


def report_json(report: Report, by_metric: Mapping[str, str], absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return a report with its culprit and tree. `by_metric`: their directions; `absolute`: makes a URL of a path.

    `change`: the metric's own change in per cent; `change_pct`: plus is better, None if the direction is unknown.
    """
    sign = {"higher": 1, "lower": -1}.get(by_metric.get(report.metric, ""))
    return {
        "culprit": report.culprit.sha,
        "bisected": not report.culprit.placeholder,
        "culprit_title": report.culprit.title,
        "title": str(report),
        "tree": report.tree.name if report.tree else None,
        **{name: getattr(report, name) for name in _COLUMNS},
        "change_pct": None if sign is None or report.change is None else sign * report.change,
        "fix": {"sha": report.fix_sha, "title": report.fix_title, "landing": report.fix_landing},
        "lacks_fix_in_stable": report.lacks_fix,
        "tags": report.tags.split(),
        "reporter": report.person_report.reporter if report.of_person else "",
        "facts": facts_json(report) if report.of_person else None,
        "url": absolute(reverse("report", args=[report.culprit.sha])),
    }


# --- KCIDB ---

ORIGIN = re.compile(r"[a-z0-9_]+")
_VERSION = {"major": 5, "minor": 3}
_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_NOT_IN_A_PATH = re.compile(r"[^a-zA-Z0-9_-]+")
_Objects = dict[str, list[dict[str, Any]]]


def kcidb_json(
    reports: Iterable[tuple[Report, Iterable[Finding]]], origin: str, absolute: Callable[[str], str]
) -> dict[str, Any]:
    """Return a submission with all regressions among the reports, improvements being no issues.

    `origin`: the name of the lab, of a-z, 0-9 and _; `absolute`: makes a URL of a path.
    """
    objects: _Objects = {name: [] for name in ("checkouts", "builds", "tests", "issues", "incidents")}
    for report, findings in reports:
        if report.verdict == Verdict.REGRESSION:
            _add(objects, report, findings, origin, absolute)
    return {"version": _VERSION, **objects}


def _add(
    objects: _Objects, report: Report, findings: Iterable[Finding], origin: str, absolute: Callable[[str], str]
) -> None:
    sha = report.culprit.sha
    own = {"id": f"{origin}:{sha}", "origin": origin}
    commit = {"git_commit_hash": sha, "patchset_hash": ""} if _FULL_SHA.fullmatch(sha) else {}
    tree = {"tree_name": _clean(report.tree.name)} if report.tree else {}
    objects["checkouts"].append({**own, **commit, **tree, "comment": _clean(report.culprit.title)})
    objects["builds"].append({**own, "checkout_id": own["id"]})
    objects["issues"].append(
        {
            **own,
            "version": report.revision,
            "report_url": absolute(reverse("report", args=[sha])),
            "report_subject": _clean(str(report)),
            "culprit": {"code": report.state != "invalid", "tool": False, "harness": False},
            "comment": _clean(report.status),
            "misc": {"state": report.state, "culprit": sha, "fix": report.fix_sha},
        }
    )
    for number, finding in enumerate(findings):
        shape = finding_json(finding)
        test_id = f"{own['id']}:{number}"
        path = [_NOT_IN_A_PATH.sub("_", name).strip("_") for name in (shape["suite"], shape["metric"])]
        value = shape["new"]["mean"]
        measured = {"number": {"value": value, "unit": _clean(shape["unit"])}} if value is not None else {}
        objects["tests"].append(
            {
                "id": test_id,
                "origin": origin,
                "build_id": own["id"],
                "path": ".".join(filter(None, path)),
                "status": "FAIL" if finding.verdict == Verdict.REGRESSION else "DONE",
                "environment": {"comment": _clean(shape["machine"])},
                "misc": {name: shape[name] for name in ("parameters", "change_pct_raw", "old", "new")},
                **measured,
            }
        )
        if finding.verdict == Verdict.REGRESSION:
            incident = {"id": test_id, "origin": origin, "test_id": test_id, "present": True}
            objects["incidents"].append({**incident, "issue_id": own["id"], "issue_version": report.revision})


def _clean(text: str) -> str:
    return text.replace("\0", "")
