"""Pages under load: 50 anonymous readers who think five seconds between two pages, with locust beside them on the same
cores: `load.py [REPORTS] [SECONDS]` (20,000 and 60), on SQLite, or in DATABASE_URL.

70 % of the pages are tables, 20 % reports, 10 % documents. The budget is a 95th percentile of 300 ms with warm caches;
then the same while a report changes every second, which makes most cached pages outdated.
"""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure

READERS = 50
BUDGET = 300.0  # ms
PROCESSES = 2  # as `up` starts them
EVERY = 1.0  # seconds between two changes
CHANGE = """
import time
from django.utils import timezone
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import Report
from tracker.services import event_log
keys = list(Report.objects.values_list("pk", flat=True)[:100000])
number = 0
while True:
    report = Report.objects.get(pk=keys[number * 37 % len(keys)])
    who = {"actor": "rita", "remark": str(number)}
    data = EventData(f"noted:{time.time()}", EventKind.NOTED, timezone.now(), Role.MAINTAINER, **who)
    event_log.record([event_log.event_row(report, data, timezone.now())])
    number += 1
    time.sleep(EVERY)
"""


def pages_of(version: str) -> Iterator[tuple[str, str]]:
    """Yield the pages that readers choose from, each with its kind."""
    from tracker.models import Release, Report
    from tracker.pages.triage.filters import GROUPS, ORDERS

    releases = list(Release.objects.order_by("-number").values_list("version", flat=True)[:30])
    filters = ["", "?state=working", "?state=open", "?kind=improvement"]
    filters += [*(f"?order={name}" for name in ORDERS), *(f"?group={name}" for name in GROUPS)]
    yield "table", "/"
    yield from (("table", f"/{release}/") for release in releases)
    yield from (("table", f"/{version}/{each}") for each in filters)
    yield from (("table", f"/subsystem/area/{number}/") for number in range(20))
    shas = Report.objects.order_by("-pk").values_list("culprit__sha", flat=True)[:200]
    yield from (("report", f"/report/{sha}/") for sha in shas)
    yield from (("document", f"/{release}/report/") for release in (version, *releases[:9]))
    yield from (("document", address) for address in ("/index/", "/statistics/"))


@contextmanager
def served() -> Iterator[str]:
    """Serve the database as `up` does; yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "bot.web.server", f"127.0.0.1:{port}"]
    servers = [subprocess.Popen(command, cwd=ROOT) for _ in range(PROCESSES)]
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(30)


def load(address: str, folder: Path, name: str, seconds: int) -> None:
    """Let the readers read, and print their percentiles by kind of page."""
    command = [
        sys.executable,
        "-m",
        "locust",
        "-f",
        "benchmarks/readers.py",
        "--headless",
        "--only-summary",
        "--loglevel",
        "ERROR",
    ]
    command += ["--users", str(READERS), "--spawn-rate", "10", "--run-time", f"{seconds}s", "--reset-stats"]
    command += ["--host", address, "--csv", str(folder / name)]
    subprocess.run(command, cwd=ROOT, capture_output=True)
    with (folder / f"{name}_stats.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        kind = "all" if row["Name"] == "Aggregated" else row["Name"]
        print(
            f"  {name:12} {kind:10}{row['Request Count']:>7} pages, {row['Failure Count']} failed;"
            f" median {row['50%']:>4} ms, 95 % {row['95%']:>4} ms,"
            f" longest {float(row['Max Response Time']):5.0f} ms"
        )
        if kind == "all":
            figure(f"50 readers, caches {name}, 95 %", float(row["95%"]), "ms", BUDGET)
            figure(f"50 readers, caches {name}, failed pages", float(row["Failure Count"]), "", 0)


def main() -> None:
    from benchmarks.pages import made
    from benchmarks.readers import PAGES

    reports, seconds = (int(each) for each in (sys.argv[1:] + ["20000", "60"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        os.environ |= {"PERFWORK_VAR": directory, "DJANGO_SETTINGS_MODULE": "tracker.settings", "LOG_LEVEL": "ERROR"}
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{directory}/bench.sqlite3")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        pages = list(pages_of(made(reports, reports * 5)))
        (folder / "pages").write_text("".join(f"{kind}\t{path}\n" for kind, path in pages))
        os.environ[PAGES] = str(folder / "pages")
        print(f"load: {reports:,} reports on {connection.vendor}, {len(pages)} pages, {READERS} readers, budget 300 ms")
        with served() as address:
            warm(address, [path for _, path in pages])
            load(address, folder, "warm", seconds)
            changing = f"EVERY = {EVERY}\n{CHANGE}"
            writer = subprocess.Popen([sys.executable, "manage.py", "shell", "-v0", "-c", changing], cwd=ROOT)
            load(address, folder, "changing", seconds)
            writer.terminate()
            writer.wait()


def warm(address: str, paths: Sequence[str]) -> None:
    """Ask for every page, several times, so that both processes have it."""
    for _ in range(2 * PROCESSES):
        for path in paths:
            urllib.request.urlopen(address + path.replace(" ", "%20"), timeout=60).read()


if __name__ == "__main__":
    main()
