"""All budgets in one table: `table.py [SCRIPT ...]` runs the benchmarks one by one, and writes docs/measured.md.

Each figure stands beside its budget and, as a ratio, beside the yardstick that ran next to it. What is over budget is
marked, and the command ends with 1. What was not measured, and why, is written too. Each script's part of the page is
written when it ends, with its date and commit: what is cut short, or run alone, leaves the others as they are.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import KEPT, Figure

PAGE = ROOT / "docs" / "measured.md"
SCRIPTS = {
    "archive": "Reading whole archives",
    "robot_mail": "Reading robots' reports",
    "ingest": "Taking in results",
    "outbox": "Sending mail",
    "upstream": "Following git",
    "maintainers": "MAINTAINERS",
    "pages": "Tables and pages",
    "comparisons": "Documents",
    "search": "Search",
    "api": "The API",
    "measurements": "Measurements over time",
    "floods": "Pages while others flood the site",
    "load": "Pages under load",
    "rest": "At rest",
    "size": "What there is to read and to type",
}


def run(name: str, figures: Path) -> str:
    """Run a benchmark; return why its figures are missing, "" if they are there."""
    before = figures.stat().st_size
    begin = time.monotonic()
    # An installation keeps its bytecode: compiling every module at every start is not what is measured.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py"],
        cwd=ROOT,
        env={**env, KEPT: str(figures)},
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout, end="")
    print(f"-- {name}: {time.monotonic() - begin:.0f} s\n", flush=True)
    if done.returncode:
        return f"ended with {done.returncode}"
    last = (done.stdout.strip().splitlines() or ["nothing printed"])[-1]
    return "" if figures.stat().st_size > before else last


def machine() -> str:
    """Return what it ran on."""
    about = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in about if line.startswith("model name")), "unknown processor")
    git = subprocess.check_output(["git", "--version"], text=True).split()[2]
    import django

    return (
        f"{os.cpu_count()} × {cpu}, {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"Django {django.__version__}, git {git}"
    )


def commit() -> str:
    """Return what was measured: a commit, and whether the tree has changes beside it."""
    head = subprocess.check_output(["git", "-C", ROOT, "log", "-1", "--format=%h"], text=True).strip()
    beside = ["--", ".", f":!{PAGE.relative_to(ROOT)}"]  # which each part writes
    changed = subprocess.check_output(["git", "-C", ROOT, "status", "--porcelain", "-uno", *beside], text=True).strip()
    return f"{head} with changes" if changed else head


def table(title: str, figures: list[Figure], when: str, missing: str) -> str:
    """Return a script's part of the page. `missing`: why it ended early, "" if it did not."""
    if not figures:
        return f"### {title}\n\nNot measured: {missing}.\n"
    rows = ["| what | measured | budget | the yardstick beside it | over? |", "| --- | --- | --- | --- | --- |"]
    rows += ["| " + " | ".join(each.cells()) + " |" for each in figures]
    end = f"\n\nNot all was measured: {missing}." if missing else ""
    return f"### {title}\n\nMeasured on {when}.\n\n" + "\n".join(rows) + end + "\n"


def write_part(name: str, text: str) -> None:
    """Replace a part of docs/measured.md, which stands between two comments with its name."""
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    after = rest.partition(f"<!-- /{name} -->\n")[2]
    PAGE.write_text(f"{before}{mark}{text.rstrip()}\n<!-- /{name} -->\n{after}", encoding="utf-8")


def main() -> None:
    over = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or SCRIPTS:
            kept = Path(folder) / f"{name}.jsonl"
            kept.touch()
            missing = run(name, kept)
            figures = [Figure(**json.loads(line)) for line in kept.read_text().splitlines()]
            over += sum(not each.fits for each in figures)
            part = table(SCRIPTS[name], figures, f"{datetime.now(UTC):%Y-%m-%d} at {commit()}", missing)
            write_part(name, part)
            print(part)
    write_part("machine", f"The machine: {machine()}.")
    sys.exit(f"{over} over budget" if over else 0)


if __name__ == "__main__":
    main()
