"""The single entry point for results, from the command, the drop directory or the network.

Inputs are imported in batches, which bound memory and transactions. Before the database is locked, git trees are
asked for the author, parents and changes of the commits; sides of which the order was only guessed are swapped if a
tree says so.

What is put into the drop directory is imported once it has settled, then moved to done/, or to refused/ with the
reason beside it. A git bisect log and its samples are imported and moved together. A crash before the move only
repeats the import.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.git.inspection import CommitInspection, inspect
from bot.results import recognise
from bot.results.formats import bisect_log
from bot.results.formats.files import head_of
from bot.results.recognise import Input, partner_of, read_path
from bot.results.storage import Receipt, ReleaseReceipt, take_all, take_kernel_results
from bot.results.values import KernelResult, RejectedInput, Result

# --- Batches ---

_BATCH = 200  # results per transaction
_BATCH_BYTES = 4 << 20  # of payload per transaction, roughly, to bound memory


@dataclass(frozen=True, slots=True)
class IntakeAnswer:
    """The outcome of one input: a receipt, or the error, with the bytes if there is no other copy."""

    where: str
    result: Result | KernelResult | None
    receipt: Receipt | ReleaseReceipt | None
    rejection: RejectedInput | None
    raw: bytes = b""


def take_in(inputs: Iterable[Input], trees: Sequence[Path], now: datetime) -> Iterator[IntakeAnswer]:
    """Import every input, in batches; yield the answers in the order of the inputs.

    `trees`: git repositories that are asked for a culprit's author and changes before the database is locked.
    """
    for batch in _batches(inputs):
        yield from _take(batch, trees, now)


def _batches(inputs: Iterable[Input]) -> Iterator[list[Input]]:
    waiting: list[Input] = []
    size = 0
    for submission in inputs:
        waiting.append(submission)
        size += len(submission.result.payload) if submission.result else len(submission.raw)
        if len(waiting) >= _BATCH or size >= _BATCH_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _take(inputs: Sequence[Input], trees: Sequence[Path], now: datetime) -> Iterator[IntakeAnswer]:
    results = [submission.result for submission in inputs if isinstance(submission.result, Result)]
    seen = inspect(trees, list(_commits(results))) if trees else {}
    results = [_parent_first(result, seen) for result in results]
    taken = iter(zip(results, take_all(results, now, seen), strict=True)) if results else iter(())
    for submission in inputs:
        if submission.result is None:
            yield IntakeAnswer(
                submission.where,
                None,
                None,
                submission.rejection or RejectedInput(submission.where, "no result found"),
                submission.raw,
            )
            continue
        result: Result | KernelResult
        answer: Receipt | ReleaseReceipt | RejectedInput
        if isinstance(submission.result, KernelResult):
            result, answer = submission.result, take_kernel_results(submission.result, now)
        else:
            result, answer = next(taken)
        if isinstance(answer, RejectedInput):
            yield IntakeAnswer(submission.where, result, None, answer.at(submission.where), result.payload.encode())
        else:
            yield IntakeAnswer(submission.where, result, answer, None)


def _commits(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        yield from dict.fromkeys(commit.sha for commit in (result.culprit, result.parent, result.bad) if commit)


def _parent_first(result: Result, seen: dict[str, CommitInspection]) -> Result:
    """Return the result with its sides swapped if its parent was only guessed and a git tree says otherwise."""
    if not result.may_be_reversed or result.culprit is None or result.parent is None:
        return result
    parent = seen.get(result.parent.sha)
    if parent is None or result.culprit.sha not in parent.parents:
        return result
    return result.reversed()


# --- The drop directory ---

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
    for entry in sorted(path for path in drop.iterdir() if path.name[0] != "." and path.name not in _OWN_FOLDERS):
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
        youngest = max([youngest, *(path.lstat().st_mtime for path in entry.rglob("*"))])
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
    for path in (entry, *partners):
        target = recognise.free_name(folder, path.name, now)
        path.rename(target)  # first: another worker may have moved it meanwhile
        if rejections and path is entry:
            recognise.write_reasons(target, rejections)
    return taken


def _partners(entry: Path) -> list[Path]:
    """Return the samples that are imported and moved together with a log."""
    samples = partner_of(entry) if bisect_log.is_log(head_of(entry, entry.parent)) else None
    return [samples] if samples else []
