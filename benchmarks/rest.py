"""What an idle installation takes, and how long a dropped result takes to become a mail: `rest.py [SECONDS]`.

`up` as it is, on SQLite and without servers, or with `--servers` on PostgreSQL and Redis, whose own processes don't
count; 60 seconds after its start, processes, proportional set sizes (PSS: a page that n processes share counts an nth
in each, proc(5)) and voluntary context switches (each is a wake-up) are counted for 300 seconds. Then five results are
dropped, one after the other, and pages are looked at, and memory is measured again. `--beside PATH` measures another
checkout, with its own .venv, after this one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from aiosmtpd.controller import Controller

from benchmarks.budgets import figure
from tests.crash.run import broker_of, database_of
from tests.support.servers import free_port

WARM_UP = 60  # seconds
DROPS = ("01-mm-vmscan", "03-block", "04-net-relay", "05-sched-fair", "06-x86-entry")
MOST_PROCESSES, MOST_MEMORY, MOST_WAKES, MOST_LATENCY = 4, 220, 5, 2  # processes, MB, a second, seconds


class Arrivals:
    """An SMTP server's handler that notes when mails came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    async def handle_DATA(self, *_: Any) -> str:  # noqa: N802  # as aiosmtpd calls it
        self.times.append(time.monotonic())
        return "250 OK"


def tree_of(pid: int) -> Iterator[int]:
    """The process and all that it started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree_of(int(child))


def memory(pid: int) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def switches(pid: int) -> int:
    texts = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in texts)


@contextmanager
def installation(checkout: Path, folder: Path, smtp_port: int, servers: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """`up` of a checkout, with the settings that name its servers; the pid, and the port of its pages."""
    port = free_port()
    (folder / "policy.toml").write_text("per_author_a_day = 0\n")
    env = {
        **os.environ,
        **servers,
        "PERFWORK_VAR": str(folder),
        "EMAIL_URL": f"smtp://127.0.0.1:{smtp_port}",
        "PERFWORK_APPROVE_FIRST": "off",
        "PERFWORK_POLICY": str(folder / "policy.toml"),
    }
    python = str(checkout / ".venv" / "bin" / "python")
    with (folder / "up.log").open("wb") as log:
        command = [python, "manage.py", "up", "--bind", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, cwd=checkout, env=env, stdout=log, stderr=log)
    try:
        yield process.pid, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measure(checkout: Path, seconds: float, on_servers: bool) -> dict[str, float]:
    """The figures of one checkout."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, arrivals, servers = Path(name), Arrivals(), {}
        if on_servers:
            servers["DATABASE_URL"] = database_of("postgresql", folder, stack)
            servers["CELERY_BROKER_URL"] = broker_of("redis", folder, stack)
        smtp = Controller(arrivals, hostname="127.0.0.1", port=free_port())
        smtp.start()
        with installation(checkout, folder, smtp.port, servers) as (pid, port):
            time.sleep(WARM_UP)
            pids = list(tree_of(pid))
            before = sum(map(switches, pids))
            time.sleep(seconds)
            wakes = (sum(map(switches, pids)) - before) / seconds
            rest = sum(map(memory, pids))
            latencies = []
            for result in DROPS:
                expected = len(arrivals.times) + 1
                (folder / "drop" / f".{result}").write_bytes((ROOT / f"fixtures/results/{result}.json").read_bytes())
                (folder / "drop" / f".{result}").rename(folder / "drop" / f"{result}.json")
                dropped = time.monotonic()
                while len(arrivals.times) < expected and time.monotonic() < dropped + 150:
                    time.sleep(0.02)
                if len(arrivals.times) >= expected:
                    latencies.append(arrivals.times[-1] - dropped)
            for path in ("/", "/search/?q=mm"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}").read()
            used = sum(map(memory, tree_of(pid)))
        smtp.stop()
    slowest = max(latencies, default=float("inf"))
    median = statistics.median(latencies) if latencies else float("inf")
    return {"processes": len(pids), "rest": rest, "wakes": wakes, "median": median, "slowest": slowest, "used": used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=300)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--servers", action="store_true", help="on PostgreSQL and Redis")
    options = parser.parse_args()
    ours = measure(ROOT, options.seconds, options.servers)
    other = measure(options.beside.resolve(), options.seconds, options.servers) if options.beside else {}
    print(json.dumps({"here": ours, "beside": other}))

    def line(what: str, key: str, unit: str, budget: float) -> None:
        beside = f"{other[key]:.3g} {unit} of {options.beside.name}" if other else ""
        figure(what, ours[key], unit, budget, yardstick=beside)

    line("an idle installation: processes", "processes", "", MOST_PROCESSES)
    line("an idle installation: memory", "rest", "MB", MOST_MEMORY)
    line("an idle installation: wake-ups", "wakes", "a second", MOST_WAKES)
    line("from a dropped result to its mail, median of five", "median", "s", MOST_LATENCY)
    line("from a dropped result to its mail, the slowest", "slowest", "s", MOST_LATENCY)


if __name__ == "__main__":
    main()
