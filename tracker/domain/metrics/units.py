"""The unit in a metric's name: "ms" in "demo.p95_ms", "MB/s" in "fio.read_bw_MBps". Pure."""

from __future__ import annotations

import re
from functools import lru_cache

# The first match decides; a unit may use a group of its pattern.
_UNITS: tuple[tuple[str, str], ...] = (
    (r"%$", "%"),
    (r"([KMGT]i?B)(?:ps|/s(?:ec)?|[._-]per[._-]sec)$", r"\1/s"),
    (r"([KMGT])(?:bps|bit/s|bits/s)$", r"\1bit/s"),
    (r"_mb/s$", "MB/s"),
    (r"([A-Za-z]+)[_-]per[_-]sec(?:ond)?$", r"\1/s"),
    (r"([A-Za-z]+)[_-]per[_-]min(?:ute)?$", r"\1/min"),
    (r"([A-Za-z]+)/s(?:ec)?$", r"\1/s"),
    (r"per_(?:process|thread)_ops$", "ops/s"),
    (r"(?:^|[._-])(?:\w+_)?(iops|IOPS)$", "IOPS"),
    (r"(?:^|[._-])(?:tps|rps|qps)$", "1/s"),
    (r"(?:^|[._-])Throughput_Mbps$", "Mbit/s"),
    (r"(?:^|[._-])(ns|us|ms)$", r"\1"),
    (r"(?:^|[._-])([num])sec(?:onds)?$", r"\1s"),
    (r"(?:^|[._-])(?:sec|seconds|elapsed_time)$", "s"),
    (r"(?:^|[._-])(?:kb|KB|kB)$", "kB"),
    (r"(?:^|[._-])bytes$", "B"),
)


@lru_cache(maxsize=20_000)
def unit_of(metric: str) -> str:
    """Return the unit in a metric's name; "" if there is none.

    >>> unit_of("aim7.jobs-per-min")
    'jobs/min'
    """
    name = metric[-300:]
    for pattern, unit in _UNITS:
        if found := re.search(pattern, name):
            return found.expand(unit)
    return ""
