"""Speed of following git: `upstream.py [COMMITS]`, over a generated tree with 900 tags (default: a million commits).

The baselines are `git log` of the same range to /dev/null, and `git describe --contains` of one commit after another.
5,000 commits are tracked: randomly chosen culprits, and a thousand commits that close their reports.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.budgets import figure
from benchmarks.make_tree import make_tree
from bot.git.history import Graph, read_log
from bot.git.repository import read_refs

COMMITS, TAGS, REPORTS, DESCRIBED = 1_000_000, 900, 4000, 1000
LATER = 1000

# Runs in a separate process, so that its memory can be measured.
PREPARE = """
from datetime import datetime, UTC
from tracker.services import catalog
from tracker.models import Message, RawMessage, Report
from tracker.domain.events import Verdict
now = datetime(2027, 1, 1, tzinfo=UTC)
for number, line in enumerate(open({shas!r}).read().split()):
    commit = catalog.commit_for(line, title=f"mm: an invented culprit, number {{number}}")
    report = catalog.report_for(commit, Verdict.REGRESSION)
    if number < {closed}:
        source = RawMessage.objects.create(digest=str(number), compressed=b"", received_at=now)
        name = f"{{(number + 1) * 1000}}-report@bench.example"
        Message.objects.create(message_id=name, report=report, source=source, kind="robot", sent_at=now)
Report.objects.update(reported_at=datetime(2005, 1, 1, tzinfo=UTC))
"""
WALK = """
import resource, time
from datetime import datetime, UTC
from bot.mail.settings import BotSettings
from bot.upstream.tracking import track
from tracker.models import Landing, Tree
tree, _ = Tree.objects.update_or_create(name="linus", defaults={{"path": {path!r}, "role": "mainline"}})
start = time.perf_counter()
tally = track(tree, BotSettings(), datetime(2027, 1, 2, tzinfo=UTC))
spent = time.perf_counter() - start
mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print("walked", spent, tally.landings, tally.events, mine, Landing.objects.count())
"""


def manage(var: Path, *arguments: str, stdin: str = "") -> str:
    environment = {**os.environ, "PERFWORK_VAR": str(var)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def walked(var: Path, tree: Path) -> list[float]:
    """Walk the tree. Return seconds, new landings, events, peak memory in MB, and landings in all."""
    output = manage(var, "shell", stdin=WALK.format(path=str(tree)))
    line = next(line for line in output.splitlines() if line.startswith("walked"))
    return [float(word) for word in line.split()[1:]]


def log(tree: Path) -> float:
    """Return the duration of `git log --all` to /dev/null in seconds, the better of two runs."""
    spent = []
    for _ in range(2):
        start = time.perf_counter()
        command = ["git", "-C", tree, "log", "--all", "--format=%H%n%B"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        spent.append(time.perf_counter() - start)
    return min(spent)


def described(tree: Path, shas: Sequence[str]) -> float:
    """Return the mean seconds of `git describe --contains` for one commit."""
    start = time.perf_counter()
    for sha in shas:
        command = ["git", "-C", tree, "describe", "--contains", "--match", "v[0-9]*", sha]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) / len(shas)


def first_tags(tree: Path, shas: Sequence[str]) -> float:
    """Return the seconds to find the first tags of commits with our walk of the graph alone."""
    start = time.perf_counter()
    graph, refs = Graph(), read_refs(tree)
    tips = [*refs.branches.values(), *(tag.commit for tag in refs.versions)]
    for _ in read_log(tree, tips, (), graph, lambda author, message: False):
        pass
    graph.mark_tags(refs.versions)
    assert sum(graph.tag_of(sha) >= 0 for sha in shas) > len(shas) * 0.9
    return time.perf_counter() - start


def main() -> None:
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree, var = folder / "linux.git", folder / "var"
        print(f"making a tree of {commits:,} commits ...")
        make_tree(tree, commits, TAGS)
        every = subprocess.check_output(["git", "-C", tree, "rev-list", "--all"], text=True).split()
        culprits = random.Random(1).sample(every, REPORTS)
        (folder / "culprits").write_text("\n".join(culprits))
        del every
        manage(var, "migrate", "--verbosity=0")
        manage(var, "shell", stdin=PREPARE.format(shas=str(folder / "culprits"), closed=commits // 1000))
        yardstick = log(tree)
        spent, landings, events, mine, _ = walked(var, tree)
        print(f"{landings:.0f} landings, {events:.0f} events in {spent:.1f} s")
        figure(
            f"the first walk of {commits:,} commits", spent / yardstick, "×", 2.0, yardstick="git log of all messages"
        )
        figure("its largest size", mine, "MB", 500)
        for number in range(3):
            make_tree(tree, LATER, 1 if number == 1 else 0, start=commits + number * LATER, first_tag=TAGS)
            spent, landings, events, _, _ = walked(var, tree)
            figure(f"{LATER} commits later{', with a tag' if number == 1 else ''}", spent, "s", 1.0)
        one = described(tree, culprits[:10])
        first = first_tags(tree, culprits[:DESCRIBED])
        times = one * DESCRIBED / first
        figure(f"the first versions of {DESCRIBED} commits", times, "times as fast", 100, at_least=True,
               yardstick="git describe --contains, 10 measured")  # fmt: skip


if __name__ == "__main__":
    main()
