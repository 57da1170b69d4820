"""Bisect results into the database: each stored once, whole, with its findings, its report and its events.

Many results share a few queries; new_results.py stores what belongs to the new ones.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import DataError, IntegrityError, OperationalError, transaction

from bot.git.inspection import CommitInspection
from bot.results.bisect_result import Result
from bot.results.errors import Conflict, RejectedInput
from bot.results.storage.new_results import store_new
from tracker.models import BisectResult, Report
from tracker.services.sql import locks
from tracker.services.sql.locks import Lock

log = logging.getLogger(__name__)
_TRIES = 4


class Taken(StrEnum):
    """The outcome for a result that was not rejected."""

    NEW = "new"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome for a result: its row, and the report it belongs to, if any."""

    taken: Taken
    row: BisectResult
    report: Report | None

    @property
    def held(self) -> str:
        return self.row.held

    @property
    def summary(self) -> str:
        """The receipt as one line: the report, why it is held, and what the result says of other reports."""
        report = f"report {self.report.culprit.sha10}" if self.report else f"{self.row.outcome}, no report"
        held = f"held: {self.held.replace(chr(10), '; ')}" if self.held else ""
        return "; ".join(each for each in (report, held, self.row.note) if each)


def take(result: Result, now: datetime, seen: Mapping[str, CommitInspection] | None = None) -> Receipt:
    """Store one result; the same content again is a duplicate.

    Raise RejectedInput, or Conflict for other content under its key.
    """
    (answer,) = take_all([result], now, seen or {})
    if isinstance(answer, RejectedInput):
        raise answer
    return answer


def take_all(
    results: Sequence[Result], now: datetime, seen: Mapping[str, CommitInspection]
) -> list[Receipt | RejectedInput]:
    """Store results in one transaction, or one by one if the database rejects one of them.

    `seen`: the commits named in the results, as git trees have them. Answers are in the order of the results.
    """
    for attempt in range(_TRIES):
        try:
            with transaction.atomic():
                return _take(results, now, seen)
        except (DataError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
            if len(results) == 1:
                return [
                    RejectedInput(
                        "", f"the database can't store it: {(str(error) or type(error).__name__).splitlines()[0]}"
                    )
                ]
            break
        except (IntegrityError, OperationalError) as error:
            # A mail reader created the same commit or machine at the same time, or the two deadlocked.
            log.info("attempt %d failed: %s", attempt + 1, error)
            if attempt == _TRIES - 1 and len(results) == 1:
                raise
    return [answer for result in results for answer in take_all([result], now, seen)]


def _take(
    results: Sequence[Result], now: datetime, seen: Mapping[str, CommitInspection]
) -> list[Receipt | RejectedInput]:
    locks.take(Lock.RESULT_INTAKE)  # two batches at once would wait for each other's rows
    digests = [hashlib.sha256(result.payload.encode()).hexdigest() for result in results]
    known = _known(results)
    fresh: dict[tuple[str, str], tuple[Result, BisectResult]] = {}
    for result, digest in zip(results, digests, strict=True):
        if result.key not in known:
            known[result.key] = _row(result, digest, now)
            fresh[result.key] = (result, known[result.key])
    store_new([result for result, _ in fresh.values()], [row for _, row in fresh.values()], now, seen)
    answers: list[Receipt | RejectedInput] = []
    for result, digest in zip(results, digests, strict=True):
        row = known[result.key]
        is_new = fresh.pop(result.key, None) is not None
        if row.digest != digest and (paths := changed_paths(json.loads(row.payload), json.loads(result.payload))):
            answers.append(_conflict(row, paths))
        else:
            answers.append(Receipt(Taken.NEW if is_new else Taken.DUPLICATE, row, row.report))
    return answers


def _known(results: Sequence[Result]) -> dict[tuple[str, str], BisectResult]:
    """Return the rows that already hold the keys of these results."""
    rows = BisectResult.objects.filter(
        producer__in={result.producer for result in results}, external_id__in={result.id for result in results}
    )
    return {
        (row.producer, row.external_id): row
        for row in rows.select_related("report__culprit").defer("payload", "report__authors", "report__recipients")
    }


def _row(result: Result, digest: str, now: datetime) -> BisectResult:
    return BisectResult(
        producer=result.producer,
        external_id=result.id,
        digest=digest,
        format=result.format,
        payload=result.payload,
        outcome=result.outcome,
        bad_sha=result.bad.sha,
        created_at=result.created_at or now,
        received_at=now,
    )


def _conflict(row: BisectResult, paths: Sequence[str]) -> Conflict:
    return Conflict("", conflict_reason(str(row), paths), [(path, "differs") for path in paths])


def conflict_reason(name: str, paths: Sequence[str]) -> str:
    """Return why a result is rejected whose key is known already; `paths`: where the two differ."""
    listed = ", ".join(each or "the whole document" for each in paths[:5])
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return f"{name} exists with different content: differs at {listed}{more}; use another id"


_MISSING = object()


def changed_paths(old: object, new: object, at: str = "", depth: int = 0) -> list[str]:
    """Return the JSON pointers (RFC 6901) where two values differ, to a bounded depth; "" is the whole value."""
    if depth > 20:
        return [] if old == new else [at]
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            path
            for key in keys
            for path in changed_paths(
                old.get(key, _MISSING), new.get(key, _MISSING), f"{at}/{_escaped(key)}", depth + 1
            )
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [path for number, (a, b) in pairs for path in changed_paths(a, b, f"{at}/{number}", depth + 1)]
    return [] if old == new else [at]


def _escaped(key: str) -> str:
    """Escape a key for use in a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
