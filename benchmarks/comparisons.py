"""Speed of a release report with 300 rows, a study of 260 tests, and the index over 60 releases.

`comparisons.py [ROWS]`: seconds and queries; the baseline is the report of a release without rows.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure
from benchmarks.pages import SHARE, made
from benchmarks.timing import timed

BUDGET_SECONDS, BUDGET_QUERIES = 2.0, 30
MADE_SECONDS, KEPT_SECONDS = 0.5, 0.05  # a release report, made and from the cache
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def measurements(kernels: list[str], variants: list[str], benchmarks: int, machines: int) -> None:
    """Create five samples of each benchmark on each machine, for every kernel and variant."""
    from tracker import models

    chance = random.Random(11)
    boxes = list(models.Machine.objects.order_by("pk")[:machines])
    metrics, scenarios = (list(model.objects.order_by("pk")[:benchmarks]) for model in (models.Metric, models.Scenario))
    models.Metric.objects.filter(pk__in=[each.pk for each in metrics]).update(direction="higher")
    for name in kernels:
        for variant in variants:
            kernel = models.Kernel.objects.create(name=name, variant=variant, measured_at=NOW)
            rows = []
            for metric, scenario in zip(metrics, scenarios, strict=True):
                for box in boxes:
                    samples = [1000 + chance.gauss(0, 5) for _ in range(5)]
                    columns = {"metric": metric, "scenario": scenario, "machine": box, "role": "headline"}
                    mean = sum(samples) / 5
                    columns |= {"mean": mean, "runs": 5, "stddev": 5.0, "samples": samples}
                    rows.append(models.Measurement(kernel=kernel, **columns))
            models.Measurement.objects.bulk_create(rows)


def report_timing(name: str, work: Callable[[], object], beside: float = 0.0, budget: float = BUDGET_SECONDS) -> float:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        work()
    queries = len(captured)  # read now: the next request clears them
    spent = timed(work)
    figure(name, spent, "s", budget, ratio=spent / beside if beside else None,
           yardstick="that of an empty release" if beside else "")  # fmt: skip
    if queries > BUDGET_QUERIES:
        figure(f"{name}, queries", queries, "", BUDGET_QUERIES)
    return spent


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {"PERFWORK_VAR": directory, "DJANGO_SETTINGS_MODULE": "tracker.settings", "LOG_LEVEL": "ERROR"}
        os.environ["PERFWORK_PAGE_CACHE"] = "off"  # a page that is made is measured, not one that is kept
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{directory}/bench.sqlite3")
        import django

        django.setup()
        from django.conf import settings
        from django.core.cache import cache
        from django.core.management import call_command
        from django.db import connection
        from django.test import Client

        from tracker.models import Release

        settings.ALLOWED_HOSTS = ["127.0.0.1"]
        call_command("migrate", verbosity=0)
        version = made(round(rows / SHARE), 1000)
        make_comparisons(version)
        print(f"comparisons: a release with {rows} rows, on {connection.vendor}")
        print(f"  budget: {BUDGET_SECONDS:.0f} s, {BUDGET_QUERIES} queries")
        oldest = Release.objects.order_by("number").values_list("version", flat=True)[0]
        client = Client(SERVER_NAME="127.0.0.1")
        empty = report_timing("the report of an empty release, text", lambda: client.get(f"/{oldest}/report.txt"))
        report_timing("the report, text", lambda: client.get(f"/{version}/report.txt"), empty)
        report_timing("the report, Markdown", lambda: client.get(f"/{version}/report.md"), empty)
        page = f"/{version}/report/"
        report_timing(
            "the report, a page, nothing cached", lambda: (cache.clear(), client.get(page)), empty, MADE_SECONDS
        )
        settings.PERFWORK_PAGE_CACHE = True
        report_timing("the report, a page that is kept", lambda: client.get(page), budget=KEPT_SECONDS)
        settings.PERFWORK_PAGE_CACHE = False
        report_timing("a study of 3 variants, 260 tests", lambda: client.get("/study/variants/"))
        report_timing("the index of 60 releases, reckoned", lambda: (cache.clear(), client.get("/index/")))
        report_timing("the index, known", lambda: client.get("/index/"))


def make_comparisons(version: str) -> None:
    """Create measurements of the release and the one before, twenty highlights, a study, 60 releases for the index."""
    from tracker import models

    release = models.Release.objects.get(version=version)
    before = models.Release.objects.filter(number__lt=release.number).order_by("-number").first()
    older = models.Release.objects.exclude(version__in=[version, before.version]).order_by("-number")
    names = list(older.values_list("version", flat=True)[:58])
    measurements([version, before.version, *names], [""], 40, 4)
    measurements(["v0.1"], ["1G", "2M", "4K"], 65, 4)
    study = models.Study.objects.create(slug="variants", title="Variants", kind="variants", made_at=NOW)
    for number, kernel in enumerate(models.Kernel.objects.filter(name="v0.1"), 1):
        models.StudyKernel.objects.create(study=study, position=number, kernel=kernel)
    for report in models.Report.objects.filter(merged_release=version)[:20]:
        models.ReportHighlight.objects.create(release=release, report=report)


if __name__ == "__main__":
    main()
