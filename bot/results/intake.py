"""The single entry point for results, whether from the command, the drop directory or the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.git.inspection import CommitInspection, inspect
from bot.results.bisect_result import Result
from bot.results.errors import RejectedInput
from bot.results.kernel_result import KernelResult
from bot.results.recognise import Input
from bot.results.storage.bisect_results import Receipt, take_all
from bot.results.storage.kernel_results import ReleaseReceipt, take

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
    for each in inputs:
        waiting.append(each)
        size += len(each.result.payload) if each.result else len(each.raw)
        if len(waiting) >= _BATCH or size >= _BATCH_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _take(inputs: Sequence[Input], trees: Sequence[Path], now: datetime) -> Iterator[IntakeAnswer]:
    results = [each.result for each in inputs if isinstance(each.result, Result)]
    seen = inspect(trees, list(_commits(results))) if trees else {}
    results = [_parent_first(result, seen) for result in results]
    taken = iter(zip(results, take_all(results, now, seen), strict=True)) if results else iter(())
    for each in inputs:
        if each.result is None:
            yield IntakeAnswer(
                each.where, None, None, each.rejection or RejectedInput(each.where, "no result found"), each.raw
            )
            continue
        result: Result | KernelResult
        answer: Receipt | ReleaseReceipt | RejectedInput
        if isinstance(each.result, KernelResult):
            result, answer = each.result, take(each.result, now)
        else:
            result, answer = next(taken)
        if isinstance(answer, RejectedInput):
            yield IntakeAnswer(each.where, result, None, answer.at(each.where), result.payload.encode())
        else:
            yield IntakeAnswer(each.where, result, answer, None)


def _commits(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        yield from dict.fromkeys(each.sha for each in (result.culprit, result.parent, result.bad) if each)


def _parent_first(result: Result, seen: dict[str, CommitInspection]) -> Result:
    """Return the result with its sides swapped if its parent was only guessed and a git tree says otherwise."""
    if not result.may_be_reversed or result.culprit is None or result.parent is None:
        return result
    parent = seen.get(result.parent.sha)
    if parent is None or result.culprit.sha not in parent.parents:
        return result
    return result.reversed()
