"""`/report/<sha>/`: one report; the same as JSON, and its thread as an mbox.

The page shows the findings, a timeline of events and the thread, in a constant number of queries and within the
limits below; a long thread is paged. A report is found by its tag, by its culprit's sha, or by the sha of the same
patch in another tree; seven digits are enough if they name one report.

The headline says in a sentence or two which metric changed, where it was measured, and with what confidence. A mail
is shown with the words marked that were read; each reading counts, was undone, or is only suggested. An mbox quotes
"From " lines (mboxrd), so that whoever unquotes them gets the mails' bytes, with LF ends.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, TextField, Value, When
from django.db.models.functions import Length, Substr
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.charts import BisectionChart, chart, groups_of, measured_later, read_payload, side
from tracker.domain import text as formats
from tracker.domain.comparison_tables import unpack
from tracker.domain.report_state import effective_events
from tracker.domain.text import commit_url, reply_url
from tracker.domain.tool_output import TEXT
from tracker.models import (
    BisectResult,
    Commit,
    Decision,
    Event,
    Finding,
    Landing,
    Message,
    OutgoingMail,
    RawMessage,
    RelatedCommit,
    Report,
    ReportHighlight,
    StableSeries,
    Suggestion,
    ToolOutput,
    Tree,
)
from tracker.models.git import TreeRole
from tracker.models.results import CommitSide
from tracker.pages.http import cleaned, error_response, is_key, username
from tracker.pages.report_json import finding_json
from tracker.services import report_actions
from tracker.services.accounts import CHANGE_REPORTS, permit_of
from tracker.services.curve_changes import CurvePast, past_of
from tracker.services.report_actions import ACTION_KEYS

# --- The headline in words ---


# Pure.
def headline(finding: Finding) -> str:
    """Return a sentence or two: the metric, its change, where it was measured, and the confidence."""
    return " ".join(part for part in (_movement(finding), _where(finding), _sureness(finding)) if part)


def _movement(finding: Finding) -> str:
    text = f"{finding.metric.name}{_better(finding.metric.direction)} changed"
    if finding.change is not None:
        text += f" by {formats.signed_pct(finding.change)}"
    if finding.verdict in ("regression", "improvement"):
        text += f" ({finding.verdict})"
    if finding.old_mean is not None and finding.new_mean is not None:
        unit = f" {finding.metric.unit}" if finding.metric.unit else ""
        text += f": {formats.number(finding.old_mean)} before, {formats.number(finding.new_mean)}{unit} after"
    return text + ","


def _better(direction: str) -> str:
    return f" ({direction} is better)" if direction in ("higher", "lower") else ""


def _where(finding: Finding) -> str:
    params = ", ".join(f"{name}={value}" for name, value in finding.scenario.params.items())
    test = f"{finding.scenario.suite} ({params})" if params else finding.scenario.suite
    runs = f", {finding.old_runs} and {finding.new_runs} runs" if finding.old_runs and finding.new_runs else ""
    return f"in {test} on {finding.machine.name}{runs}."


def _sureness(finding: Finding) -> str:
    text = formats.confidence(finding.low_pct, finding.high_pct, finding.p_value, finding.effect)
    return f"{text}." if text else "Confidence unknown: no samples."


# --- Mails with marked evidence ---

# Pure.
SHOWN = 6000  # characters per mail; the archive has the rest


@dataclass(frozen=True, slots=True)
class MessageReading:
    """How a mail was read. `status`: counts, undone or suggested; `rule`: the rule that read it."""

    kind: str
    quote: str
    status: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a text; `marked` if it is the evidence of a reading."""

    text: str
    marked: bool


def passages(text: str, quotes: Iterable[str]) -> list[Passage]:
    """Split a text at its quotes. White space may differ, since rules read joined lines; overlaps are marked once.

    >>> [each.text for each in passages("I can\\n reproduce it.", ["can reproduce"]) if each.marked]
    ['can\\n reproduce']
    """
    parts: list[Passage] = []
    at = 0
    for start, end in _spans(text, quotes):
        if start >= at:
            parts += [Passage(text[at:start], False), Passage(text[start:end], True)]
            at = end
    return [passage for passage in (*parts, Passage(text[at:], False)) if passage.text]


def _spans(text: str, quotes: Iterable[str]) -> Sequence[tuple[int, int]]:
    spans = []
    for quote in dict.fromkeys(quotes):
        words = quote.split()[:80]
        if words and (match := re.search(r"\s+".join(map(re.escape, words)), text)):
            spans.append(match.span())
    return sorted(spans)


# --- Data of the page ---

MESSAGES = 100  # of a thread per page
FINDINGS = 500  # per report, the headline first
TABLES = 20  # mails with tables
RELATED = 100  # commits
RESULTS = 100  # per culprit; the results page has the rest
EVENTS = 1000  # the newest; `export events` has all
PAYLOAD = 1 << 20  # characters; the bisect steps of a larger result are not drawn
MBOX = 5000  # mails in an mbox export

SIMILAR = 6  # reports
SPAN = timedelta(days=90)
MAINLINE = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"  # while no tree is configured

CYCLES = ("merged_release", "shift_left_release")  # the columns that name the releases whose tables list a report


@dataclass(frozen=True, slots=True)
class ThreadMail:
    """A mail of the thread: its text in passages, and its readings."""

    message: Message
    passages: Sequence[Passage]
    readings: Sequence[MessageReading]
    cut: bool


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An event of the timeline: whether it counts (`is_effective`), and the mail that is its evidence."""

    event: Event
    is_effective: bool
    message: Message | None


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report with its findings, events and thread. `older`: the key of the next older page of the thread, or None."""

    report: Report
    headline: Finding | None
    findings: Sequence[Finding]
    chart: BisectionChart | None
    timeline: Sequence[TimelineEntry]
    mails: Sequence[ThreadMail]
    older: int | None
    thread: str
    has_tables: bool
    landings: Mapping[str, Sequence[Landing]]
    related: Sequence[RelatedCommit]
    stable: Sequence[StableSeries]
    outgoing: Sequence[OutgoingMail]
    suggestions: Sequence[Suggestion]
    results: Sequence[BisectResult]
    other_commits: Sequence[Commit]
    tool_outputs: Sequence[ToolOutput]
    past: CurvePast | None
    similar: Sequence[Report]
    mainline_url: str

    def commit_url(self, sha: str) -> str:
        """The page of a commit in the tree that was reported on; "" if its web view is not known."""
        tree = self.report.tree
        return commit_url(tree.url, sha) if tree and tree.url else commit_url(self.mainline_url, sha)

    @property
    def culprit_url(self) -> str:
        return self.commit_url(self.report.culprit.sha)

    @property
    def fix_url(self) -> str:
        return commit_url(self.mainline_url, self.report.fix_sha)

    @property
    def parent_url(self) -> str:
        parent = self.headline.parent if self.headline else None
        return self.commit_url(parent.sha) if parent else ""

    @property
    def reply_url(self) -> str:
        """A link that answers our report in a mail program; "" before it is sent."""
        mail = self.mail
        if mail is None or not mail.sent_at or not mail.recipients:
            return ""
        first, *rest = mail.recipients
        return reply_url(first, rest, f"Re: {mail.subject}", mail.message_id)

    @property
    def file_pairs(self) -> Sequence[tuple[ToolOutput, ToolOutput]]:
        """Pairs of files of one kind and machine, measured on the parent and on the culprit."""
        sides = [
            [output for output in self.tool_outputs if output.side == side and output.kind != TEXT]
            for side in CommitSide.values
        ]
        taken: set[int] = set()
        pairs = []
        for old in sides[0]:
            new = next((output for output in sides[1] if _fits(old, output) and output.pk not in taken), None)
            if new:
                taken.add(new.pk)
                pairs.append((old, new))
        return pairs

    @property
    def cycles(self) -> Mapping[str, bool]:
        """The releases whose tables list it, and whether their release reports highlight it."""
        pairs = ((getattr(self.report, name), getattr(self.report, f"detailed_in_{name}")) for name in CYCLES)
        return {version: detailed for version, detailed in pairs if version}

    @property
    def regressions(self) -> Sequence[Finding]:
        return self._others("regression")

    @property
    def improvements(self) -> Sequence[Finding]:
        return self._others("improvement")

    def _others(self, verdict: str) -> Sequence[Finding]:
        return [finding for finding in self.findings if not finding.headline and finding.verdict == verdict]

    @property
    def mail(self) -> OutgoingMail | None:
        """The mail that reported it."""
        return next((mail for mail in self.outgoing if mail.purpose == "report"), None)


def _fits(old: ToolOutput, new: ToolOutput) -> bool:
    """Return whether two files can be compared: same kind, same machine."""
    return (old.kind, old.machine) == (new.kind, new.machine)


def find_report(ref: str) -> Report:
    """Return the report for a report tag, a culprit's sha, or the sha of the same patch in another tree.

    A sha may be abbreviated to its first seven digits or more. Raise Http404 for none or several.
    """
    ref = ref.lower()
    commits = Commit.objects.filter(sha__gte=ref, sha__lt=f"{ref}g").order_by()  # a range, which an index finds
    same_patch = commits.filter(same_patch_as__isnull=False).values("same_patch_as")
    # A union of three index lookups; with OR, PostgreSQL would scan every report.
    conditions = (Q(culprit__in=commits.values("pk")), Q(culprit__in=same_patch), Q(tag=ref))
    by_sha, by_other, by_tag = (Report.objects.filter(condition).values("pk") for condition in conditions)
    reports = Report.objects.filter(pk__in=by_sha.union(by_other, by_tag))
    highlights = ReportHighlight.objects.filter(report=OuterRef("pk"))
    reports = reports.annotate(
        mainline_url=Subquery(Tree.objects.filter(role=TreeRole.MAINLINE).values("url")[:1]),
        with_tool_output=Exists(ToolOutput.objects.filter(report=OuterRef("pk"))),
        **{f"detailed_in_{name}": Exists(highlights.filter(release__version=OuterRef(name))) for name in CYCLES},
    )
    rows = list(reports.select_related("culprit", "tree")[:2])
    if len(rows) != 1:
        raise Http404("more than one report starts with this sha" if rows else "there is no such report")
    return rows[0]


def page(report: Report, before: int | None = None) -> ReportPage:
    """Return the data of a report's page. `before`: show the part of the thread before this message's key."""
    events = list(report.events.order_by("-occurred_at", "-pk")[:EVENTS])[::-1]
    findings = list(
        report.findings.select_related("metric", "scenario", "machine", "parent").order_by("-headline", "pk")[:FINDINGS]
    )
    headline = next((finding for finding in findings if finding.headline), None)
    # A page of the thread, oldest first, and the key of the next older page or None
    keys = report.messages.order_by("-sent_at", "-pk").values("pk")
    if before is not None:
        then = Message.objects.filter(pk=before).values("sent_at")[:1]
        keys = keys.filter(Q(sent_at__lt=then) | Q(sent_at=then, pk__lt=before))
    rows = Message.objects.filter(pk__in=keys[: MESSAGES + 1]).defer("tables", "own_text", "source")
    annotated = rows.annotate(
        text=Substr("own_text", 1, SHOWN + 1),
        with_tables=Exists(report.messages.exclude(tables=b"")),  # of the whole thread, not only this page
    )
    mails: list[Message] = list(annotated.order_by("-sent_at", "-pk"))
    shown = mails[:MESSAGES][::-1]
    messages, older = shown, mails[MESSAGES - 1].pk if len(mails) > MESSAGES else None
    suggestions = list(report.suggestions.filter(decision=Decision.OPEN))
    results = _results(report, headline)
    effective_keys = {effective.key for effective in effective_events([event.value() for event in events])}
    by_id = {message.message_id: message for message in messages}
    others = list(report.culprit.other_commits.order_by("pk")[:RESULTS])
    related = list(report.related.select_related("commit").order_by("pk")[:RELATED])
    shas = [report.culprit.pk, *(relation.commit_id for relation in related), *(other.pk for other in others)]
    return ReportPage(
        report=report,
        headline=headline,
        findings=findings,
        chart=_chart(headline, report.culprit.sha, results),
        timeline=[TimelineEntry(event, event.key in effective_keys, by_id.get(event.message_id)) for event in events],
        mails=[_thread_mail(message, events, effective_keys, suggestions) for message in messages],
        older=older,
        thread=next((event.message_id for event in events if event.kind == "reported"), ""),
        has_tables=bool(messages) and messages[0].with_tables,  # type: ignore[attr-defined]
        landings=_landings(shas),
        related=related,
        stable=list(report.stable.all()),
        outgoing=list(report.outgoing.defer("raw", "body").order_by("pk")),
        suggestions=suggestions,
        results=results,
        other_commits=others,
        tool_outputs=_tool_outputs(report),
        past=_past(headline, report.culprit.sha),
        similar=_similar(report),
        mainline_url=getattr(report, "mainline_url", "") or MAINLINE,
    )


def _similar(report: Report) -> list[Report]:
    """Return reports of the same metric and machine, and of the same author, from the months around this one."""
    if not report.reported_at:
        return []
    around = (report.reported_at - SPAN, report.reported_at + SPAN)
    near = Report.objects.filter(reported_at__range=around).exclude(pk=report.pk)
    # A union of two index lookups; with OR, every report of these months would be read.
    alike = near.filter(metric=report.metric, machine=report.machine).exclude(metric="").order_by().values("pk")
    same_author = near.filter(author=report.author).exclude(author="").order_by().values("pk")
    rows = Report.objects.filter(pk__in=alike.union(same_author)).select_related("culprit")
    return list(rows.order_by("-urgency", "pk")[:SIMILAR])


def _past(headline: Finding | None, culprit: str) -> CurvePast | None:
    """Return the curve of the headline with its history before the culprit, if it has more than this one change."""
    past = past_of(headline, culprit) if headline else None
    return past if past and past.curve.points > 2 else None


def _results(report: Report, headline: Finding | None) -> list[BisectResult]:
    """Return the results; only the headline's result comes with its payload."""
    own = When(Q(pk=(headline.result_id if headline else None) or 0) & Q(size__lt=PAYLOAD), then=F("payload"))
    rows = report.results.annotate(size=Length("payload")).annotate(
        steps=Case(own, default=Value(""), output_field=TextField())
    )
    return list(rows.defer("payload").order_by("pk")[:RESULTS])


def _chart(headline: Finding | None, culprit: str, results: Sequence[BisectResult]) -> BisectionChart | None:
    if headline is None:
        return None
    payload = next((row.steps for row in results if row.steps), "")  # type: ignore[attr-defined]
    metric = headline.metric
    others = [row for row in results if row.pk != headline.result_id]
    later = [group for row in others for group in measured_later(row.bad_sha[:10], metric.name, row.measured)]
    good, bad = side("parent", "good", headline.old_samples), side("culprit", "bad", headline.new_samples)
    shas = (headline.parent.sha if headline.parent else "", culprit)
    groups = groups_of(good, bad, read_payload(payload), shas, later)
    return chart(groups, metric.unit)


def _tool_outputs(report: Report) -> list[ToolOutput]:
    """Return a report's files; no query for the many reports that have none."""
    has_files: bool = report.with_tool_output  # type: ignore[attr-defined]
    return list(report.tool_outputs.select_related("machine").defer("text").order_by("side", "pk")) if has_files else []


def _landings(commits: Sequence[int]) -> dict[str, list[Landing]]:
    """Return the landings of these commits, by sha."""
    by_sha: dict[str, list[Landing]] = {}
    for landing in Landing.objects.filter(commit__in=commits).select_related("tree", "commit").order_by("at", "pk"):
        by_sha.setdefault(landing.commit.sha, []).append(landing)
    return by_sha


def _thread_mail(
    message: Message,
    events: Sequence[Event],
    effective_keys: frozenset[str] | set[str],
    suggestions: Sequence[Suggestion],
) -> ThreadMail:
    readings = [
        MessageReading(event.kind, event.quote, "counts" if event.key in effective_keys else "undone")
        for event in events
        if event.message_id == message.message_id
    ]
    readings += [
        MessageReading(suggestion.kind, suggestion.quote, "suggested", suggestion.rule)
        for suggestion in suggestions
        if suggestion.message_id == message.message_id
    ]
    text: str = message.text  # type: ignore[attr-defined]
    return ThreadMail(
        message, passages(text[:SHOWN], [reading.quote for reading in readings]), readings, len(text) > SHOWN
    )


@dataclass(frozen=True, slots=True)
class Brief:
    """The details of an expanded table row."""

    report: Report
    findings: Sequence[Finding]
    last: Message | None
    decided_by: Event | None


def raw_mails(report: Report) -> Iterator[bytes]:
    """Yield the mails of the thread as they were received."""
    kept = RawMessage.objects.filter(message__report=report, erased_at=None)
    rows = kept.order_by("message__sent_at", "pk")[:MBOX]
    return (row.raw for row in rows.iterator(chunk_size=50))


# --- JSON and mbox ---

_FROM = re.compile(rb"^(>*From )", re.MULTILINE)


def exports_as_json(page: ReportPage) -> dict[str, Any]:
    """Return the page's data with the keys of DESIGN section 5; a positive `change_pct` is better."""
    report = page.report
    return {
        "culprit": report.culprit.sha,
        "culprit_title": report.culprit.title,
        "message_id": page.thread,
        "title": str(report),
        "subsystem": report.subsystem,
        "verdict": report.verdict,
        "state": report.state,
        "status": report.status,
        "awaited": report.awaited,
        "assignee": report.assignee,
        "blocks": report.blocks,
        "landing": report.landing,
        "fix": {"sha": report.fix_sha, "title": report.fix_title, "landing": report.fix_landing},
        "stable": [
            {"series": stable.series, "newest": stable.newest, "fixed_in": stable.fixed_in} for stable in page.stable
        ],
        "reported_at": report.reported_at,
        "responded_at": report.responded_at,
        "findings": [finding_json(finding) for finding in page.findings],
        "events": [_event(entry.event, entry.is_effective) for entry in page.timeline],
        "messages": [
            {"message_id": mail.message.message_id, "author": mail.message.author_email, "date": mail.message.sent_at}
            for mail in page.mails
        ],
    }


def _event(event: Event, is_effective: bool) -> dict[str, Any]:
    evidence = {name: getattr(event, name) for name in ("message_id", "commit", "result", "actor")}
    return {
        "key": event.key,
        "kind": event.kind,
        "at": event.occurred_at,
        "by": event.role,
        "evidence": {name: value for name, value in evidence.items() if value},
        "title": event.title,
        "tag": event.tag,
        "tree": event.tree,
        "remark": event.remark,
        "quote": event.quote,
        "reverses": event.reverses,
        "stands": is_effective,
    }


def exports_as_mbox(mails: Iterable[bytes]) -> Iterator[bytes]:
    """Yield mails in mboxrd format, with "From " lines quoted. Whoever unquotes them gets their bytes, with LF ends."""
    for raw in mails:
        text = raw.replace(b"\r\n", b"\n")
        end = b"\n" if text.endswith(b"\n") else b"\n\n"
        yield b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + _FROM.sub(rb">\1", text) + end


def packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip(1) would write, as it comes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for chunk in chunks:
        if piece := packer.compress(chunk):
            yield piece
    yield packer.flush()


# --- Views ---


def report(request: HttpRequest, ref: str) -> HttpResponse:
    """Show findings, timeline and thread; `?mails=KEY` pages to the part of a long thread before that message."""
    before = request.GET.get("mails", "")
    if before and not is_key(before):
        return error_response(f"mails: expected a number; found {before[:40]!r}")
    report = find_report(ref)
    context = {
        "page": page(report, int(before) if before else None),
        "actions": ACTION_KEYS,
        "may_change": request.user.is_authenticated and permit_of(request.user)(report) is not None,
        "may_take_back": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "reports/report.html", context)


def brief(request: HttpRequest, ref: str) -> HttpResponse:
    """Return the details of an expanded table row, as a fragment."""
    # The first findings, the last reply, and the event that determines the state: three queries
    report = find_report(ref)
    findings = report.findings.select_related("metric", "scenario", "machine").defer("old_samples", "new_samples")
    last = report.messages.exclude(kind="self").defer("tables", "own_text").annotate(text=Substr("own_text", 1, 800))
    decided_by = report.events.filter(key=report.decided_by).first() if report.decided_by else None
    return render(
        request,
        "reports/brief.html",
        {
            "brief": Brief(
                report,
                list(findings.order_by("-headline", "pk")[:6]),
                last.order_by("-sent_at", "-pk").first(),
                decided_by,
            )
        },
    )


def tables(request: HttpRequest, ref: str) -> HttpResponse:
    """Show the robot's comparison tables, thousands of rows, on their own page."""
    report = find_report(ref)
    # The comparison tables from the robot's mails about a report, unpacked
    packed = report.messages.exclude(tables=b"").order_by("sent_at", "pk").values_list("tables", flat=True)
    return render(
        request,
        "reports/tables.html",
        {"report": report, "tables": [table for blob in packed[:TABLES] for table in unpack(bytes(blob))]},
    )


def as_json(request: HttpRequest, ref: str) -> JsonResponse:
    return JsonResponse(exports_as_json(page(find_report(ref))))


def as_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    report = find_report(ref)
    response = StreamingHttpResponse(exports_as_mbox(raw_mails(report)), content_type="application/mbox")
    response["Content-Disposition"] = f'attachment; filename="{report.culprit.sha10}.mbox"'
    return response


def as_packed_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The mails of a report as mbox.gz, as lore has them."""
    report = find_report(ref)
    content = packed(exports_as_mbox(raw_mails(report)))
    response = StreamingHttpResponse(content, content_type="application/gzip")
    response["Content-Disposition"] = f'attachment; filename="{report.culprit.sha10}.mbox.gz"'
    return response


@require_POST
@login_required
@permission_required(CHANGE_REPORTS, raise_exception=True)
def take_back(request: HttpRequest, ref: str) -> HttpResponse:
    """Reverse one event of the timeline; reversing a reversal makes the original event count again."""
    report, key = find_report(ref), cleaned(request.POST, "key")
    permit = permit_of(request.user)
    done = report_actions.reports_take_back([report.pk], key, username(request), timezone.now(), permit, of_others=True)
    messages.info(request, "Undone." if done else "Nothing to undo: this event no longer counts.")
    return redirect("report", report.culprit.sha)
