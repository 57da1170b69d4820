"""The refused/ folder: what could not be taken, as it came, with the reason beside it."""

from __future__ import annotations

import logging
import re
from datetime import datetime
from pathlib import Path

from bot.results.errors import RejectedInput

log = logging.getLogger(__name__)
_MOST = 10_000  # files; after that somebody has to look before more is kept (DESIGN rule 10)
_MOST_BYTES = 4 << 30


def keep(raw: bytes, refusal: RejectedInput, drop: Path, now: datetime) -> Path | None:
    """Keep the bytes of a refused input that nobody else has. None where there is no room for more."""
    folder = drop / "refused"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [each.lstat().st_size for each in folder.iterdir()]
    if len(sizes) >= _MOST or sum(sizes) + len(raw) > _MOST_BYTES:
        log.error("%s is full: look through it; refused and not kept: %s", folder, refusal)
        return None
    name = re.sub(r"[^\w.-]+", "-", refusal.where)[:60].strip("-.") or "input"
    target = free_name(folder, f"{name}.json", now)
    target.write_bytes(raw)
    tell(target, [refusal])
    return target


def tell(target: Path, refusals: list[RejectedInput]) -> None:
    """Write the reason beside a refused file."""
    reason = "".join(f"{refusal}\n" for refusal in refusals).encode("utf-8", "backslashreplace")
    target.with_name(target.name + ".reason").write_bytes(reason)


def free_name(folder: Path, name: str, now: datetime) -> Path:
    """A name in a folder that nothing has yet: the wanted one, else with the time before it, and a number."""
    name = name.encode("utf-8", "replace")[-150:].decode("utf-8", "ignore").lstrip(".") or "input"
    stamp = f"{now:%Y%m%dT%H%M%S%f}"
    wanted = (name, f"{stamp}-{name}", *(f"{stamp}-{number}-{name}" for number in range(2, 2 * _MOST)))
    return next(folder / each for each in wanted if not (folder / each).exists() and not (folder / each).is_symlink())
