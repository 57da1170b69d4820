"""The comparison tables of robots' reports as stored: compressed, since one may have 3,000 rows. Pure.

Packed to a tenth of the size of their mail; rows beyond MAX_ROWS are only in the mail.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

MAX_ROWS = 20_000  # per report; the longest real one has 3,000
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
    """How many runs failed in one way, as printed: "0:4", "25%", "1:4"."""

    name: str
    old: str
    change: str
    new: str


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One table: its test ("nr_task=50%, …"), its two commits, its rows, and the failed runs."""

    test: str
    parent: str
    culprit: str
    rows: tuple[TableRow, ...]
    fails: tuple[FailedRuns, ...] = ()


_row_values = attrgetter(*(field.name for field in fields(TableRow)))  # astuple() copies deeply, ten times as slowly
_fail_values = attrgetter(*(field.name for field in fields(FailedRuns)))


def pack(tables: Sequence[KeptTable]) -> bytes:
    """Compress tables to a tenth of the size of their mail; rows beyond MAX_ROWS are only in the mail."""
    room = MAX_ROWS
    kept = []
    for table in tables:
        rows = table.rows[:room]
        fails = table.fails[: room - len(rows)]
        room -= len(rows) + len(fails)
        kept.append([table.test, table.parent, table.culprit, [*map(_row_values, rows)], [*map(_fail_values, fails)]])
    return zlib.compress(json.dumps(kept).encode())


def unpack(packed: bytes) -> tuple[KeptTable, ...]:
    """Return the tables that `pack` stored; () for empty bytes."""
    if not packed:
        return ()
    tables = []
    for test, parent, culprit, rows, *fails in json.loads(zlib.decompressobj().decompress(packed, _MAX_BYTES)):
        failed = (FailedRuns(*row) for row in (fails[0] if fails else ()))  # in the past, there were none
        tables.append(KeptTable(test, parent, culprit, tuple(TableRow(*row) for row in rows), tuple(failed)))
    return tuple(tables)
