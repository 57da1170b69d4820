"""Why an operator must check a result before any mail is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from bot.git.inspection import CommitInspection
from bot.results.bisect_result import MeasurementData, Result
from tracker.domain.events import Grade
from tracker.domain.statistics.change import CONTRADICTION, NO_DIRECTION
from tracker.domain.statistics.significance import Graded, overlap

MERGE = "the culprit is a merge commit"
NO_CODE = "the culprit changes comments or documentation only"
UNDATED = timedelta(days=30)
FORGOTTEN = "made before the database was restored from an older backup: check in the archives that no mail was sent"
# Other results about the same culprit don't clear these.
LASTING = frozenset({MERGE, NO_CODE, FORGOTTEN})


def why_held(
    result: Result, graded: Graded, direction: str, author: str, seen: CommitInspection | None
) -> Iterator[str]:
    """Yield the reasons, one line each; none if no check is needed.

    `direction` (of the headline's metric) and `author` (of the culprit) are as known by now; `seen` is the culprit as
    a git tree has it.
    """
    yield from _about_commit(result, author, seen)
    yield from _about_numbers(result.headline, graded, direction)


def _about_commit(result: Result, author: str, seen: CommitInspection | None) -> Iterator[str]:
    culprit = result.culprit
    assert culprit
    if culprit.is_merge or (seen and len(seen.parents) > 1):
        yield MERGE
    if seen and seen.no_op:
        yield NO_CODE
    if not author:
        yield "the culprit's author is not known"
    if not result.parent_is_stated and seen and result.parent and result.parent.sha not in seen.parents:
        yield f"{result.parent.sha[:10]} is not a parent of the culprit in git"
    if result.uncertainty and not (seen and result.parent and result.parent.sha in seen.parents):
        yield result.uncertainty


def _about_numbers(headline: MeasurementData, graded: Graded, direction: str) -> Iterator[str]:
    if graded.verdict is Grade.NOT_TESTABLE:
        yield "the change can't be tested: one run per side, or no standard deviation"
    elif graded.verdict is Grade.NOT_SIGNIFICANT:
        yield f"the change is not significant (p = {graded.p_value:.2g})"
    if headline.old_samples and headline.new_samples and overlap(headline.old_samples, headline.new_samples):
        yield "the samples of both sides overlap"
    if direction == "unknown":
        yield NO_DIRECTION.format(metric=headline.metric)
    elif headline.direction not in ("unknown", direction):
        yield CONTRADICTION.format(stated=headline.direction, metric=headline.metric, known=direction)


def may_be_forgotten(created_at: datetime | None, restored: Sequence[datetime], now: datetime) -> Iterator[str]:
    """Yield a reason if a result was made before the database was restored from a backup, at one of these times: it may
    have been here already, and a mail about it sent. One without a date counts as made before for a month.
    """
    if any(created_at <= at if created_at else now - at < UNDATED for at in restored):
        yield FORGOTTEN
