"""How much is stored, by table and directory, and how that grows: measured once a day, shown at `/operating/`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import DatabaseError, connection, transaction

from tracker.models import StoredSize

WEEK = timedelta(days=7)
KEPT = timedelta(days=60)  # measurements
LARGEST = 20  # of the tables and directories of one day
LEAST = 1 << 20  # bytes, below which nobody needs to look

# Indexes count with their table. Partitions, which have a parent, count with that.
_POSTGRESQL = """
SELECT COALESCE(parent.relname, part.relname), SUM(pg_total_relation_size(part.oid))
  FROM pg_class part
  LEFT JOIN pg_inherits ON pg_inherits.inhrelid = part.oid
  LEFT JOIN pg_class parent ON parent.oid = pg_inherits.inhparent
 WHERE part.relkind IN ('r', 'm') AND part.relnamespace = 'public'::regnamespace
 GROUP BY 1"""
_SQLITE = """
SELECT COALESCE(tbl_name, stored.name), SUM(pgsize)
  FROM dbstat AS stored LEFT JOIN sqlite_master ON sqlite_master.name = stored.name
 WHERE aggregate = TRUE GROUP BY 1"""


@dataclass(frozen=True, slots=True)
class Growth:
    """A table or directory: its bytes, and how many more than a week before; None if that is not known yet."""

    name: str
    size: int
    grown: int | None


def measure(directories: Mapping[str, Path]) -> dict[str, int]:
    """Return the bytes of the tables, and of directories by the name to show."""
    sizes = {name: _bytes_in(path) for name, path in directories.items() if path.is_dir()}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL if connection.vendor == "postgresql" else _SQLITE)
            sizes |= {f"table {name.removeprefix('tracker_')}": int(size) for name, size in cursor.fetchall()}
    except DatabaseError:  # an SQLite without dbstat
        sizes["database"] = Path(str(connection.settings_dict["NAME"])).stat().st_size
    return sizes


def _bytes_in(folder: Path) -> int:
    """Return the bytes of all files below; what vanishes meanwhile, or can't be read, counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def record(sizes: Mapping[str, int], now: datetime) -> None:
    """Store the largest of today's sizes, and forget those of long ago."""
    largest = sorted((name for name in sizes if sizes[name] >= LEAST), key=lambda name: (-sizes[name], name))[:LARGEST]
    with transaction.atomic():
        StoredSize.objects.filter(at__lt=now - KEPT).delete()
        StoredSize.objects.bulk_create(StoredSize(name=name, size=sizes[name], at=now) for name in largest)


def growth(now: datetime) -> list[Growth]:
    """Return what is stored by the last measurement, the largest first."""
    rows = list(StoredSize.objects.filter(at__gt=now - 2 * WEEK).order_by("-at", "-size", "name"))
    if not rows:
        return []
    newest = rows[0].at
    before = newest - WEEK + timedelta(hours=12)  # measurements are a day apart, more or less
    earlier = {row.name: row.size for row in reversed(rows) if row.at <= before}  # the last one of each name stays
    return [
        Growth(row.name, row.size, row.size - earlier[row.name] if row.name in earlier else None)
        for row in rows
        if row.at == newest
    ]
