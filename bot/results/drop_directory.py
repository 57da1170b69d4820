"""The drop directory: what a lab puts there is taken, and moved to done/ or refused/ with the reason beside it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bot.results import rejected_input
from bot.results.errors import RejectedInput
from bot.results.files import head_of
from bot.results.formats import bisect_log
from bot.results.intake import take_in
from bot.results.recognise import partner_of, read_path

log = logging.getLogger(__name__)
_SETTLED = 1.0  # seconds that a file must have been left alone: it may still be written
_PATIENCE = 60.0  # seconds that a log and its samples may come apart
_OURS = ("done", "refused")


def take_dropped(drop: Path, trees: Sequence[Path], now: datetime) -> int:
    """Take every settled file and directory, in order of name. Names that begin with a dot are not finished."""
    if not drop.is_dir():
        return 0
    taken = 0
    for entry in sorted(each for each in drop.iterdir() if each.name[0] != "." and each.name not in _OURS):
        try:
            if _is_settled(entry) and not _waits(entry):
                taken += _take_entry(entry, trees, now)
        except FileNotFoundError:  # another worker was faster
            continue
        except OSError as error:  # this one's trouble, or the directory's: the next one is taken
            log.error("%s: %s", entry.name, error)
    return taken


def _is_settled(entry: Path) -> bool:
    youngest = entry.lstat().st_mtime
    if entry.is_dir() and not entry.is_symlink():
        youngest = max([youngest, *(each.lstat().st_mtime for each in entry.rglob("*"))])
    return time.time() - youngest >= _SETTLED


def _waits(entry: Path) -> bool:
    """Whether a file goes with another one: samples go with their log, and each waits for the other."""
    if entry.is_symlink() or not entry.is_file():
        return False
    head = head_of(entry, entry.parent)
    if not bisect_log.is_log(head) and not bisect_log.is_samples(head):
        return False
    if partner := partner_of(entry):
        return entry.suffix == ".csv" or not _is_settled(partner)
    return time.time() - entry.lstat().st_ctime < _PATIENCE  # the time of its renaming, not of its writing


def _take_entry(entry: Path, trees: Sequence[Path], now: datetime) -> int:
    """Take the results of one entry, then move it. A death before the move repeats it, which does no harm."""
    taken = 0
    refusals: list[RejectedInput] = []
    company = _company(entry) if entry.is_file() and not entry.is_symlink() else []
    if entry.is_symlink():
        refusals.append(RejectedInput(entry.name, "a symbolic link: put the file itself here"))
    else:
        try:
            for answer in take_in(read_path(entry), trees, now):
                taken += answer.refusal is None
                if answer.refusal:
                    refusals.append(answer.refusal)
                    log.warning("refused: %s", answer.refusal)
        except (ValueError, ArithmeticError, RecursionError, RuntimeError, TypeError, LookupError) as error:
            log.exception("%s", entry.name)  # a fault of ours: out of the way with it, so that the next one is taken
            refusals.append(RejectedInput(entry.name, f"can't be understood: {str(error) or type(error).__name__}"))
    folder = entry.parent / ("refused" if refusals else "done")
    folder.mkdir(exist_ok=True)
    for each in (entry, *company):
        target = rejected_input.free_name(folder, each.name, now)
        if refusals and each is entry:
            rejected_input.tell(target, refusals)
        each.rename(target)
    return taken


def _company(entry: Path) -> list[Path]:
    """The samples that are read with a log, and go where it goes."""
    samples = partner_of(entry) if bisect_log.is_log(head_of(entry, entry.parent)) else None
    return [samples] if samples else []
