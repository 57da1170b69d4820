"""Speed of pages: the triage table of a release with every filter and order, its first and last page, a long thread.

`pages.py [REPORTS] [MESSAGES]`: generated data, spread over thirty releases; on SQLite, or in DATABASE_URL. Prints the
median server time in milliseconds, queries and compressed size; the baseline is a page without queries.
"""

from __future__ import annotations

import gzip
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure

ROUNDS = 7
BUDGET_MS, BUDGET_QUERIES, BUDGET_KB, BUDGET_REPORT = 40.0, 6, 100, 14
RELEASES = 30
SHARE = 0.1  # of all reports belong to the tested release: three times the average
LONG = 5000  # mails in the longest thread


@dataclass(frozen=True, slots=True)
class World:
    """The rows that reports refer to."""

    metrics: Sequence[Any]
    scenarios: Sequence[Any]
    machines: Sequence[Any]
    tree: Any
    versions: Sequence[str]
    ends: Sequence[datetime]


def world() -> World:
    RELEASED = import_module("tracker.migrations.0002_seed").RELEASED  # noqa: N806

    from tracker import models

    versions = list(RELEASED)[-RELEASES:]
    metrics = [models.Metric(name=f"suite-{n % 25}.ops_{n}") for n in range(200)]
    params = [{"nr_task": f"{n}%", "mode": "process"} for n in range(300)]
    scenarios = [models.Scenario(key=f"s{n}", suite=f"suite-{n % 25}", params=each) for n, each in enumerate(params)]
    return World(
        models.Metric.objects.bulk_create(metrics),
        models.Scenario.objects.bulk_create(scenarios),
        models.Machine.objects.bulk_create([models.Machine(name=f"lab-{n:02}-2sp{n % 9}") for n in range(40)]),
        models.Tree.objects.create(name="bench-next", role="next"),
        versions,
        [datetime.fromisoformat(RELEASED[version]).replace(tzinfo=UTC) for version in versions],
    )


TEXT = "I can reproduce this here, and I will have a look at it tomorrow. " * 8


def made(reports: int, messages: int, text: Callable[[int], str] = lambda number: TEXT) -> str:
    """Fill an empty database with rows for years of use; return the release with the most reports.

    `text`: of each mail, by its number.
    """
    from django.db import connection, transaction

    from tracker import models

    dice, known = random.Random(10), world()
    with transaction.atomic():
        models.Commit.objects.bulk_create(
            (models.Commit(pk=n + 1000, sha=f"{n:08x}" * 5, title=f"area/{n % 60}: change number {n}",
                           author_email=f"author{n % 700}@dev.example") for n in range(reports)),
            batch_size=5000,
        )  # fmt: skip
        rows = [_rows(n, known, dice) for n in range(reports)]
        for index, model in enumerate((models.Report, models.Finding, models.Event)):
            model.objects.bulk_create([each[index] for each in rows], batch_size=2000)
        _mails(reports, messages, text)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")
    return known.versions[0]


def _rows(n: int, known: World, dice: random.Random) -> tuple[Any, Any, Any]:
    """Return a report with its summary columns, its headline finding, and its REPORTED event."""
    from tracker import models
    from tracker.domain.events import EventKind, State
    from tracker.services import report_summary

    index = 0 if dice.random() < SHARE else dice.randrange(1, RELEASES)
    version = known.versions[index]
    at = known.ends[index] - timedelta(days=dice.randrange(1, 60), minutes=dice.randrange(1440))
    merged = version if dice.random() < 0.5 else ""
    state = dice.choice([*(["no_response"] * 5), *State])
    metric, scenario, machine = (dice.choice(each) for each in (known.metrics, known.scenarios, known.machines))
    change = -dice.expovariate(0.1)
    old = [dice.gauss(1000, 10) for _ in range(6)]
    new = [each * (1 + change / 100) for each in old]
    effect = abs(change) / 2
    report = models.Report(
        pk=n + 1000, culprit_id=n + 1000, tag=f"{n:016x}", tree=known.tree, title=f"[LKP] {n}", state=state,
        verdict="improvement" if dice.random() < 0.2 else "regression", subsystem=f"area/{n % 60}",
        status=f"merged at {version}-rc{n % 7 + 1}, {state.replace('_', ' ')}", awaited="author",
        reported_at=at, last_human_reply_at=at, merged_release=merged, cycle=merged,
        shift_left_release="" if merged else version,
        author=f"author{n % 700}@dev.example", suite=scenario.suite, metric=metric.name, machine=machine.name,
        scenario="nr_task=50% mode=process", base=version, change=change, noise_pct=2.5,
        spark=report_summary.spark(old, new), weight=effect, urgency=report_summary.urgency(True, False, effect, at),
        closed_at=at + timedelta(days=9) if state in ("fixed", "dropped") else None, revision=n + 1,
        lacks_fix=n % 97 == 0, words=f"{n:08x} area/{n % 60}: change number {n} {metric.name} {machine.name}",
    )  # fmt: skip
    finding = models.Finding(
        report_id=n + 1000, metric=metric, scenario=scenario, machine=machine, headline=True, verdict="regression",
        change_pct=change, change_pct_raw=change, old_samples=old, new_samples=new, old_mean=1000.0, new_mean=900.0,
        effect=effect,
    )  # fmt: skip
    event = {
        "key": f"reported:{n}",
        "kind": EventKind.REPORTED,
        "occurred_at": at,
        "message_id": f"r{n}@x",
        "recorded_at": at,
    }
    return report, finding, models.Event(report_id=n + 1000, **event)


def _mails(reports: int, messages: int, text: Callable[[int], str]) -> None:
    """Insert the mails of all threads; LONG of them belong to the first report."""
    import zlib

    from tracker import models

    now, body = datetime(2026, 1, 1, tzinfo=UTC), zlib.compress(b"From: a@dev.example\n\nwords\n" * 20)
    for start in range(0, messages, 10_000):
        numbers = range(start, min(messages, start + 10_000))
        models.RawMessage.objects.bulk_create(
            models.RawMessage(id=n + 1000, digest=f"d{n}", compressed=body, received_at=now) for n in numbers
        )
        models.Message.objects.bulk_create(
            models.Message(
                message_id=f"m{n}@x", report_id=1000 if n < LONG else 1000 + n % reports, source_id=n + 1000,
                author_name="A. Author", author_email="a@dev.example", subject="Re: the report", sent_at=now,
                kind="person", role="author", relation="thread", thread="report", trust="pass",
                trust_by="dev.example", own_text=text(n),
            )
            for n in numbers
        )  # fmt: skip


def questions(version: str) -> dict[str, str]:
    """Return the queries to test: every filter, order and group, and the first and last page."""
    from tracker.pages.triage.filters import GROUPS, ORDERS

    filters = ["state=working", "state=open", "state!=fixed", "kind=improvement", "awaiting=author", "subsystem=area/7",
               "suite=suite-3", "metric=suite-3.ops_3", "machine=lab-01-2sp1", "machine!=lab-01-2sp1",
               "author=author7@dev.example", "assigned=nobody", "stable=missing", "age=1y", "silence=1y", "q=number 12",
               "improvements=on", "state=working&machine=lab-01-2sp1&q=change", "blocking=yes"]  # fmt: skip
    base = f"/{version}/"
    queries = {
        "first page": base,
        "last page": f"{base}?section=merged&end=1",
        "one section": f"{base}?section=shifted",
    }
    queries |= {each: f"{base}?{each}" for each in filters}
    queries |= {f"order {name}": f"{base}?order={name}" for name in ORDERS}
    queries |= {f"last by {name}": f"{base}?order={name}&section=shifted&end=1" for name in ORDERS}
    return queries | {f"group {name}": f"{base}?group={name}" for name in GROUPS}


def measure(path: str) -> tuple[float, int, int]:
    """Return the median time of a request in milliseconds, its queries, and its compressed size in bytes."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="127.0.0.1", headers={"Accept-Encoding": "gzip"})
    client.get(path)
    spent = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        answer = client.get(path)
        spent.append(1000 * (time.perf_counter() - begin))
        assert answer.status_code in (200, 302, 410), (path, answer.content[:200])
    from django.core.cache import cache

    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    size = len(answer.content if answer.get("Content-Encoding") == "gzip" else gzip.compress(answer.content))
    return median(spent), len(captured), size


def counting(version: str) -> float:
    """Return the time of the first page when the counts are not cached, in milliseconds."""
    from django.core.cache import cache
    from django.test import Client

    client, spent = Client(SERVER_NAME="127.0.0.1"), []
    for _ in range(ROUNDS):
        cache.clear()
        begin = time.perf_counter()
        client.get(f"/{version}/")
        spent.append(1000 * (time.perf_counter() - begin))
    return median(spent)


def report_timing(name: str, path: str, queries: int, most: float = float("inf")) -> tuple[float, bool]:
    spent, count, size = measure(path)
    fits = spent <= most and count <= queries and size <= BUDGET_KB * 1024
    print(f"  {name:46} {spent:7.1f} ms {count:3} queries {size / 1024:6.1f} kB{'' if fits else '   OVER'}")
    return spent, fits


def main() -> None:
    reports, messages = (int(each) for each in (sys.argv[1:] + ["20000", "100000"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {"PERFWORK_VAR": directory, "DJANGO_SETTINGS_MODULE": "tracker.settings", "LOG_LEVEL": "ERROR"}
        os.environ["PERFWORK_PAGE_CACHE"] = "off"  # a page that is made is measured, not one that is kept
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{directory}/bench.sqlite3")
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command
        from django.db import connection

        settings.ALLOWED_HOSTS = ["127.0.0.1"]
        call_command("migrate", verbosity=0)
        begin = time.perf_counter()
        version = made(reports, messages)
        spent = time.perf_counter() - begin
        print(f"pages: {reports:,} reports, {messages:,} mails on {connection.vendor}, made in {spent:.0f} s")
        floor, _, _ = measure("/sign-in/")
        budget = f"budget: {BUDGET_MS:.0f} ms, {BUDGET_QUERIES} queries, {BUDGET_KB} kB"
        print(f"  a page that asks nothing takes {floor:.1f} ms here: the measure of this machine and hour; {budget}")
        every = [report_timing(name, path, BUDGET_QUERIES, BUDGET_MS) for name, path in questions(version).items()]
        usual, worst = median(spent for spent, _ in every), max(spent for spent, _ in every)
        nothing = "a page that asks nothing"
        figure(f"a table, median of {len(every)} questions, {reports:,} reports", usual, "ms", BUDGET_MS,
               ratio=usual / floor, yardstick=nothing, spread=[spent for spent, _ in every])  # fmt: skip
        figure("the slowest of them", worst, "ms", BUDGET_MS, ratio=worst / floor, yardstick=nothing)
        figure("questions over budget in time, queries or size", sum(not fits for _, fits in every), "", 0)
        print(f"  after a change, the first page counts again: {counting(version):.1f} ms")
        others: list[tuple[str, str]] = [("a report with a long thread", f"/report/{'00000000' * 5}/"),
                  ("the front page", "/"), ("a machine", "/machine/lab-01-2sp1/"), ("machines", "/machine/"),
                  ("inbox", "/review/"), ("outbox", "/outbox/"), ("search, a common word", "/search/?q=reproduce"),
                  ("search, rare words", "/search/?q=number+12+area"),
                  ("search, fields", "/search/?q=subsystem:area/7+state:open"),
                  ("the API, 100 reports", "/api/v1/reports")]  # fmt: skip
        for name, path in others:
            report_timing(name, path, BUDGET_REPORT)


if __name__ == "__main__":
    main()
