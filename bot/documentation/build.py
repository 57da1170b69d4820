"""Build the documentation into a directory, whole or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bot.errors import Unreadable

ROOT = Path(__file__).resolve().parent.parent.parent
_OURS = ".perfwork-documentation"  # marks a site that may be replaced


def build(to: Path, home: str = "") -> None:
    """Build all pages with ProperDocs, strictly: a broken link is an error. `home`: where the site links back to.

    Raises Unreadable with what is wrong. An earlier site is replaced, and only by a complete one; a directory with
    anything else in it is refused.
    """
    to = to.resolve()
    if to.exists() and not (to / _OURS).exists() and any(to.iterdir()):
        raise Unreadable(f"{to} is not empty, and not a site that was built before: name another directory")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".documentation-") as folder:
        made = Path(folder) / "site"
        done = subprocess.run(
            [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(made)],
            cwd=ROOT,
            env={
                **os.environ,
                "PERFWORK_VAR": str(Path(folder) / "var"),  # it uses no data, and leaves none behind
                "PERFWORK_HOME_LINK": home,
                "PERFWORK_DIRECTORY_URLS": "true" if home else "false",
            },
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Unreadable(f"the documentation can't be built: {_faults(done.stdout + done.stderr)}")
        made.chmod(0o755)
        (made / _OURS).touch()
        if to.exists():
            to.rename(Path(folder) / "before")
        made.rename(to)


def _faults(printed: str) -> str:
    """Return what ProperDocs printed on one line, without its progress."""
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith(("INFO", "Aborted"))]
    return " ".join(re.sub(r"^(?:WARNING|ERROR) +-? *", "", line) for line in lines[:20])
