"""Speed of the search: fifty questions over generated reports and mails whose words are as unequal as those of English.

`search.py [REPORTS] [MESSAGES]` (default 200,000 and 1,000,000), on SQLite, or in DATABASE_URL. Prints the median time
of each question, the medians of rare words, fields and common words, and the size of the index. Beside them: a page
that asks nothing.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from statistics import median
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure
from benchmarks.pages import made, measure

WORDS, IN_A_MAIL = 50_000, 60
BUDGETS = {"rare words": 50.0, "fields": 50.0, "common words": 150.0}


def word(number: int) -> str:
    """Return the word of this rank: w0 is the most common one."""
    return f"w{number}"


def texts(seed: int = 5) -> Texts:
    return Texts(random.Random(seed))


class Texts:
    """Mails of words by Zipf's law; each mail has its own text."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.names = dice, [word(number) for number in range(WORDS)]
        self.weights = list(accumulate(1 / (number + 10) for number in range(WORDS)))

    def __call__(self, number: int) -> str:
        return " ".join(self.dice.choices(self.names, cum_weights=self.weights, k=IN_A_MAIL))


def questions() -> dict[str, list[str]]:
    """Return fifty questions, by what they ask for. Of a million mails, w0 is in some 400,000, w40000 in a hundred."""
    rare = [word(number) for number in (49_999, 45_000, 40_000, 35_000, 30_000)]
    rare += [
        f"{word(20_000)} {word(300)}",
        f"{word(30_000)} {word(0)}",
        f'"{word(2000)} {word(900)}"',
        "0000beef",
        "w4999*",
    ]
    rare += [f"number {n} area" for n in (12, 777, 199_999)] + ["suite-3.ops_3 lab-01-2sp1", "author7@dev.example"]
    fields = ["subsystem:area/7 state:open", "author:author7@dev.example", "machine:lab-01-2sp1 worse:>20", "worse:>40"]
    fields += [
        "metric:suite-3.ops_3 state:no_response",
        "awaiting:author after:2024-03 before:2024-04",
        "stable:missing",
    ]
    fields += ["release:v6.12 state:open", "release:v6.12 subsystem:area/7 worse:>10", "kind:improvement better:>10"]
    fields += [
        "culprit:00012",
        "suite:suite-7 -state:open",
        "subsystem:area/1",
        "assigned:nobody state:open",
        "state:working",
    ]
    fields += ["after:2025-01", "before:2012", "machine:lab-3 metric:suite-1"]
    common = [word(number) for number in (0, 1, 2, 5, 10, 20, 50, 100)]
    common += ["change", "area", f"{word(0)} {word(1)}", f"{word(3)} {word(40)}", f"{word(0)} subsystem:area/7"]
    common += [f"{word(1)} state:open", f"{word(0)} release:v6.12", f"change -{word(2)}", f'"{word(0)} {word(1)}"']
    return {"rare words": rare, "fields": fields, "common words": common}


def index_bytes() -> tuple[int, int]:
    """Return the size of the full-text indexes and of the whole database in bytes."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT SUM(pgsize) FROM dbstat WHERE name LIKE '%\\_words\\_%' ESCAPE '\\'")
            index = cursor.fetchone()[0] or 0
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        else:
            cursor.execute("SELECT pg_relation_size('report_words') + pg_relation_size('message_words')")
            index = cursor.fetchone()[0]
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(index), int(cursor.fetchone()[0])


def main() -> None:
    reports, messages = (int(each) for each in (sys.argv[1:] + ["200000", "1000000"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {"PERFWORK_VAR": directory, "DJANGO_SETTINGS_MODULE": "tracker.settings", "LOG_LEVEL": "ERROR"}
        os.environ["PERFWORK_PAGE_CACHE"] = "off"  # a page that is made is measured, not one that is kept
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{directory}/bench.sqlite3")
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command
        from django.db import connection

        from tracker.models import Report

        settings.ALLOWED_HOSTS = ["127.0.0.1"]
        call_command("migrate", verbosity=0)
        begin = time.perf_counter()
        if not Report.objects.exists():  # else DATABASE_URL names the database of an earlier run
            made(reports, messages, texts())
        spent = time.perf_counter() - begin
        print(f"search: {reports:,} reports, {messages:,} mails on {connection.vendor}, made in {spent:.0f} s")
        index, whole = index_bytes()
        print(f"  full-text index {index / 1e6:,.0f} MB of {whole / 1e6:,.0f} MB")
        floor = measure("/sign-in/")[0]
        for kind, every in questions().items():
            times = []
            for each in every:
                spent, queries, size = measure(f"/search/?q={quote(each)}")
                times.append(spent)
                print(f"  {kind:13} {each:50} {spent:7.1f} ms {queries:2} queries {size / 1024:6.1f} kB", flush=True)
            figure(f"search, {kind}, {reports:,} reports", median(times), "ms", BUDGETS[kind], spread=times,
                   ratio=median(times) / floor, yardstick="a page that asks nothing")  # fmt: skip


if __name__ == "__main__":
    main()
