"""Build the documentation into a directory, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bot.errors import Unreadable

ROOT = Path(__file__).resolve().parent.parent.parent


def build(to: Path, home: str = "") -> None:
    """Build all pages with ProperDocs, strictly: a broken link is an error. `home`: where the site links back to.

    Raises Unreadable with what is wrong. What was in the directory before is replaced only by a complete build.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".documentation-") as folder:
        made = Path(folder) / "site"
        done = subprocess.run(
            [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(made)],
            cwd=ROOT,
            env={**os.environ, "PERFWORK_HOME_LINK": home},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Unreadable(f"the documentation can't be built: {_faults(done.stdout + done.stderr)}")
        made.chmod(0o755)
        if to.exists():
            shutil.move(to, Path(folder) / "before")
        shutil.move(made, to)


def _faults(printed: str) -> str:
    """Return what ProperDocs printed on one line, without its progress."""
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith(("INFO", "Aborted"))]
    return " ".join(re.sub(r"^(?:WARNING|ERROR) +-? *", "", line) for line in lines[:20])
