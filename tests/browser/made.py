"""The data of the site: the report of v5.6, results, a thread, and a report in which every text is hostile."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import django

HOSTILE = '<script>document.title="owned"</script><img src=x onerror=\'document.title="owned"\'>"&amp;{{7*7}}'
SHA = "f" * 40
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def make() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("loaddata", "v5_6", verbosity=0)
    _people()
    _hostile()
    call_command("refold", verbosity=0)
    call_command("ingest", "fixtures/results/01-mm-vmscan.json", "fixtures/results/03-block.json", verbosity=0)
    call_command("read", "fixtures/mail/thread.mbox", verbosity=0)
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _people() -> None:
    from django.contrib.auth.models import Group, User

    from tests.browser.site import PASSWORD

    User.objects.create_superuser("kim", "kim@lab.example", PASSWORD)
    triager = User.objects.create_user("toni", "toni@lab.example", PASSWORD)
    triager.groups.add(Group.objects.get(name="triager"))


def _hostile() -> None:
    """Every text that pages show, in one report: what it is made of would run if anything forgot to escape it."""
    from tracker import models, status

    h = HOSTILE
    tree = models.Tree.objects.create(name=f"tree {h}", path=h, error=h, role="maintainer")
    commit = models.Commit.objects.create(sha=SHA, title=h, author_name=h, author_email=f"{h}@evil.example".lower())
    fix = models.Commit.objects.create(sha="e" * 40, title=h)
    report = models.Report.objects.create(
        culprit=commit,
        tag="f" * 16,
        verdict="regression",
        title=h,
        subsystem=h,
        tree=tree,
        branch=h,
        authors=[h],
        told=[h],
        state="no_response",
        status=h,
    )
    metric = models.Metric.objects.create(name=f"metric {h}", unit=h)
    scenario = models.Scenario.objects.create(key="hostile", suite=h, params={h: h})
    machine = models.Machine.objects.create(name=f"machine {h}", description=h, cpu_model=h, cpus=1)
    models.Finding.objects.create(
        report=report,
        metric=metric,
        scenario=scenario,
        machine=machine,
        headline=True,
        base=h,
        verdict="regression",
        change_pct=-9.0,
        change_pct_raw=-9.0,
        old_mean=10.0,
        new_mean=9.1,
        old_samples=[10, 10.1],
        new_samples=[9, 9.2],
    )
    archive = models.Archive.objects.create(path=h, error=h)
    source = models.RawMessage.objects.create(digest="hostile", archive=archive, compressed=b"", received_at=NOW)
    models.RawMessage.objects.create(
        digest="held", archive=archive, compressed=b"", received_at=NOW, error=h, position=h
    )
    models.Message.objects.create(
        message_id=f"{h}@evil",
        report=report,
        source=source,
        author_name=h,
        author_email=h,
        subject=h,
        sent_at=NOW,
        kind="person",
        role=h,
        trust="pass",
        trust_by=h,
        own_text=h,
    )
    for kind in (status.Happening.REPORTED, status.Happening.NOTED, status.Happening.FIX_PROPOSED):
        models.Event.objects.create(
            report=report,
            key=f"{kind}:{h}",
            kind=kind,
            at=NOW,
            by="author",
            recorded_at=NOW,
            message_id=f"{h}@evil",
            said_by=h,
            title=h,
            remark=h,
            quote=h,
            result=h,
        )
    models.Suggestion.objects.create(
        report=report,
        key=h,
        kind="working",
        at=NOW,
        by="author",
        message_id=f"{h}@evil",
        quote=h,
        rule=h,
        title=h,
    )
    models.RelatedCommit.objects.create(report=report, commit=fix, part="fix", rule=h, quote=h, tree=tree)
    models.Landing.objects.create(commit=commit, tree=tree, tag=h, at=NOW)
    models.BisectResult.objects.create(
        producer=h,
        external_id=h,
        digest="h",
        payload="{}",
        outcome="conclusive",
        report=report,
        created_at=NOW,
        received_at=NOW,
        held=h,
        note=h,
        measured=[{"metric": h, "verdict": h, "old": 1.0, "new": 2.0, "change_pct": 3.0}],
    )
    models.OutgoingMail.objects.create(
        message_id=f"{h}@us",
        report=report,
        raw=h.encode(),
        sender="a@b.example",
        recipients=[h],
        people=[[h, h, "To", h]],
        subject=h,
        body=h,
        state="sent",
        sent_at=NOW,
        composed_at=NOW,
        reason=h,
    )


if __name__ == "__main__":
    assert os.environ.get("PERFWORK_VAR", "").startswith("/"), "PERFWORK_VAR names the place of this data"
    django.setup()
    make()
    sys.exit(0)
