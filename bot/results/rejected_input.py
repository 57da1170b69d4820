"""The refused/ folder: rejected input as received, with the reason beside it."""

from __future__ import annotations

import logging
import re
from datetime import datetime
from pathlib import Path

from bot.results.errors import RejectedInput

log = logging.getLogger(__name__)
_MOST = 2_000  # files; no more are kept until an operator removes some (DESIGN rule 10)
_MOST_BYTES = 1 << 30


def keep(raw: bytes, rejection: RejectedInput, drop: Path, now: datetime) -> Path | None:
    """Keep the bytes of rejected input that has no other copy. Return the path, or None if the folder is full."""
    folder = drop / "refused"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [each.lstat().st_size for each in folder.iterdir()]
    if len(sizes) >= _MOST or sum(sizes) + len(raw) > _MOST_BYTES:
        log.error("%s is full: check and remove files in it; rejected and not kept: %s", folder, rejection)
        return None
    name = re.sub(r"[^\w.-]+", "-", rejection.where)[:60].strip("-.") or "input"
    target = free_name(folder, f"{name}.json", now)
    target.write_bytes(raw)
    write_reasons(target, [rejection])
    return target


def write_reasons(target: Path, rejections: list[RejectedInput]) -> None:
    """Write the reasons beside a rejected file."""
    reason = "".join(f"{rejection}\n" for rejection in rejections).encode("utf-8", "backslashreplace")
    target.with_name(target.name + ".reason").write_bytes(reason)


def free_name(folder: Path, name: str, now: datetime) -> Path:
    """Return an unused path in a folder: the name itself, else with a timestamp and a number before it."""
    name = name.encode("utf-8", "replace")[-150:].decode("utf-8", "ignore").lstrip(".") or "input"
    stamp = f"{now:%Y%m%dT%H%M%S%f}"
    candidates = (name, f"{stamp}-{name}", *(f"{stamp}-{number}-{name}" for number in range(2, 2 * _MOST)))
    return next(
        folder / each for each in candidates if not (folder / each).exists() and not (folder / each).is_symlink()
    )
