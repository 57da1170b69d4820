"""The data of the test site: the report of v5.6, results, a thread, and a report in which every text is hostile."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import django

django.setup()  # this file runs as a program: `python -m tests.browser.made`

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from tests.browser.site import PASSWORD
from tests.support.people import person
from tracker import models
from tracker.domain.events import EventKind
from tracker.models import Report
from tracker.services import event_log, report_summary

HOSTILE = '<script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>"&amp;{{7*7}}'
SHA, LONG_SHAS = "f" * 40, tuple(digit * 40 for digit in "dcb")
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def make() -> None:
    call_command("migrate", verbosity=0)
    call_command("loaddata", "v5_6", "lab_texts", verbosity=0)
    call_command("ingest", "fixtures/measurements", verbosity=0)  # first: the tests know its curves by number
    call_command("ingest", *map(str, sorted(Path("fixtures/studies").glob("*.jsonl"))), verbosity=0)
    call_command("loaddata", "studies", verbosity=0)
    _people()
    _hostile()
    call_command("refold", verbosity=0)
    call_command("ingest", "fixtures/results/01-mm-vmscan.json", "fixtures/results/03-block.json", verbosity=0)
    call_command("read", "fixtures/mail/thread.mbox", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _people() -> None:
    User.objects.create_superuser("kim", "kim@lab.example", PASSWORD)
    person("triager", "toni", "toni@lab.example", PASSWORD)


def _hostile() -> None:
    """Create a report in which every displayed text is markup that would run if it were not escaped."""
    report = _report()
    _measured(report)
    _thread(report)
    _mailed(report)
    _compared(report)


def _report() -> Report:
    h = HOSTILE
    tree = models.Tree.objects.create(name=f"tree {h}", path=h, error=h, role="maintainer")
    commit = models.Commit.objects.create(sha=SHA, title=h, author_name=h, author_email=f"{h}@evil.example".lower())
    values = {"title": h, "subsystem": h, "tree": tree, "branch": h, "authors": [h], "recipients": [h], "status": h}
    report = models.Report.objects.create(
        culprit=commit, tag="f" * 16, verdict="regression", state="no_response", **values
    )
    fix = models.Commit.objects.create(sha="e" * 40, title=h)
    models.RelatedCommit.objects.create(report=report, commit=fix, part="fix", rule=h, quote=h, tree=tree)
    models.Landing.objects.create(commit=commit, tree=tree, tag=h, at=NOW)
    return report


def _measured(report: Report) -> None:
    h = HOSTILE
    change = {"verdict": "regression", "change_pct": -9.0, "change_pct_raw": -9.0, "old_mean": 10.0, "new_mean": 9.1}
    models.Finding.objects.create(
        report=report,
        metric=models.Metric.objects.create(name=f"metric {h}", unit=h),
        scenario=models.Scenario.objects.create(key="hostile", suite=h, params={h: h}),
        machine=models.Machine.objects.create(name=f"machine {h}", description=h, cpu_model=h, cpus=1),
        headline=True,
        base=h,
        old_samples=[10, 10.1],
        new_samples=[9, 9.2],
        **change,
    )
    values = {"producer": h, "external_id": h, "digest": "h", "payload": "{}", "outcome": "conclusive", "note": h}
    measured = [{"metric": h, "verdict": h, "old": 1.0, "new": 2.0, "change_pct": 3.0}]
    models.BisectResult.objects.create(
        report=report, created_at=NOW, received_at=NOW, held=h, measured=measured, **values
    )


def _thread(report: Report) -> None:
    """Add messages, events, a suggestion and quarantined mail, with hostile texts."""
    h = HOSTILE
    archive = models.Archive.objects.create(path=h, error=h)
    kept = {"archive": archive, "compressed": b"", "received_at": NOW}
    source = models.RawMessage.objects.create(digest="hostile", **kept)
    models.RawMessage.objects.create(digest="held", error=h, position=h, **kept)
    who = {"author_name": h, "author_email": h, "kind": "person", "role": h, "trust": "pass", "trust_by": h}
    mail = {"message_id": f"{h}@evil"}
    models.Message.objects.create(
        report=report, source=source, subject=h, sent_at=NOW, own_text=h, public=True, **mail, **who
    )
    texts = {"title": h, "remark": h, "quote": h}
    for kind in (EventKind.REPORTED, EventKind.NOTED, EventKind.FIX_PROPOSED):
        values = {"kind": kind, "occurred_at": NOW, "role": "author", "recorded_at": NOW, "actor": h, "result": h}
        models.Event.objects.create(report=report, key=f"{kind}:{h}", **mail, **texts, **values)
    values = {"kind": "working", "occurred_at": NOW, "role": "author", "rule": h}
    models.Suggestion.objects.create(report=report, key=h, **mail, **texts, **values)


def _compared(report: Report) -> None:
    """Add measured kernels, a study, a release report and the index, with hostile texts."""
    h = HOSTILE
    metric = models.Metric.objects.create(name=f"compared {h}", unit=h, direction="higher")
    test = {
        "metric": metric,
        "scenario": models.Scenario.objects.create(key="compared", suite=h, params={h: h}),
        "machine": models.Machine.objects.create(name=f"box {h}", codename=h, cpu_model=h, cpus=1, family=h),
    }
    study = models.Study.objects.create(slug="hostile", title=h, kind="versions", made_at=NOW)
    for number, name in enumerate(("v9.1", "v9.2"), 1):
        kernel = models.Kernel.objects.create(name=name, measured_at=NOW, describe=h)
        samples = [9.0 + number, 9.5 + number]
        models.Measurement.objects.create(kernel=kernel, role="headline", mean=9.25 + number, samples=samples, **test)
        models.StudyKernel.objects.create(study=study, position=number, kernel=kernel, label=f"{name} {h}")
        text = f"# Overhead  Command  Shared Object  Symbol\n    {number}0.00%  a  b  [k] {h}\n"
        filed = {"kind": "perf report", "submitted_by": h, "at": NOW, "text": text, "name": h}
        models.ToolOutput.objects.create(kernel=kernel, key=f"k{number}", **filed)
        models.ToolOutput.objects.create(
            report=report, side=("parent", "culprit")[number - 1], key=f"r{number}", **filed
        )
    models.Suite.objects.create(name=h, description=h)
    models.Parameter.objects.create(classification=h, name=h, description=h)
    for document_key, name in (
        ("report v5.6", "introduction"),
        ("study hostile", "conclusions"),
        ("index v9.2", "a" * 12),
    ):
        models.TextRevision.objects.create(place=document_key, name=name, text=h, by=h, at=NOW)
    models.ReportHighlight.objects.create(release=models.Release.objects.get(version="v5.6"), report=report, heading=h)


def make_long() -> None:
    """Add the cycle of v9.1 with three open reports of long names, which have no place to break: a metric of 120
    characters, titles of 200.
    """
    models.Release.objects.create(version="v9.1", number=90_001_999_0000)
    places = {
        "metric": models.Metric.objects.create(name="m" * 117 + "_us", unit="us", direction="lower"),
        "scenario": models.Scenario.objects.create(key="long", suite="w" * 60, params={"p" * 40: "v" * 90}),
        "machine": models.Machine.objects.create(name="machine-" + "x" * 60, cpus=224),
    }
    person = {"author_name": "N" * 80, "author_email": f"{'n' * 60}@long.example"}
    for sha in LONG_SHAS:
        commit = models.Commit.objects.create(sha=sha, title="mm/" + "t" * 197, **person)
        values = {"verdict": "regression", "state": "no_response", "status": "-", "subsystem": "mm/" + "s" * 60}
        report = models.Report.objects.create(culprit=commit, tag=sha[:16], **values)
        finding = {"verdict": "regression", "change_pct": -1234.5, "change_pct_raw": 1234.5, "low_pct": 1200.1}
        finding |= {"high_pct": 1250.9, "old_mean": 123456.7, "new_mean": 1647535.6, "headline": True}
        models.Finding.objects.create(
            report=report, old_samples=[1.0, 2.0], new_samples=[9.0, 9.5], **places, **finding
        )
        event = {"report": report, "recorded_at": NOW, "occurred_at": NOW}
        mail = {"role": "reporter", "message_id": f"{sha}@lab.example"}
        models.Event.objects.create(kind="reported", key="reported:long", **mail, **event)
        landed = {"role": "machine", "commit": sha, "tree": "linus", "tag": "v9.1-rc1"}
        models.Event.objects.create(kind="landed", key="landed:long", **landed, **event)
        event_log.refold([report.pk])
        report_summary.refresh([report.pk])


def _mailed(report: Report) -> None:
    h = HOSTILE
    state = {"state": "sent", "sent_at": NOW, "composed_at": NOW, "reason": h}
    envelope = {"sender": "a@b.example", "recipients": [h], "people": [[h, h, "To", h]]}
    models.OutgoingMail.objects.create(
        report=report, message_id=f"{h}@us", raw=h.encode(), subject=h, body=h, **envelope, **state
    )


if __name__ == "__main__":
    assert os.environ.get("PERFWORK_VAR", "").startswith("/"), "PERFWORK_VAR names the place of this data"
    make_long() if sys.argv[1:] == ["long"] else make()
    sys.exit(0)
