"""How much there is to read and to type: files and lines of the program, and commands to an installation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure
from tests.operating_page import commands

MOST_FILES, MOST_LINES, MOST_COMMANDS = 240, 46_000, 20


def main() -> None:
    listed = subprocess.check_output(["git", "ls-files", "tracker/*.py", "bot/*.py"], cwd=ROOT, text=True).split()
    lengths = [len((ROOT / name).read_text().splitlines()) for name in listed if "/migrations/" not in name]
    figure("Python files in tracker/ and bot/, migrations aside", len(lengths), "", MOST_FILES)
    figure("their lines", sum(lengths), "", MOST_LINES)
    page = (ROOT / "docs" / "operating.md").read_text()
    steps = page.partition("\n## Install\n")[2].partition("\n### A first mail\n")[0]
    figure("commands to an installation with TLS, mail, archive and tree", len([*commands(steps)]), "", MOST_COMMANDS)


if __name__ == "__main__":
    main()
