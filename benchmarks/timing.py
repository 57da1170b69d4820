"""How the benchmarks time."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(work: Callable[[], object], runs: int = 5) -> float:
    """The median of some runs, in seconds, after one that does not count."""
    work()
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[runs // 2]
