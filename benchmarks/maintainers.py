"""Speed of finding maintainers: our reader of MAINTAINERS against scripts/get_maintainer.pl, on Debian's kernel.

Requires the package linux-source; if it is missing, says so and exits with 0.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure
from bot.git.maintainers import Maintainers
from bot.mail.settings import read_mailmap
from tests.support.needs import DebianKernel, kernel_source

COMMITS, SCRIPT_COMMITS = 2000, 20
BUDGET_MS = 5.0


def main() -> None:
    tarball = kernel_source()
    if tarball is None or shutil.which("perl") is None:
        print("maintainers: NOT MEASURED: apt install linux-source perl")
        return
    with TemporaryDirectory() as directory:
        kernel = DebianKernel(Path(directory), tarball)
        commits = list(kernel.commits(COMMITS))
        begin = time.perf_counter()
        known, proper = Maintainers(kernel.maintainers), read_mailmap(kernel.mailmap).proper
        loaded = time.perf_counter() - begin
        times = []
        for commit in commits:
            begin = time.perf_counter()
            known.of(commit.files, commit.line, proper)
            times.append(1000 * (time.perf_counter() - begin))
        begin = time.perf_counter()
        for commit in commits[:SCRIPT_COMMITS]:
            kernel.script_recipients(commit)
        script = 1000 * (time.perf_counter() - begin) / SCRIPT_COMMITS
    mean = sum(times) / len(times)
    print(f"maintainers: {len(known)} sections read in {1000 * loaded:.0f} ms, once a file")
    figure("the recipients of a commit, at most", max(times), "ms", BUDGET_MS, ratio=mean / script,
           yardstick="get_maintainer.pl")  # fmt: skip


if __name__ == "__main__":
    main()
