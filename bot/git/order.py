"""The order in which a branch got its commits, as points in time.

A commit of the first-parent line stands at its date. The commits that a merge brought stand right before the merge,
parents before children, however long ago they were written: no build before the merge holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from bot.git import repository as git
from bot.git.commits import clamped_seconds, parse_timestamp
from bot.git.graph import Graph

STEP = timedelta(milliseconds=1)  # between neighbours, which is how exactly curves keep times
_BEFORE = 7 * 86_400  # seconds that a commit's clock may run ahead of its merge's


def git_order(repository: Path, tip: str, shas: Collection[str]) -> dict[str, datetime]:
    """Return the place in the history of `tip` of those commits that it holds, given by their full shas.

    The order of places is topological; a longer history gives the same places, unless clocks of its line went wrong.
    Raise Unreadable.
    """
    if not shas:
        return {}
    start = _start(repository, tip, shas)
    limits = [tip, *([f"^{start}"] if start else [])]
    heads = git.run(repository, "rev-list", "--topo-order", "--timestamp", "--parents", *limits).splitlines()
    return places(heads, frozenset(shas))


def places(heads: Sequence[bytes], wanted: Collection[str]) -> dict[str, datetime]:
    """Return the places of wanted commits. `heads`: time in seconds, sha and parents of each commit, a tip first and
    children before parents.

    A date of the first-parent line that is later than the tip's, or earlier than that of the commit before it, is
    taken for wrong. Pure.
    """
    graph = Graph()
    for head in heads:
        graph.add(head)
    shas = [head.split(b" ", 2)[1].decode("ascii") for head in heads]
    graph.mark_merges(shas[:1])
    brought: Counter[str] = Counter()  # commits seen so far, by the one of the line that brought them
    line: list[tuple[str, datetime]] = []
    behind: dict[str, tuple[str, int]] = {}  # by wanted commit: what brought it, and how far it stands before that
    for sha in shas:
        merge = graph.merge_of(sha)
        if merge is None:
            continue
        if merge[0] == sha:
            line.append((sha, parse_timestamp(merge[1])))
        if sha in wanted:
            behind[sha] = merge[0], brought[merge[0]]
        brought[merge[0]] += 1
    at = _in_line(line, brought)
    return {sha: at[merge] - steps * STEP for sha, (merge, steps) in behind.items()}


def _in_line(line: Sequence[tuple[str, datetime]], brought: Counter[str]) -> dict[str, datetime]:
    """Return the times of the first-parent line, given tip first, with room before each for what it brought."""
    found: dict[str, datetime] = {}
    last: datetime | None = None
    for sha, dated in reversed(line):
        at = min(dated, line[0][1])
        last = found[sha] = at if last is None else max(at, last + brought[sha] * STEP)
    return found


def _start(repository: Path, tip: str, shas: Collection[str]) -> str:
    """Return a commit of the first-parent line that is older than all of these; "" if there is none."""
    names = "".join(f"{sha}\n" for sha in shas).encode("ascii")
    dates = git.run(repository, "log", "--no-walk", "--stdin", "--format=%ct", stdin=names)
    before = min(map(clamped_seconds, dates.split())) - _BEFORE
    found = git.run(repository, "rev-list", "--first-parent", "-1", f"--min-age={before}", tip) if before > 0 else b""
    return found.decode("ascii").strip()
