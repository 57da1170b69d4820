"""Does all runs in sequence and prints the tables of docs/measured.md: `make crash-test` (half an hour).

Exits with 1 if a mail was lost, or was sent twice without a decision of the policy or an operator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.crash.run import ROOT

MAILS = os.environ.get("PERFWORK_CRASH_MAILS", "1000")
KILLS = os.environ.get("PERFWORK_CRASH_KILLS", "200")
EVERY = os.environ.get("PERFWORK_CRASH_EVERY", "1")
NEVER = ("lost", "twice_unasked", "other_bytes", "unrecorded")  # figures that must be 0


def main() -> int:
    failures = 0
    runs = [("tests.crash.run", "--mails", MAILS, "--kills", KILLS, "--database", database, "--broker", broker)
            for database in ("sqlite", "postgresql") for broker in ("filesystem", "redis")]  # fmt: skip
    lines = [("tests.crash.statements", "--every", EVERY, "--database", each) for each in ("sqlite", "postgresql")]
    for group in (runs, lines):
        for number, each in enumerate(group):
            figures = _figures(each)
            if number == 0:
                print(f"\n| {' | '.join(name.replace('_', ' ') for name in figures)} |")
                print(f"|{' --- |' * len(figures)}")
            print(f"| {' | '.join(str(value) for value in figures.values())} |", flush=True)
            failures += sum(int(figures.get(name, 0)) for name in NEVER)
    return 1 if failures else 0


def _figures(command: tuple[str, ...]) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
