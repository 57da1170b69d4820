"""Everything that a report's page shows, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, Q
from django.http import Http404

from tracker.models import (
    BisectResult,
    Commit,
    Decision,
    Event,
    Finding,
    Landing,
    Message,
    OutgoingMail,
    RelatedCommit,
    Report,
    StableSeries,
    Suggestion,
)
from tracker.tables import KeptTable, unpack

MESSAGES = 500  # of a thread; the archive has the rest
FINDINGS = 500  # of a report, the headline first
TABLES = 20  # mails with tables
RELATED = 100  # commits
RESULTS = 100  # of a culprit; the page of results has the rest


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report with its findings, what happened to it, and its thread."""

    report: Report
    findings: Sequence[Finding]
    events: Sequence[Event]
    reversed_keys: frozenset[str]
    messages: Sequence[Message]
    has_tables: bool
    landings: Sequence[Landing]
    related: Sequence[RelatedCommit]
    stable: Sequence[StableSeries]
    outgoing: Sequence[OutgoingMail]
    suggestions: Sequence[Suggestion]
    results: Sequence[BisectResult]
    other_commits: Sequence[Commit]


def find_report(ref: str) -> Report:
    """The report of a sha, or of seven or more of its first digits, be it the culprit's or that of the same patch in
    another tree, or of a report tag; Http404 for none or several.
    """
    ref = ref.lower()
    names = Q(culprit__sha__startswith=ref) | Q(tag=ref) | Q(culprit__other_commits__sha__startswith=ref)
    found = list(Report.objects.filter(names).select_related("culprit", "tree").distinct()[:2])
    if len(found) != 1:
        raise Http404("more than one report begins so" if found else "there is no such report")
    return found[0]


def page(report: Report) -> ReportPage:
    """What the page of a report shows."""
    events = list(report.events.order_by("at", "pk"))
    return ReportPage(
        report=report,
        findings=list(
            report.findings.select_related("metric", "scenario", "machine", "parent")
            .defer("old_samples", "new_samples")
            .order_by("-headline", "pk")[:FINDINGS]
        ),
        events=events,
        reversed_keys=frozenset(event.reverses for event in events if event.reverses),
        messages=list(report.messages.defer("tables").order_by("sent_at", "pk")[:MESSAGES]),
        has_tables=report.messages.exclude(tables=b"").exists(),
        landings=list(Landing.objects.filter(commit=report.culprit).select_related("tree").order_by("at", "pk")),
        related=list(
            report.related.select_related("commit")
            .prefetch_related(Prefetch("commit__landings", Landing.objects.select_related("tree").order_by("at", "pk")))
            .order_by("pk")[:RELATED]
        ),
        stable=list(report.stable.all()),
        outgoing=list(report.outgoing.defer("raw").order_by("pk")),
        suggestions=list(report.suggestions.filter(decision=Decision.OPEN)),
        results=list(report.results.defer("payload").order_by("pk")[:RESULTS]),
        other_commits=list(report.culprit.other_commits.order_by("pk")[:RESULTS]),
    )


def tables(report: Report) -> list[KeptTable]:
    """The comparison tables of the robot's mails about a report, unpacked for the one who asks for them."""
    packed = report.messages.exclude(tables=b"").order_by("sent_at", "pk").values_list("tables", flat=True)
    return [table for each in packed[:TABLES] for table in unpack(bytes(each))]
