"""Limits for results of every format: lengths of names, single-line text and sample counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.results.bisect_result import CommitInfo, Result
from bot.results.errors import RejectedInput
from bot.results.kernel_result import KernelResult

NAME = 500  # characters of a name or an id
TEXT = 2000  # characters of text that is only displayed
RUNS = 1_000_000_000  # per side
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_SHA = re.compile(r"[0-9a-f]{40}\Z")


def checked(result: Result, where: str) -> Result:
    """Return `result` unchanged. Raise RejectedInput for text that can't be stored or shown on one line, a bad sha,
    equal parent and culprit, or a sample count that is too large.
    """
    _check_texts(result.payload, _names(result), where)
    for commit in _commits(result):
        if not _SHA.match(commit.sha):
            raise RejectedInput(where, f"expected a full sha of 40 hex digits, found {commit.sha[:60]!r}")
    if result.culprit and result.parent and result.culprit.sha == result.parent.sha:
        raise RejectedInput(where, f"expected two commits, found {result.culprit.sha[:12]} as both parent and culprit")
    for run in result.runs:
        for each in run.measurements:
            if not 0 < max(each.old.n, each.new.n) <= RUNS:
                raise RejectedInput(where, f"expected at most {RUNS:,} runs of {each.metric[:80]}, found more")
    return result


def checked_release(result: KernelResult, where: str) -> KernelResult:
    """Do the same for a release result."""
    _check_texts(result.payload, _names_of_release(result), where)
    for each in (each for test in result.tests for each in test.measured):
        if not 0 < each.side.n <= RUNS:
            raise RejectedInput(where, f"expected at most {RUNS:,} runs of {each.metric[:80]}, found more")
    return result


def _check_texts(payload: str, names: Iterator[tuple[str, str, int]], where: str) -> None:
    if not _can_be_stored(payload):
        raise RejectedInput(where, "text contains a NUL or a lone surrogate; remove it")
    for what, name, limit in names:
        if len(name) > limit:
            raise RejectedInput(where, f"{what}: expected at most {limit} characters, found {len(name)}")
        if _CONTROL.search(name):
            raise RejectedInput(where, f"{what}: expected a single line, found {name[:60]!r}")


def _can_be_stored(payload: str) -> bool:
    """Whether a JSON payload is free of NULs, which PostgreSQL rejects, and of lone surrogates."""
    try:
        payload.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in payload or "\\u0000" not in payload.replace("\\\\", "")


def _commits(result: Result) -> Iterator[CommitInfo]:
    return (each for each in (result.good, result.bad, result.culprit, result.parent) if each)


def _names(result: Result) -> Iterator[tuple[str, str, int]]:
    """Yield (label, text, character limit) for every text that is stored in a column of its own."""
    yield from (
        ("producer", result.producer, NAME),
        ("id", result.id, NAME),
        ("patch Message-ID", result.patch_message_id, NAME),
    )
    yield from (("tree", result.tree, NAME), ("branch", result.branch, NAME), ("tree URL", result.tree_url, TEXT))
    for commit in _commits(result):
        yield from (("title", commit.title, TEXT), ("description", commit.describe, TEXT))
        yield from (("author email", commit.author_email, NAME), ("author name", commit.author_name, NAME))
    for run in result.runs:
        yield from (("suite", run.suite, NAME), ("machine", run.machine.id, NAME))
        for each in run.measurements:
            yield from (("metric", each.metric, NAME), ("unit", each.unit, NAME))


def _names_of_release(result: KernelResult) -> Iterator[tuple[str, str, int]]:
    yield from (("producer", result.producer, NAME), ("id", result.id, NAME))
    yield from (("kernel", result.kernel.name, NAME), ("variant", result.kernel.variant, NAME))
    yield ("description", result.kernel.describe, TEXT)
    yield from (("evidence name", each.name, NAME) for each in result.evidence)
    for test in result.tests:
        yield from (("suite", test.suite, NAME), ("machine", test.machine.id, NAME))
        for each in test.measured:
            yield from (("metric", each.metric, NAME), ("unit", each.unit, NAME))
