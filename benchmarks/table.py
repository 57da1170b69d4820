"""All budgets in one table: `table.py [SCRIPT ...]` runs the benchmarks one by one, and writes docs/measured.md.

Each figure stands beside its budget and, as a ratio, beside the yardstick that ran next to it. What is over budget is
marked, and the command ends with 1. What was not measured, and why, is written too.
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
HEAD = """## <a id="benchmarks"></a>Benchmarks

Every budget, what was measured, and how that compares with a yardstick
that ran beside it. A yardstick does the least possible work on the same data: machines differ, ratios hold. Figures
with a spread are medians of five runs or more; the largest sizes ran once.
"""


def run(name: str, figures: Path) -> str:
    """Run a benchmark; return why its figures are missing, "" if they are there."""
    before = figures.stat().st_size
    begin = time.monotonic()
    env = {**os.environ, KEPT: str(figures)}
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py"], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
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
    changed = subprocess.check_output(["git", "-C", ROOT, "status", "--porcelain", "-uno"], text=True).strip()
    return f"{head} with changes" if changed else head


def table(title: str, figures: list[Figure]) -> str:
    rows = ["| what | measured | budget | the yardstick beside it | over? |", "| --- | --- | --- | --- | --- |"]
    rows += ["| " + " | ".join(each.cells()) + " |" for each in figures]
    return f"\n### {title}\n\n" + "\n".join(rows) + "\n"


def write_part(name: str, text: str) -> None:
    """Replace a part of docs/measured.md, which stands between two comments with its name."""
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    after = rest.partition(f"<!-- /{name} -->\n")[2]
    PAGE.write_text(f"{before}{mark}{text.rstrip()}\n<!-- /{name} -->\n{after}", encoding="utf-8")


def main() -> None:
    chosen = sys.argv[1:] or list(SCRIPTS)
    parts, over = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            kept = Path(folder) / f"{name}.jsonl"
            kept.touch()
            missing = run(name, kept)
            figures = [Figure(**json.loads(line)) for line in kept.read_text().splitlines()]
            over += sum(not each.fits for each in figures)
            part = table(SCRIPTS[name], figures) if figures else f"\n### {SCRIPTS[name]}\n"
            parts.append(part + (f"\nNot measured: {missing}.\n" if missing else ""))
    if chosen == list(SCRIPTS):
        when = f"\nMeasured on {datetime.now(UTC):%Y-%m-%d} at {commit()}, on {machine()}.\n"
        write_part("benchmarks", HEAD + when + "".join(parts))
    print("".join(parts))
    sys.exit(f"{over} over budget" if over else 0)


if __name__ == "__main__":
    main()
