"""The drop directory: what is put there is imported, then moved to done/, or to refused/ with the reason beside it."""

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
_SETTLED = 1.0  # seconds without a change: until then the file may still be written to
_PARTNER_WAIT = 60.0  # seconds that may pass between a log and its samples
_OWN_FOLDERS = ("done", "refused")


def take_dropped(drop: Path, trees: Sequence[Path], now: datetime) -> int:
    """Import settled files and directories in order of name; return the number of results. Names with a leading dot
    are unfinished and skipped.
    """
    if not drop.is_dir():
        return 0
    taken = 0
    for entry in sorted(each for each in drop.iterdir() if each.name[0] != "." and each.name not in _OWN_FOLDERS):
        try:
            if _is_settled(entry) and not _waits_for_partner(entry):
                taken += _take_entry(entry, trees, now)
        except FileNotFoundError:  # another worker took it
            continue
        except RejectedInput as rejection:
            if entry.exists():  # else another worker took it
                log.error("%s: %s", entry.name, rejection)
        except OSError as error:  # logged; the other entries are still imported
            log.error("%s: %s", entry.name, error)
    return taken


def _is_settled(entry: Path) -> bool:
    youngest = entry.lstat().st_mtime
    if entry.is_dir() and not entry.is_symlink():
        youngest = max([youngest, *(each.lstat().st_mtime for each in entry.rglob("*"))])
    return time.time() - youngest >= _SETTLED


def _waits_for_partner(entry: Path) -> bool:
    """Whether a file must wait for its partner: a log and its samples are imported together."""
    if entry.is_symlink() or not entry.is_file():
        return False
    head = head_of(entry, entry.parent)
    if not bisect_log.is_log(head) and not bisect_log.is_samples(head):
        return False
    if partner := partner_of(entry):
        return entry.suffix == ".csv" or not _is_settled(partner)
    return time.time() - entry.lstat().st_ctime < _PARTNER_WAIT  # ctime: when it was renamed, not written


def _take_entry(entry: Path, trees: Sequence[Path], now: datetime) -> int:
    """Import the results of one entry, then move it. A crash before the move only repeats the import."""
    taken = 0
    rejections: list[RejectedInput] = []
    partners = _partners(entry) if entry.is_file() and not entry.is_symlink() else []
    if entry.is_symlink():
        rejections.append(RejectedInput(entry.name, "a symbolic link: put the file itself here"))
    else:
        try:
            for answer in take_in(read_path(entry), trees, now):
                taken += answer.rejection is None
                if answer.rejection:
                    rejections.append(answer.rejection)
                    log.warning("rejected: %s", answer.rejection)
        except (ValueError, ArithmeticError, RecursionError, RuntimeError, TypeError, LookupError) as error:
            log.exception("%s", entry.name)  # a bug: move it out of the way
            rejections.append(
                RejectedInput(entry.name, f"a bug, please report it: {str(error) or type(error).__name__}")
            )
    folder = entry.parent / ("refused" if rejections else "done")
    folder.mkdir(exist_ok=True)
    for each in (entry, *partners):
        target = rejected_input.free_name(folder, each.name, now)
        each.rename(target)  # first: another worker may have moved it meanwhile
        if rejections and each is entry:
            rejected_input.write_reasons(target, rejections)
    return taken


def _partners(entry: Path) -> list[Path]:
    """Return the samples that are imported and moved together with a log."""
    samples = partner_of(entry) if bisect_log.is_log(head_of(entry, entry.parent)) else None
    return [samples] if samples else []
