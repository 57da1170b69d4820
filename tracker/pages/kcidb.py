"""Reports as objects of KCIDB, KernelCI's shared database: an issue each, with an incident for what was measured.

Source: the schema of kcidb-io, version 5.3. A culprit is a checkout, a finding the test that shows the regression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from django.urls import reverse

from tracker.domain.events import Verdict
from tracker.models import Finding, Report
from tracker.pages.finding_json import finding_json

ORIGIN = re.compile(r"[a-z0-9_]+")
_VERSION = {"major": 5, "minor": 3}
_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_NOT_IN_A_PATH = re.compile(r"[^a-zA-Z0-9_-]+")
Objects = dict[str, list[dict[str, Any]]]


def kcidb_json(
    reports: Iterable[tuple[Report, Iterable[Finding]]], origin: str, absolute: Callable[[str], str]
) -> dict[str, Any]:
    """Return a submission with all regressions among the reports, improvements being no issues.

    `origin`: the name of the lab, of a-z, 0-9 and _; `absolute`: makes a URL of a path.
    """
    found: Objects = {name: [] for name in ("checkouts", "builds", "tests", "issues", "incidents")}
    for report, findings in reports:
        if report.verdict == Verdict.REGRESSION:
            _add(found, report, findings, origin, absolute)
    return {"version": _VERSION, **found}


def _add(
    found: Objects, report: Report, findings: Iterable[Finding], origin: str, absolute: Callable[[str], str]
) -> None:
    sha = report.culprit.sha
    own = {"id": f"{origin}:{sha}", "origin": origin}
    commit = {"git_commit_hash": sha, "patchset_hash": ""} if _FULL_SHA.fullmatch(sha) else {}
    tree = {"tree_name": _clean(report.tree.name)} if report.tree else {}
    found["checkouts"].append({**own, **commit, **tree, "comment": _clean(report.culprit.title)})
    found["builds"].append({**own, "checkout_id": own["id"]})
    found["issues"].append(
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
        value = shape["new"]["mean"]
        measured = {"number": {"value": value, "unit": _clean(shape["unit"])}} if value is not None else {}
        found["tests"].append(
            {
                "id": test_id,
                "origin": origin,
                "build_id": own["id"],
                "path": ".".join(filter(None, map(_path, (shape["suite"], shape["metric"])))),
                "status": "FAIL" if finding.verdict == Verdict.REGRESSION else "DONE",
                "environment": {"comment": _clean(shape["machine"])},
                "misc": {name: shape[name] for name in ("parameters", "change_pct_raw", "old", "new")},
                **measured,
            }
        )
        if finding.verdict == Verdict.REGRESSION:
            incident = {"id": test_id, "origin": origin, "test_id": test_id, "present": True}
            found["incidents"].append({**incident, "issue_id": own["id"], "issue_version": report.revision})


def _path(name: str) -> str:
    """Return a name as a part of a path."""
    return _NOT_IN_A_PATH.sub("_", name).strip("_")


def _clean(text: str) -> str:
    return text.replace("\0", "")
