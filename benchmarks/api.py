"""Speed of the list API: a page of 100 reports, one that the client has already (304), and all reports, page by page.

`api.py [REPORTS]` (default 20,000; 200,000 for reading all), generated data, on SQLite, or in DATABASE_URL. Prints
medians beside a page that asks nothing, and rows per second and memory while all reports are read.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure
from benchmarks.pages import made, measure

ROUNDS = 15
PAGES = {
    "a page of 100 reports": "/api/v1/reports?limit=100",
    "by subsystem, open": "/api/v1/reports?subsystem=area/7&state=open",
    "of a release": "/api/v1/reports?release={release}",
    "fields=culprit,state": "/api/v1/reports?fields=culprit,state",
    "findings": "/api/v1/findings",
    "events": "/api/v1/events",
}


def resident() -> int:
    """Return the memory of this process in bytes."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0


def unchanged(path: str) -> float:
    """Return the median milliseconds of a page that the client has already."""
    from django.test import Client

    client = Client(SERVER_NAME="127.0.0.1")
    etag = client.get(path)["ETag"]
    spent = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        answer = client.get(path, headers={"If-None-Match": etag})
        spent.append(1000 * (time.perf_counter() - begin))
        assert answer.status_code == 304
    return median(spent)


def read_all() -> tuple[int, float, int]:
    """Return how many reports were read by following the Link headers, in how many seconds, and the memory gained."""
    from django.test import Client

    client = Client(SERVER_NAME="127.0.0.1")
    client.get("/api/v1/reports?limit=1000")
    address, rows, begin, before = "/api/v1/reports?limit=1000", 0, time.perf_counter(), resident()
    while address:
        answer = client.get(address)
        rows += len(answer.json())
        found = re.match(r"<https?://[^/]+(/[^>]+)>", answer.get("Link", ""))
        address = found[1] if found else ""
    return rows, time.perf_counter() - begin, resident() - before


def main() -> None:
    reports = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
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
        release = made(reports, reports)
        print(f"api: {reports:,} reports on {connection.vendor}; budget: 40 ms, 6 queries; a 304 in 5 ms")
        floor = measure("/sign-in/")[0]
        for name, path in PAGES.items():
            address = path.format(release=release)
            spent, queries, size = measure(address)
            figure(f"{name}, queries", queries, "", 6)
            print(f"  {size / 1024:.1f} kB")
            figure(name, spent, "ms", 40, ratio=spent / floor, yardstick="a page that asks nothing")
            figure(f"{name}, unchanged (304)", unchanged(address), "ms", 5)
        rows, seconds, memory = read_all()
        figure(f"all {rows:,} reports, rows a second", rows / seconds, "", 3000, at_least=True)
        print(f"  {memory / 1e6:+.0f} MB while they are read")


if __name__ == "__main__":
    main()
