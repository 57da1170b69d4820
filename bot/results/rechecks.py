"""Events that a result adds to existing reports: a fix was measured, the change is still there, or gone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

from bot.mail.trailers import Trailer, fixed_commits
from bot.results.bisect_result import CommitInfo, RecheckData, Result
from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Grade


def commit_name(commit: CommitInfo) -> str:
    """Return the `git describe` name of a commit, or the first ten digits of its sha."""
    return commit.describe or commit.sha[:10]


def recheck_events(result: Result, at: datetime) -> Iterator[EventData]:
    """Yield events for the report of the result's own culprit, from the lab's rechecks on other commits."""
    kinds = {"still-bad": EventKind.STILL_THERE, "good": EventKind.DISAPPEARED}
    for number, recheck in enumerate(_in_order(result.rechecks)):
        if kind := kinds.get(recheck.state):
            moment = at + timedelta(microseconds=number)  # distinct times, so that the last one decides
            yield _event(result, kind, moment, recheck.sha, recheck.ref, f"recheck-{recheck.ref}-{recheck.sha}")


def _in_order(rechecks: Sequence[RecheckData]) -> list[RecheckData]:
    """Sort by version if every ref names one, else keep the lab's order."""
    ranked = [(versions.parse(each.ref), each) for each in rechecks]
    if any(version is None for version, _ in ranked):
        return list(rechecks)
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0])]  # type: ignore[arg-type, return-value]


def later_event(result: Result, at: datetime) -> EventData:
    """Return the event for an existing report whose place was measured again up to a later commit."""
    kind = EventKind.STILL_THERE if result.outcome == "conclusive" else EventKind.DISAPPEARED
    return _event(result, kind, at, result.bad.sha, commit_name(result.bad))


def fix_event(result: Result, grade: Grade, at: datetime) -> EventData | None:
    """Return the event for a report whose fix was compared with the fix's parent; None if the grade says nothing."""
    fix = result.culprit or result.bad
    kind = {
        Grade.IMPROVEMENT: EventKind.FIX_CONFIRMED,
        Grade.NOT_SIGNIFICANT: EventKind.FIX_WITHOUT_EFFECT,
        Grade.REGRESSION: EventKind.FIX_WITHOUT_EFFECT,
    }.get(grade)
    return _event(result, kind, at, fix.sha, title=fix.title) if kind else None


def fixes_named(commit: CommitInfo) -> tuple[str, ...]:
    """Return the abbreviated shas in its `Fixes:` trailers (Documentation/process/submitting-patches.rst)."""
    trailers = [Trailer("Fixes", value) for tag, value in commit.trailers if tag.lower() == "fixes"]
    return tuple(sha for sha in fixed_commits(trailers) if len(sha) >= 10)


def _event(
    result: Result, kind: EventKind, at: datetime, sha: str, tag: str = "", part: str = "", title: str = ""
) -> EventData:
    evidence = "/".join(result.key)
    name = "/".join(quote(each, safe=" ") for each in result.key)  # escaped, so that no two results share a key
    key = ":".join(each for each in (kind.value, name, part) if each)
    return EventData(key=key, kind=kind, occurred_at=at, commit=sha, result=evidence, tag=tag, title=title)
