"""How much is read right, in one table: `table.py` runs all of benchmarks/accuracy, and writes docs/measured.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy.shares import KEPT, Share
from benchmarks.table import commit, write_part

SCRIPTS = {
    ("robot_reports",): "Robots' reports",
    ("left_out_threads",): "Replies",
    ("left_out_threads", "--put-aside"): "Replies put aside",
    ("people",): "People's reports",
    ("whole_archive",): "Whole archives",
    ("landings",): "Landings",
    ("recipients",): "Recipients",
    ("change_points",): "Changes in curves",
}
HEAD = """## <a id="accuracy"></a>Accuracy

`make accuracy` measures how much is read correctly. *Unseen* says whether the code, its rules and
its model were made without the sample: replies of threads that were left out of the training, generated histories and
commits that no test uses, threads that were put aside and influenced no choice. Where it says no, the figure shows that
nothing has become worse, not how the next mail will be read. With the threads that are not put aside, the model had not
seen the thread either, but rules were written with it in view. Intervals are 95 %, by Wilson; most samples of real mail
are small.
"""


def run(arguments: tuple[str, ...], shares: Path) -> str:
    """Run a script; return what it said last if it failed or kept nothing."""
    name, *options = arguments
    env = {**os.environ, KEPT: str(shares)}
    command = [sys.executable, f"benchmarks/accuracy/{name}.py", *options]
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    print(f"== {' '.join(arguments)}\n{done.stdout}", flush=True)
    last = (done.stdout.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    return "" if shares.stat().st_size and not done.returncode else last


def main() -> None:
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (arguments, title) in enumerate(SCRIPTS.items()):
            kept = Path(folder) / str(number)
            kept.touch()
            missing = run(arguments, kept)
            shares = [Share(**json.loads(line)) for line in kept.read_text().splitlines()]
            rows = ["| what | right | share | judged by | unseen |", "| --- | --- | --- | --- | --- |"]
            rows += ["| " + " | ".join(each.cells()) + " |" for each in shares]
            parts.append(f"\n### {title}\n\n" + ("\n".join(rows) + "\n" if shares else f"Not measured: {missing}.\n"))
    when = f"\nCounted on {datetime.now(UTC):%Y-%m-%d} at {commit()}.\n"
    write_part("accuracy", HEAD + when + "".join(parts))
    print("".join(parts))


if __name__ == "__main__":
    main()
