"""Empty SQLite databases with all tables, copied from one that is migrated once: migrating takes two seconds."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# --- Empty SQLite databases with all tables, copied from one that is migrated once: migrating takes two seconds ---

ROOT = Path(__file__).resolve().parents[2]


def migrated(database: Path) -> None:
    """Put an empty database of today's schema at this path."""
    database.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(_template(), database)


def _template() -> Path:
    """The database to copy; its name changes with the migrations, and with the settings that the seed may read."""
    migrations = sorted((ROOT / "tracker" / "migrations").glob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in migrations)).hexdigest()[:16]
    template = Path(tempfile.gettempdir()) / f"perfwork-tests-{os.getuid()}-{digest}.sqlite3"
    if not template.exists():
        with tempfile.TemporaryDirectory(prefix="migrated-") as place:
            made = Path(place) / "made.sqlite3"
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("PERFWORK_", "PYTEST_"))}
            environment = {**clean, "PERFWORK_VAR": place, "DATABASE_URL": f"sqlite:///{made}"}
            command = [sys.executable, "manage.py", "migrate", "-v0"]
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
            own = template.with_suffix(f".{os.getpid()}")
            shutil.copy(made, own)
            own.rename(template)  # whole or not at all: test processes run side by side
    return template


# --- Timers without a clock: a test ends them, and none of them outlives it ---


class Timers:
    """In place of `threading.Timer`: those that were started."""

    def __init__(self) -> None:
        self.running: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, done: Callable[..., None], args: tuple[Any, ...]) -> Timers:
        self._asked = (seconds, partial(done, *args))
        return self

    def start(self) -> None:
        self.running.append(self._asked)

    def end(self) -> list[float]:
        """Let all of them end. Return their seconds."""
        ended, self.running = self.running, []
        for _seconds, done in ended:
            done()
        return [seconds for seconds, _done in ended]
