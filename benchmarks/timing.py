"""Timing for the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable


def timed(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median duration of `runs` calls in seconds, after one warm-up call."""
    work()
    spent = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[runs // 2]
