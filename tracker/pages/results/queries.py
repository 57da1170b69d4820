"""What the pages of results show, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404

from tracker.models import BisectResult, Finding

PAGE = 100  # rows
FINDINGS = 500  # of a result; its payload has the rest
_MISSING = "there is no such result"


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """What is asked for: an outcome, only held ones, and what stands before a key, newest first."""

    outcome: str = ""
    held: bool = False
    before: int | None = None


@dataclass(frozen=True, slots=True)
class ResultList:
    """One page of results; `older` is the key to go on with, None at the end."""

    rows: Sequence[BisectResult]
    older: int | None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A result, and what it found that nobody had found before."""

    row: BisectResult
    findings: Sequence[Finding]


def listing(question: ResultQuery) -> ResultList:
    """A page of results, newest first; the page after it is asked for by the last key."""
    rows = BisectResult.objects.select_related("report__culprit").defer("payload", "measured").order_by("-pk")
    if question.outcome:
        rows = rows.filter(outcome=question.outcome)
    if question.held:
        rows = rows.exclude(held="")
    if question.before is not None:
        rows = rows.filter(pk__lt=question.before)
    found = list(rows[: PAGE + 1])
    return ResultList(found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None)


def page(pk: int) -> ResultPage:
    """One result; Http404 for none."""
    row = BisectResult.objects.select_related("report__culprit").defer("payload").filter(pk=pk).first()
    if row is None:
        raise Http404(_MISSING)
    if row.report is None:
        return ResultPage(row, ())
    # Asked for by their report, which has an index; a report has a handful of results.
    findings = Finding.objects.filter(report=row.report, result=row).select_related("metric", "scenario", "machine")
    shown = findings.order_by("-headline", "pk")[:FINDINGS]
    return ResultPage(row, list(shown))


def payload(pk: int) -> str:
    """What the lab handed in, as canonical JSON."""
    found = BisectResult.objects.filter(pk=pk).values_list("payload", flat=True).first()
    if found is None:
        raise Http404(_MISSING)
    return found
