"""`/report/<sha>/`: one report; the same as JSON, and its thread as an mbox.

The page shows the findings, a timeline of events and the thread, in a constant number of queries and within the
limits below; a long thread is paged. A report is found by its tag, by its culprit's sha, or by the sha of the same
patch in another tree; seven digits are enough if they name one report.

It begins with the one number, its interval and its spread, where the report stands, and who is awaited since when.
A mail is shown with the words marked that were read; each reading counts, was undone, or is only suggested. An mbox
quotes "From " lines (mboxrd), so that whoever unquotes them gets the mails' bytes, with LF ends.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, TextField, Value, When
from django.db.models.functions import Length, Substr
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.charts import BisectionChart, chart, groups_of, measured_later, read_payload, side
from tracker.documents.csv_tables import FINDINGS as FINDINGS_CSV
from tracker.domain import text as formats
from tracker.domain import timeline
from tracker.domain.archived_reports import PersonReport, agreement, unpack
from tracker.domain.events import CLOSED, OPEN, EventKind, InvalidInput, ReportedBy, Role, State, TreeRole
from tracker.domain.report_state import effective_events
from tracker.domain.text import commit_url, reply_url, tag_of
from tracker.domain.tool_output import TEXT
from tracker.models import (
    PERSONAL,
    BisectResult,
    Commit,
    Decision,
    Event,
    Finding,
    LabJob,
    Landing,
    Message,
    OutgoingMail,
    RawMessage,
    Release,
    Report,
    ReportHighlight,
    Suggestion,
    ToolOutput,
    Tree,
)
from tracker.models.results import CommitSide
from tracker.pages.http import cleaned, csv_response, error_response, key_in, permission_required, row_or_404, username
from tracker.pages.prose import notes
from tracker.pages.report_json import finding_json
from tracker.services import event_log, lab_jobs, report_actions
from tracker.services.accounts import CHANGE_REPORTS, permit_of, shown_messages
from tracker.services.catalog import sha_begins
from tracker.services.curve_changes import past_of
from tracker.services.report_actions import ACTION_KEYS, KEYS_OF_OWNERS
from tracker.services.report_summary import in_cycle

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

    >>> [part.text for part in passages("I can\\n reproduce it.", ["can reproduce"]) if part.marked]
    ['can\\n reproduce']
    """
    spans = []
    for quote in dict.fromkeys(quotes):
        words = quote.split()[:80]
        if words and (match := re.search(r"\s+".join(map(re.escape, words)), text)):
            spans.append(match.span())
    marked: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if marked and start < marked[-1][1]:
            start, end = marked[-1][0], max(end, marked.pop()[1])
        marked.append((start, end))
    parts: list[Passage] = []
    at = 0
    for start, end in marked:
        parts += [Passage(text[at:start], False), Passage(text[start:end], True)]
        at = end
    return [passage for passage in (*parts, Passage(text[at:], False)) if passage.text]


# --- Data of the page ---

MESSAGES = 100  # of a thread per page
FINDINGS = 500  # per report, the headline first
TABLES = 20  # mails with tables
RELATED = 100  # commits
RESULTS = 100  # per culprit; the results page has the rest
JOBS = 20
UNFOLDED = 6  # mails, up to which none is folded
DEEPEST = 4  # levels of a thread that are indented
EVENTS = 1000  # the newest; `export events` has all
PAYLOAD = 1 << 20  # characters; the bisect steps of a larger result are not drawn
MBOX = 5000  # mails in an mbox export

SIMILAR = 6  # reports
LATEST = 200  # of other people's open reports: those that are compared with one
SPAN = timedelta(days=90)
MAINLINE = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"  # while no tree is configured

CYCLES = ("merged_release", "shift_left_release")  # the columns that name the releases whose tables list a report


@dataclass(frozen=True, slots=True)
class ThreadMail:
    """A mail of the thread: its text in passages, and its readings. `depth`: how many mails up its thread begins, on
    this page; `is_folded`: it says nothing of the report, and there are many.
    """

    message: Message
    passages: Sequence[Passage]
    readings: Sequence[MessageReading]
    cut: bool
    depth: int = 0
    is_folded: bool = False


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An event of the timeline: who did what, in which role, whether it counts (`is_effective`), and the mail that is
    its evidence.
    """

    event: Event
    is_effective: bool
    message: Message | None
    role: str
    who: str
    what: str


def _entry(event: Event, is_effective: bool, message: Message | None) -> TimelineEntry:
    sender = (message.author_name or message.author_email) if message and message.kind != "self" else ""
    if event.kind == EventKind.REPORTED and not sender:
        sender = event.remark  # the person who reported it
    role = message.role if message and not event.actor else event.role
    if event.actor and role == Role.REPORTER:  # what a triager does counts as the lab's, which reported nothing here
        role = ""
    return TimelineEntry(event, is_effective, message, role, *timeline.told(event.value(), sender))


@dataclass(frozen=True, slots=True)
class Lead:
    """What a reader needs first: the one number with its interval and spread, where it stands, and who is awaited."""

    change: str
    is_worse: bool | None
    interval: str
    metric: str
    values: str
    runs: str
    label: str
    tone: str
    single_runs: bool
    awaited: str
    since: datetime | None
    waiting: str


def lead(report: Report, finding: Finding | None, now: datetime) -> Lead:
    author = report.culprit.author_name or report.culprit.author_email
    number = report.change if finding is None else finding.change
    values = runs = ""
    if finding and finding.old_mean is not None and finding.new_mean is not None:
        unit = f" {finding.metric.unit}" if finding.metric.unit else ""
        values = f"{formats.number(finding.old_mean)} → {formats.number(finding.new_mean)}{unit}"
    if finding and finding.old_runs and finding.new_runs:
        runs = f"{finding.old_runs} + {finding.new_runs} runs"
        spread = finding.spread_pct
        if spread and finding.change_pct_raw is not None:
            times = abs(finding.change_pct_raw) / spread
            runs += f", which vary by {spread:.1f}%: the change is {formats.multiple(times)} that"
    untold = report.state == State.NO_RESPONSE and not report.reported_at  # nobody could have answered
    is_bisected = not report.culprit.placeholder
    awaited = timeline.awaited(report.awaited, author, report.reporter, is_bisected=is_bisected)
    label = "Not reported yet" if untold else timeline.LABELS[State(report.state)]
    return Lead(
        change=timeline.change(number, report.verdict),
        is_worse={"regression": True, "improvement": False}.get(report.verdict),
        interval=timeline.bounds(finding.low_pct, finding.high_pct) if finding else "",
        metric=finding.metric.name if finding else report.metric,
        values=values,
        runs=runs,
        label=label,
        tone=timeline.tone(report.state),
        single_runs=finding is not None and finding.has_single_runs,
        awaited="" if report.state in CLOSED else awaited,
        since=report.awaited_since,
        waiting=formats.age(report.awaited_since, now),
    )


_FACTS = (
    ("metric", "Metric"),
    ("suite", "Benchmark"),
    ("magnitude", "How much"),
    ("good", "Good"),
    ("bad", "Bad"),
    ("machine", "Machine"),
    ("culprit", "Culprit"),
)


def stated_facts(facts: PersonReport) -> list[tuple[str, str, str]]:
    """Return what a person's mail says: a label, the value and its sentence; "" for what it doesn't say."""
    return [(label, getattr(facts, name).value, getattr(facts, name).sentence) for name, label in _FACTS]


def find_report(ref: str) -> Report:
    """Return the report for a report tag, a culprit's sha, that of a former culprit, or of the same patch in another
    tree.

    A sha may be abbreviated to its first seven digits or more. Raise Http404 for none or several.
    """
    ref = ref.lower()
    commits = Commit.objects.filter(sha_begins("sha", ref)).order_by()
    same_patch = commits.filter(same_patch_as__isnull=False).values("same_patch_as")
    # A union of four index lookups; with OR, PostgreSQL would scan every report.
    # A person's report had another address before its culprit was known, of which its tag was made.
    by_tag = Q(tag__in=(ref, tag_of(ref)))
    corrected = commits.filter(corrected_to__isnull=False).values("corrected_to")
    conditions = (Q(culprit__in=commits.values("pk")), Q(culprit__in=same_patch), Q(culprit__in=corrected), by_tag)
    first, *others = (Report.objects.filter(condition).values("pk") for condition in conditions)
    reports = Report.objects.filter(pk__in=first.union(*others))
    highlights = ReportHighlight.objects.filter(report=OuterRef("pk"))
    reports = reports.annotate(
        mainline_url=Subquery(Tree.objects.filter(role=TreeRole.MAINLINE).values("url")[:1]),
        with_jobs=Exists(LabJob.objects.filter(report=OuterRef("pk"))),
        with_tool_output=Exists(ToolOutput.objects.filter(report=OuterRef("pk"))),
        **{f"detailed_in_{name}": Exists(highlights.filter(release__version=OuterRef(name))) for name in CYCLES},
    )
    rows = list(reports.select_related("culprit", "tree")[:3])
    rows = [row for row in rows if row.culprit.sha == ref] or rows  # rather than one that had this address before
    if not rows:
        raise Http404(f"no report has a culprit or a tag that begins with {ref}")
    if len(rows) > 1:
        which = ", ".join(f"{row.culprit.sha[:16]} ({row})"[:100] for row in rows)
        raise Http404(f"several reports have a culprit or a tag that begins with {ref}: {which}")
    return rows[0]


MOST_IMPORTANT = ("-headline", F("effect").desc(nulls_last=True), "pk")


def by_importance(findings: Iterable[Finding]) -> list[Finding]:
    """Return the headline, then the others by how far they stand out of the noise; those of unknown noise last."""
    return sorted(findings, key=lambda row: (not row.headline, row.times_noise is None, -(row.times_noise or 0.0)))


def page(report: Report, shown: Q, before: int | None = None) -> dict[str, Any]:
    """Return the data of a report's page. `shown`: which mails the user may see; `before`: show the part of the thread
    before this message's key; `older`: the key of the next older part, None on the last.
    """
    by_private_mail = Exists(Message.objects.filter(message_id=OuterRef("message_id"), public=False))
    log = event_log.with_trust(report.events.annotate(private=by_private_mail))
    events = list(log.order_by("-occurred_at", "-pk")[:EVENTS])[::-1]
    related_rows = report.findings.select_related("metric", "scenario", "machine", "parent")
    findings = by_importance(related_rows.order_by(*MOST_IMPORTANT)[:FINDINGS])
    headline = next((finding for finding in findings if finding.headline), None)
    messages, older = _thread(report, shown, before)
    waiting = event_log.with_trust(report.suggestions.filter(decision=Decision.OPEN))
    suggestions = list(waiting.annotate(private=by_private_mail))
    results = _results(report, headline)
    effective_keys = {effective.key for effective in effective_events([event.value() for event in events])}
    by_id = {message.message_id: message for message in messages}
    others = list(report.culprit.other_commits.order_by("pk")[:RESULTS])
    goes_on = (event for event in reversed(events) if event.kind == EventKind.SUCCEEDED and event.key in effective_keys)
    successor = next((event.remark for event in goes_on), "")
    is_corrected = any(event.kind == EventKind.CORRECTED for event in events)
    related = list(report.related.select_related("commit").order_by("pk")[:RELATED])
    shas = [report.culprit.pk, *(relation.commit_id for relation in related), *(other.pk for other in others)]
    landings: dict[str, list[Landing]] = {}
    for landing in Landing.objects.filter(commit__in=shas).select_related("tree", "commit").order_by("at", "pk"):
        landings.setdefault(landing.commit.sha, []).append(landing)
    mails = report.outgoing.defer("raw", "body").order_by("pk")
    outgoing = [mail for mail in mails if not shown or not mail.purpose.startswith(PERSONAL)]
    our_mail = next((mail for mail in outgoing if mail.purpose == "report"), None)  # that reported it
    files = _tool_outputs(report)
    past = past_of(headline, report.culprit.sha) if headline else None
    perhaps_same = _perhaps_same(report) if report.of_person and report.state in OPEN else []
    highlighted = {getattr(report, name): getattr(report, f"detailed_in_{name}") for name in CYCLES}
    return {
        "report": report,
        "told": stated_facts(report.person_report) if report.of_person else (),
        "reporter": report.reporter,
        "headline": headline,
        "findings": findings,
        "regressions": [row for row in findings if not row.headline and row.verdict == "regression"],
        "improvements": [row for row in findings if not row.headline and row.verdict == "improvement"],
        "chart": _chart(headline, report.culprit.sha, results),
        "timeline": [_entry(event, event.key in effective_keys, by_id.get(event.message_id)) for event in events],
        "mails": _as_tree([_thread_mail(message, events, effective_keys, suggestions) for message in messages]),
        "older": older,
        "thread": next((event.message_id for event in events if event.kind == "reported"), ""),
        "has_tables": bool(messages) and messages[0].with_tables,  # type: ignore[attr-defined]
        "landings": landings,
        "related": related,
        "stable": list(report.stable.all()),
        "outgoing": outgoing,
        "jobs": _jobs(report),
        "our_mail": our_mail,
        "suggestions": suggestions,
        "results": results,
        "other_commits": others,
        "successor": successor,
        "former_culprits": list(report.culprit.former_culprits.all()) if is_corrected else (),
        "tool_outputs": files,
        "notes": notes([("machine", report.machine), ("metric", report.metric), ("subsystem", report.subsystem)]),
        "file_pairs": _pairs(files),
        "past": past if past and past.curve.points > 2 else None,  # more than this one change
        "similar": [other for other in _similar(report) if all(other != same for same, _ in perhaps_same)],
        "perhaps_same": perhaps_same,
        # The releases whose tables list it, and whether their release reports highlight it
        "cycles": {version: detailed for version, detailed in highlighted.items() if version},
        **_links(report, headline, our_mail),
        "follow": f"culprit:{report.culprit.sha10}",
    }


def _links(report: Report, headline: Finding | None, mail: OutgoingMail | None) -> dict[str, str]:
    """Return the pages of the commits, "" where the web view of the tree is not known, and links that answer our
    report in a mail program, the second with a request for a test; "" before it is sent.
    """
    mainline = getattr(report, "mainline_url", "") or MAINLINE
    reported_on = report.tree.url if report.tree and report.tree.url else mainline
    parent, reply = headline.parent if headline else None, ""
    if mail and mail.sent_at and mail.recipients:
        first, *rest = mail.recipients
        reply = reply_url(first, rest, f"Re: {mail.subject}", mail.message_id)
    return {
        "culprit_url": commit_url(reported_on, report.culprit.sha),
        "parent_url": commit_url(reported_on, parent.sha) if parent else "",
        "fix_url": commit_url(mainline, report.fix_sha),
        "reply_url": reply,
        "test_url": f"{reply}&body=%23lkp%20test%0A" if reply else "",
    }


def _thread(report: Report, shown: Q, before: int | None) -> tuple[list[Message], int | None]:
    """Return a page of the thread, oldest first, and the key of the next older page or None. `shown`: which mails."""
    keys = report.messages.filter(shown).order_by("-sent_at", "-pk").values("pk")
    if before is not None:
        then = Message.objects.filter(pk=before).values("sent_at")[:1]
        keys = keys.filter(Q(sent_at__lt=then) | Q(sent_at=then, pk__lt=before))
    rows = Message.objects.filter(pk__in=keys[: MESSAGES + 1]).defer("tables", "own_text", "source")
    annotated = rows.annotate(
        text=Substr("own_text", 1, SHOWN + 1),
        with_tables=Exists(report.messages.exclude(tables=b"")),  # of the whole thread, not only this page
    )
    mails: list[Message] = list(annotated.order_by("-sent_at", "-pk"))
    return mails[:MESSAGES][::-1], mails[MESSAGES - 1].pk if len(mails) > MESSAGES else None


def _as_tree(mails: Sequence[ThreadMail]) -> list[ThreadMail]:
    """Return mails as a tree: each one's answers below it, all in the order in which they were sent."""
    names = {mail.message.message_id for mail in mails}
    below: dict[str, list[ThreadMail]] = {}
    for mail in mails:
        parent = mail.message.in_reply_to
        below.setdefault(parent if parent in names and parent != mail.message.message_id else "", []).append(mail)
    tree: list[ThreadMail] = []
    waiting = [(mail, 0) for mail in reversed(below.get("", ()))]
    while waiting:
        mail, depth = waiting.pop()
        folded = len(mails) > UNFOLDED and not mail.readings and depth > 0
        tree.append(replace(mail, depth=min(depth, DEEPEST), is_folded=folded))
        waiting += [(answer, depth + 1) for answer in reversed(below.get(mail.message.message_id, ()))]
    in_tree = {mail.message.pk for mail in tree}
    return [*tree, *(mail for mail in mails if mail.message.pk not in in_tree)]  # those that answer each other


def _pairs(files: Sequence[ToolOutput]) -> list[tuple[ToolOutput, ToolOutput]]:
    """Return pairs of files of one kind and machine, measured on the parent and on the culprit."""
    parsed = [file for file in files if file.kind != TEXT]
    left = [file for file in parsed if file.side == CommitSide.CULPRIT]
    pairs: list[tuple[ToolOutput, ToolOutput]] = []
    for old in (file for file in parsed if file.side == CommitSide.PARENT):
        new = next((file for file in left if (file.kind, file.machine) == (old.kind, old.machine)), None)
        if new:
            left.remove(new)
            pairs.append((old, new))
    return pairs


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


def _perhaps_same(report: Report) -> list[tuple[Report, str]]:
    """Return other people's open reports that may be about the same regression, the newest first, and why."""
    others = Report.objects.filter(reported_by=ReportedBy.PERSON, state__in=sorted(OPEN)).exclude(pk=report.pk)
    rows = others.select_related("culprit").order_by("-pk")[:LATEST]
    facts = report.person_report
    return [(other, why) for other in rows if (why := agreement(facts, other.person_report))][:SIMILAR]


def _results(report: Report, headline: Finding | None) -> list[BisectResult]:
    """Return the results; only the headline's result comes with its payload."""
    own = When(Q(pk=(headline.result_id if headline else None) or 0) & Q(size__lt=PAYLOAD), then=F("payload"))
    rows = report.results.annotate(size=Length("payload")).annotate(
        steps=Case(own, default=Value(""), output_field=TextField())
    )
    return list(rows.defer("payload", "files").order_by("pk")[:RESULTS])


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


def _jobs(report: Report) -> list[LabJob]:
    """Return what the lab was asked to test, newest first; no query for the many reports without a request."""
    has_jobs: bool = report.with_jobs  # type: ignore[attr-defined]
    return list(lab_jobs.with_privacy(report.jobs.defer("payload")).order_by("-pk")[:JOBS]) if has_jobs else []


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


def raw_mails(report: Report, shown: Q) -> Iterator[bytes]:
    """Yield the mails of the thread that a user may see, as they were received."""
    mails = report.messages.filter(shown, source__erased_at=None).order_by("sent_at", "source")
    rows = RawMessage.objects.filter(message__in=mails.values("pk")).order_by("message__sent_at", "pk")[:MBOX]
    return (row.raw for row in rows.iterator(chunk_size=50))


# --- JSON and mbox ---

_FROM = re.compile(rb"^(>*From )", re.MULTILINE)


def _event(entry: TimelineEntry) -> dict[str, Any]:
    event = entry.event
    evidence = {name: getattr(event, name) for name in ("message_id", "commit", "result", "actor")}
    said = {name: getattr(event, name) for name in ("title", "tag", "tree", "remark", "quote", "reverses")}
    return {
        "key": event.key,
        "kind": event.kind,
        "at": event.occurred_at,
        "by": event.role,
        "evidence": {name: value for name, value in evidence.items() if value},
        **said,
        "stands": entry.is_effective,
        "trust": event.trust,  # type: ignore[attr-defined]
    }


def mboxrd(mails: Iterable[bytes]) -> Iterator[bytes]:
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
    before, report = key_in(request.GET, "mails"), find_report(ref)
    data = page(report, shown_messages(request.user), before)
    triager = request.user.has_perm(CHANGE_REPORTS)
    context = {
        **data,
        "lead": lead(report, data["headline"], timezone.now()),
        "response": report.responded_at - report.reported_at if report.responded_at and report.reported_at else None,
        "actions": ACTION_KEYS if triager else KEYS_OF_OWNERS,
        "may_change": request.user.is_authenticated and permit_of(request.user)(report) is not None,
        "may_take_back": triager,
    }
    return render(request, "report.html", context)


def brief(request: HttpRequest, ref: str) -> HttpResponse:
    """Return the details of an expanded table row, as a fragment."""
    # The first findings, the last reply, and the event that determines the state: three queries
    report = find_report(ref)
    findings = report.findings.select_related("metric", "scenario", "machine").defer("old_samples", "new_samples")
    replies = report.messages.filter(shown_messages(request.user)).exclude(kind="self").defer("tables", "own_text")
    replies = replies.annotate(text=Substr("own_text", 1, 800))
    context = {
        "report": report,
        "findings": list(findings.order_by("-headline", "pk")[:6]),
        "last": replies.order_by("-sent_at", "-pk").first(),
        "decided_by": report.events.filter(key=report.decided_by).first() if report.decided_by else None,
    }
    return render(request, "report_brief.html", context)


def tables(request: HttpRequest, ref: str) -> HttpResponse:
    """Show the robot's comparison tables, thousands of rows, on their own page."""
    report = find_report(ref)
    # The comparison tables from the robot's mails about a report, unpacked
    packed = report.messages.exclude(tables=b"").order_by("sent_at", "pk").values_list("tables", flat=True)
    tables = [table for blob in packed[:TABLES] for table in unpack(bytes(blob))]
    return render(request, "report_tables.html", {"report": report, "tables": tables})


def findings_csv(request: HttpRequest, ref: str = "", version: str = "") -> HttpResponseBase:
    """Return the findings of a report, or of all reports of a release's cycle, as CSV."""
    rows = Finding.objects.select_related("report__culprit", "metric", "scenario", "machine")
    if ref:
        rows = rows.filter(report=find_report(ref)).order_by("-headline", "pk")
    else:
        row_or_404(Release.objects.filter(version=version), f"there is no release {version[:40]}")
        rows = rows.filter(in_cycle(version, "report__")).order_by("report", "-headline", "pk")
    shaped = ({"report": row.report.culprit.sha, **finding_json(row)} for row in rows.iterator(chunk_size=500))
    return csv_response(FINDINGS_CSV, shaped)


def as_json(request: HttpRequest, ref: str) -> JsonResponse:
    """Return the page's data with the keys of DESIGN section 5; a positive `change_pct` is better."""
    report = find_report(ref)
    data = page(report, shown_messages(request.user))
    return JsonResponse(
        {
            "culprit": report.culprit.sha,
            "culprit_title": report.culprit.title,
            "message_id": data["thread"],
            "title": str(report),
            **{name: getattr(report, name) for name in ("subsystem", "verdict", "state", "status", "awaited")},
            **{name: getattr(report, name) for name in ("assignee", "blocks", "landing")},
            "fix": {"sha": report.fix_sha, "title": report.fix_title, "landing": report.fix_landing},
            "stable": [
                {name: getattr(stable, name) for name in ("series", "newest", "fixed_in")} for stable in data["stable"]
            ],
            "reported_at": report.reported_at,
            "responded_at": report.responded_at,
            "findings": [finding_json(finding) for finding in data["findings"]],
            "events": list(map(_event, data["timeline"])),
            "messages": [
                {"message_id": row.message_id, "author": row.author_email, "date": row.sent_at, "trust": row.trust}
                for row in (mail.message for mail in data["mails"])
            ],
        }
    )


def as_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    report = find_report(ref)
    mails = raw_mails(report, shown_messages(request.user))
    return _download(mboxrd(mails), "application/mbox", f"{report.culprit.sha10}.mbox")


def as_packed_mbox(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The mails of a report as mbox.gz, as lore has them."""
    report = find_report(ref)
    mails = raw_mails(report, shown_messages(request.user))
    return _download(packed(mboxrd(mails)), "application/gzip", f"{report.culprit.sha10}.mbox.gz")


def _download(chunks: Iterable[bytes], content_type: str, name: str) -> StreamingHttpResponse:
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(chunks, content_type=content_type, headers=disposition)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can take back events")
def take_back(request: HttpRequest, ref: str) -> HttpResponse:
    """Reverse one event of the timeline; reversing a reversal makes the original event count again."""
    report, key = find_report(ref), cleaned(request.POST, "key")
    permit = permit_of(request.user)
    person, now = username(request), timezone.now()
    try:
        done = report_actions.reverse_event([report.pk], key, person, now, permit, of_others=True)
    except InvalidInput as error:
        return error_response(f"undo: {error}")
    messages.info(request, "Undone." if done else "Nothing to undo: this event no longer counts.")
    return redirect("report", report.culprit.sha)
