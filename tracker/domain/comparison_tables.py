"""A robot's comparison tables as they are kept: packed, since one report may have three thousand rows. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

MAX_ROWS = 20_000  # of one report; the longest real one has 3,000
_MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row as printed: means, spreads in per cent (None: below 2 %), and the change with its sign and unit."""

    name: str
    old: float
    old_stddev_pct: float | None
    change: str
    new: float
    new_stddev_pct: float | None


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """How many runs failed in a way, as printed: "0:4", "25%", "1:4"."""

    name: str
    old: str
    change: str
    new: str


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One table: what its test was ("nr_task=50%, …"), on which commits, its rows, and the failures of runs."""

    test: str
    parent: str
    culprit: str
    rows: tuple[TableRow, ...]
    fails: tuple[FailedRuns, ...] = ()


def pack(tables: Sequence[KeptTable]) -> bytes:
    """Tables in a tenth of the space that their mail takes; the rows past MAX_ROWS are left to the mail."""
    room = MAX_ROWS
    kept = []
    for table in tables:
        rows = table.rows[:room]
        fails = table.fails[: room - len(rows)]
        room -= len(rows) + len(fails)
        kept.append([table.test, table.parent, table.culprit, [astuple(row) for row in rows], [*map(astuple, fails)]])
    return zlib.compress(json.dumps(kept).encode())


def unpack(packed: bytes) -> tuple[KeptTable, ...]:
    """What `pack` kept; nothing of nothing."""
    if not packed:
        return ()
    told = json.loads(zlib.decompressobj().decompress(packed, _MAX_BYTES))
    return tuple(_table(*each) for each in told)


def _table(
    test: str, parent: str, culprit: str, rows: Sequence[Sequence[Any]], fails: Sequence[Sequence[str]] = ()
) -> KeptTable:
    """One table as it was packed, before failures were kept or since."""
    told = tuple(TableRow(*row) for row in rows)
    return KeptTable(test, parent, culprit, told, tuple(FailedRuns(*fail) for fail in fails))
