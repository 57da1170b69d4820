"""What holds for a result of any format: names that fit an index and a line, counts that fit a column. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.results.bisect_result import CommitInfo, Result
from bot.results.errors import RejectedInput
from bot.results.kernel_result import KernelResult

NAME = 500  # characters of what things are known by
TEXT = 2000  # characters of what is only shown
RUNS = 1_000_000_000  # a side
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_SHA = re.compile(r"[0-9a-f]{40}\Z")


def checked(result: Result, where: str) -> Result:
    """The same result; Refused where a text can't be stored, found or shown in a line, or a count is too large."""
    _check_texts(result.payload, _names(result), where)
    for commit in _commits(result):
        if not _SHA.match(commit.sha):
            raise RejectedInput(where, f"expected a sha of 40 digits, found {commit.sha[:60]!r}")
    if result.culprit and result.parent and result.culprit.sha == result.parent.sha:
        raise RejectedInput(where, f"expected a parent and a culprit, found {result.culprit.sha[:12]} as both")
    for run in result.runs:
        for each in run.measurements:
            if not 0 < max(each.old.n, each.new.n) <= RUNS:
                raise RejectedInput(where, f"expected at most {RUNS:,} runs of {each.metric[:80]}, found more")
    return result


def checked_release(result: KernelResult, where: str) -> KernelResult:
    """The same for a result of a released kernel."""
    _check_texts(result.payload, _names_of_release(result), where)
    for each in (each for test in result.tests for each in test.measured):
        if not 0 < each.side.n <= RUNS:
            raise RejectedInput(where, f"expected at most {RUNS:,} runs of {each.metric[:80]}, found more")
    return result


def _check_texts(payload: str, names: Iterator[tuple[str, str, int]], where: str) -> None:
    if not _can_be_stored(payload):
        raise RejectedInput(where, "a text holds a NUL or half of a character (a lone surrogate)")
    for what, name, limit in names:
        if len(name) > limit:
            raise RejectedInput(where, f"expected a {what} of at most {limit} characters, found {len(name)}")
        if _CONTROL.search(name):
            raise RejectedInput(where, f"expected a {what} on one line, found {name[:60]!r}")


def _can_be_stored(payload: str) -> bool:
    """Whether no text of a JSON payload holds a NUL, which PostgreSQL refuses, or half of a character."""
    try:
        payload.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in payload or "\\u0000" not in payload.replace("\\\\", "")


def _commits(result: Result) -> Iterator[CommitInfo]:
    return (each for each in (result.good, result.bad, result.culprit, result.parent) if each)


def _names(result: Result) -> Iterator[tuple[str, str, int]]:
    """Every text that is stored by itself: what it is, the text, and its limit."""
    yield from (
        ("producer", result.producer, NAME),
        ("id", result.id, NAME),
        ("patch mail", result.patch_message_id, NAME),
    )
    yield from (("tree", result.tree, NAME), ("branch", result.branch, NAME), ("tree's address", result.tree_url, TEXT))
    for commit in _commits(result):
        yield from (("title", commit.title, TEXT), ("description", commit.describe, TEXT))
        yield from (("author's address", commit.author_email, NAME), ("author's name", commit.author_name, NAME))
    for run in result.runs:
        yield from (("suite", run.suite, NAME), ("machine", run.machine.id, NAME))
        for each in run.measurements:
            yield from (("metric", each.metric, NAME), ("unit", each.unit, NAME))


def _names_of_release(result: KernelResult) -> Iterator[tuple[str, str, int]]:
    yield from (("producer", result.producer, NAME), ("id", result.id, NAME))
    yield from (("kernel", result.kernel.name, NAME), ("variant", result.kernel.variant, NAME))
    yield ("description", result.kernel.describe, TEXT)
    yield from (("name of evidence", each.name, NAME) for each in result.evidence)
    for test in result.tests:
        yield from (("suite", test.suite, NAME), ("machine", test.machine.id, NAME))
        for each in test.measured:
            yield from (("metric", each.metric, NAME), ("unit", each.unit, NAME))
