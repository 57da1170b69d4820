"""The drop directory: what a lab puts there is taken, and moved to done/ or refused/ with the reason beside it."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from pathlib import Path

from django.db import DataError

from bot.ingest.errors import Refused
from bot.ingest.formats import read_path
from bot.ingest.store import take

log = logging.getLogger(__name__)
_SETTLED = 1.0  # seconds that a file must have been left alone: it may still be written


def take_dropped(drop: Path, now: datetime) -> int:
    """Take every settled file of the directory, oldest first. Names that begin with a dot are not finished."""
    if not drop.is_dir():
        return 0
    files = [file for file in drop.iterdir() if file.is_file() and not file.is_symlink() and file.name[0] != "."]
    taken = 0
    for file in sorted(files, key=lambda each: each.name):
        try:
            if time.time() - file.stat().st_mtime >= _SETTLED:
                taken += _take_file(file, now)
        except FileNotFoundError:  # another worker was faster
            continue
        except (OSError, ValueError, DataError) as error:  # this file's trouble: the next one is taken
            log.error("%s: %s", file.name, error)
    return taken


def _take_file(file: Path, now: datetime) -> int:
    """Take the results of one file, then move it. A death before the move repeats it, which does no harm."""
    taken, refusals = 0, []
    for each in read_path(file):
        try:
            if each.result is None:
                raise each.refusal or Refused(each.where, "nothing to take")
            take(each.result, now)
            taken += 1
        except Refused as refusal:
            refusals.append(str(refusal))
            log.warning("refused: %s", refusal)
    if not file.exists():  # another worker has it
        return taken
    folder = file.parent / ("refused" if refusals else "done")
    folder.mkdir(exist_ok=True)
    target = folder / file.name[-150:]
    if target.exists():
        target = folder / f"{now:%Y%m%dT%H%M%S%f}-{file.name[-150:]}"
    if refusals:
        reason = ("\n".join(refusals) + "\n").encode("utf-8", "backslashreplace")
        target.with_name(target.name + ".reason").write_bytes(reason)
    file.rename(target)
    return taken
