"""What a backup says of itself: `manifest.json`, the first file in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from bot.operations.errors import BackupError

FORMAT = "perfwork-backup/1"
NAME = "manifest.json"
LARGEST = 1 << 20  # bytes
ENGINES = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Manifest:
    """`migrations`: those applied in it. `sha256` is of the member `database`. `rows`: numbers of rows, to compare."""

    made_at: datetime
    engine: str
    database: str
    sha256: str
    migrations: Sequence[str]
    rows: Mapping[str, int]

    def text(self) -> str:
        values = {"format": FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}
        return json.dumps(values, indent=1, sort_keys=True) + "\n"


def read_manifest(raw: bytes) -> Manifest:
    """Read a manifest. Raises BackupError if it is none, or of another format."""
    try:
        values = json.loads(raw)
        if values["format"] != FORMAT:
            raise BackupError(f"{NAME}: expected the format {FORMAT}, found {values['format']!r}")
        found = Manifest(
            made_at=datetime.fromisoformat(values["made_at"]),
            engine=str(values["engine"]),
            database=str(values["database"]),
            sha256=str(values["sha256"]),
            migrations=[str(each) for each in values["migrations"]],
            rows={str(name): int(number) for name, number in values["rows"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"{NAME} is not that of a backup: {type(error).__name__}: {error}") from None
    if found.engine not in ENGINES or found.made_at.tzinfo is None:
        raise BackupError(f"{NAME}: unknown database {found.engine!r}, or a time without its zone")
    return found
