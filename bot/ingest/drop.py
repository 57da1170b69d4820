"""The drop directory: what a lab puts there is taken, and moved to done/ or refused/ with the reason beside it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bot.ingest import bisect_log, refused
from bot.ingest.errors import Refused
from bot.ingest.formats import partner_of, read_path
from bot.ingest.intake import take_in

log = logging.getLogger(__name__)
_SETTLED = 1.0  # seconds that a file must have been left alone: it may still be written
_OURS = ("done", "refused")


def take_dropped(drop: Path, trees: Sequence[Path], now: datetime) -> int:
    """Take every settled file and directory, in order of name. Names that begin with a dot are not finished."""
    if not drop.is_dir():
        return 0
    taken = 0
    for entry in sorted(each for each in drop.iterdir() if each.name[0] != "." and each.name not in _OURS):
        try:
            if _is_settled(entry) and not _follows(entry):
                taken += _take_entry(entry, trees, now)
        except FileNotFoundError:  # another worker was faster
            continue
        except (
            OSError,
            ValueError,
            ArithmeticError,
            TypeError,
            LookupError,
        ) as error:  # this one's trouble: the next one is taken
            log.error("%s: %s", entry.name, error)
    return taken


def _is_settled(entry: Path) -> bool:
    youngest = entry.lstat().st_mtime
    if entry.is_dir() and not entry.is_symlink():
        youngest = max([youngest, *(each.lstat().st_mtime for each in entry.rglob("*"))])
    return time.time() - youngest >= _SETTLED


def _follows(entry: Path) -> bool:
    """Whether a file goes with another one of the directory: samples wait for their log, and go with it."""
    return entry.suffix == ".csv" and not entry.is_symlink() and partner_of(entry) is not None


def _take_entry(entry: Path, trees: Sequence[Path], now: datetime) -> int:
    """Take the results of one entry, then move it. A death before the move repeats it, which does no harm."""
    taken = 0
    refusals: list[Refused] = []
    company = _company(entry) if entry.is_file() and not entry.is_symlink() else []
    if entry.is_symlink():
        refusals.append(Refused(entry.name, "a symbolic link: put the file itself here"))
    else:
        for answer in take_in(read_path(entry), trees, now):
            taken += answer.refusal is None
            if answer.refusal:
                refusals.append(answer.refusal)
                log.warning("refused: %s", answer.refusal)
    folder = entry.parent / ("refused" if refusals else "done")
    folder.mkdir(exist_ok=True)
    for each in (entry, *company):
        target = refused.free_name(folder, each.name, now)
        if refusals and each is entry:
            refused.tell(target, refusals)
        each.rename(target)
    return taken


def _company(entry: Path) -> list[Path]:
    """The samples that are read with a log, and go where it goes."""
    with entry.open("rb") as stream:
        is_log = bisect_log.is_log(stream.read(20_000).decode("utf-8", "replace"))
    samples = partner_of(entry) if is_log else None
    return [samples] if samples else []
