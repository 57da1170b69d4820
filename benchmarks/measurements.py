"""Speed of curves: `measurements.py [SAMPLES]` (default a million), on SQLite, or where DATABASE_URL says.

A curve of 5,000 builds among all samples as a page, taking points in, and finding changes in curves of 200 builds.
Beside them: a page that asks nothing, and reading the packed bytes alone.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure

RUNS, LONG, SHORT, EACH, CURVES = 7, 5000, 200, 5, 10_000
START = datetime(2020, 1, 1, tzinfo=UTC)


def points(count: int, seed: int, level: float = 1000.0) -> list["CurvePoint"]:  # type: ignore[name-defined]  # noqa: F821, UP037
    """A build an hour, five runs each, with a step in the middle."""
    from tracker.domain.curves import CurvePoint

    rng = random.Random(seed)
    return [
        CurvePoint(
            START + timedelta(hours=n),
            f"{rng.getrandbits(160):040x}",
            tuple(level * (0.9 if n > count / 2 else 1) * (1 + rng.gauss(0, 0.01)) for _ in range(EACH)),
            f"result {n}",
        )
        for n in range(count)
    ]


def timed(action: Callable[[], object]) -> float:
    """Return the median of seven runs in milliseconds."""
    spent = []
    for _ in range(RUNS):
        started = time.perf_counter()
        action()
        spent.append(1000 * (time.perf_counter() - started))
    return median(spent)


def main(samples: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    shown(taken_in(samples))
    changes_found()


def taken_in(samples: int) -> Any:
    """Take samples in, as whole curves, then a build on each; return one of the curves."""
    from django.db import connection
    from django.db.models import Sum
    from django.db.models.functions import Length

    from tracker.models import Curve, CurveSegment, Machine, Metric, Scenario
    from tracker.services import curves
    from tracker.services.curve_changes import refresh_stale

    metric = Metric.objects.create(name="made.ops", direction="higher")
    scenario = Scenario.objects.create(key="made|", suite="made")
    made = points(LONG, 1)
    count = max(1, samples // (LONG * EACH))
    machines = Machine.objects.bulk_create(Machine(name=f"m{n}") for n in range(count))
    started = time.perf_counter()
    for machine in machines:
        curves.add({(metric.pk, scenario.pk, machine.pk): made})
    spent = time.perf_counter() - started
    stored = CurveSegment.objects.aggregate(bytes=Sum(Length("packed")))["bytes"]
    total = count * LONG * EACH
    print(f"{total:,} samples on {count} curves on {connection.vendor}: {stored / total:.1f} bytes each")
    figure("samples a second, whole curves", total / spent, "", 1000, at_least=True)
    started = time.perf_counter()
    for n in range(10):  # as the worker does: the results of some minutes together
        later = [type(made[0])(START + timedelta(days=900, hours=n), f"{n:040x}", made[n].samples, f"new {n}")]
        curves.add({(metric.pk, scenario.pk, machine.pk): later for machine in machines})
    rate = 10 * count * EACH / (time.perf_counter() - started)
    figure("samples a second, a build on each curve", rate, "", 1000, at_least=True)
    refresh_stale(datetime.now(UTC))
    return Curve.objects.order_by("-pk").first()


def shown(curve: Any) -> None:
    """Time the page of a long curve."""
    from django.db import connection, reset_queries
    from django.test import Client

    from bot.web.server import OBJECTS_BETWEEN_COLLECTIONS
    from tracker.domain.curves import unpack

    gc.collect()
    gc.freeze()  # as the web server does
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    client = Client(headers={"host": "127.0.0.1"})
    client.get("/sign-in/")  # once, so that what a process asks once is known
    connection.force_debug_cursor = True
    reset_queries()
    page = client.get(f"/curve/{curve.pk}/")
    queries, size = len(connection.queries), len(page.content)
    connection.force_debug_cursor = False
    assert page.status_code == 200
    spent = timed(lambda: client.get(f"/curve/{curve.pk}/"))
    least = timed(lambda: client.get("/sign-in/"))
    packed = [bytes(each) for each in curve.segments.values_list("packed", flat=True)]
    print(f"  {size / 1000:.0f} kB; unpacking alone takes {timed(lambda: [unpack(each) for each in packed]):.1f} ms")
    figure("a curve of 5,000 builds", spent, "ms", 60, ratio=spent / least, yardstick="a page that asks nothing")
    figure("its queries", queries, "", 4)


def changes_found() -> None:
    """Time the search for changes in short curves."""
    from tracker.domain.curves import builds_of, change_points

    short = [[each.level for each in builds_of(points(SHORT, seed))] for seed in range(50)]
    each_ms = timed(lambda: [change_points(levels) for levels in short]) / len(short)
    figure("finding changes in 10,000 curves of 200 builds", each_ms * CURVES / 1000, "s", 60)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("PERFWORK_VAR", folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
        os.environ["LOG_LEVEL"] = "ERROR"
        os.environ["PERFWORK_PAGE_CACHE"] = "off"  # a page that is made is measured, not one that is kept
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
