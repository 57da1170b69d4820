"""What labs are asked for, and what they handed in: jobs, results, the measurements of kernels, and tool output.

`/lab/` lists what people asked the lab for and have not got yet, the overdue requests first, and the jobs that ended
lately; each job has a page, where operators cancel it, let any runner take it, or have it tested again. `/results/`
lists bisect results, and what became of them. `/kernel/v5.6/` shows the measurements of one kernel; `compare` sets
kernels side by side, for other pages, too. A file of tool output (`/tool-output/…`) is shown as a table and as
received, or two of them side by side; it belongs to a side of a report, or to a kernel, optionally on a machine. Pages
take a constant number of queries.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import F, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.documents.blocks import Document
from tracker.documents.study import Beside, table
from tracker.domain import versions
from tracker.domain.events import InvalidInput
from tracker.domain.kernel_comparison import Box, Cell, ComparedTest, ComparisonLine, lines, pooled
from tracker.domain.lab_jobs import UNFINISHED, JobOutcome, JobState, PendingRequest, measured_metrics
from tracker.domain.statistics import SampleSummary
from tracker.domain.text import scenario_key
from tracker.domain.tool_output import TOP, diff, read
from tracker.models import (
    BisectResult,
    Curve,
    Finding,
    Kernel,
    LabJob,
    Machine,
    MeasuredRole,
    Measurement,
    Message,
    Report,
    Suite,
    ToolOutput,
)
from tracker.models.results import CommitSide, Outcome
from tracker.pages.http import cleaned, error_response, is_key, key_in, permission_required, row_or_404, username
from tracker.pages.report import MOST_IMPORTANT, by_importance, find_report
from tracker.services import lab_jobs
from tracker.services.accounts import SEND, shown_messages
from tracker.services.lab_jobs import owed_reports

# --- `/lab/` ---

MOST = 200  # reports, those that have waited longest
ENDED = 20  # jobs


@dataclass(frozen=True, slots=True)
class LabRow:
    """A request with its report. `quote`: its words; `mail`: what it was asked in, None for an action here; `job`: what
    runners see of it, once it is open.
    """

    report: Report
    pending: PendingRequest
    quote: str
    mail: Message | None
    is_overdue: bool
    job: LabJob | None = None


def work_list(now: datetime) -> tuple[list[LabRow], bool]:
    """Return the requests, the overdue and then the oldest first, and whether more reports wait than were looked at."""
    owed = owed_reports(MOST + 1)
    cut, owed = len(owed) > MOST, owed[:MOST]
    asked_in = (pending.event.message_id for entry in owed for pending in entry.pending_requests)
    mails = _mails(asked_in, Q(public=True))
    stored = LabJob.objects.filter(report__in=[entry.report for entry in owed]).defer("payload")
    jobs = {(job.report_id, key): job for job in stored for key in (*job.joined, job.event_key)}
    rows = []
    for entry in owed:
        for pending in entry.pending_requests:
            event = pending.event
            quote = next((other.quote for other in entry.events if other.key == event.key), "") or event.remark
            job = jobs.get((entry.report.pk, event.key))
            overdue = pending.is_overdue(now)
            rows.append(LabRow(entry.report, pending, quote, mails.get(event.message_id), overdue, job))
    return sorted(rows, key=lambda row: (not row.is_overdue, row.pending.due_at, row.report.pk)), cut


def _mails(message_ids: Iterable[str], shown: Q) -> dict[str, Message]:
    rows = Message.objects.filter(shown, message_id__in=set(filter(None, message_ids)))
    return {row.message_id: row for row in rows.defer("tables", "own_text", "source")}


@require_safe
def lab(request: HttpRequest) -> HttpResponse:
    """Show the requests that wait for the lab, the overdue ones first, and the jobs that ended lately."""
    rows, cut = work_list(timezone.now())
    over = LabJob.objects.filter(state__in=(JobState.DONE, JobState.WITHDRAWN)).exclude(finished_at=None)
    done = lab_jobs.with_privacy(over).select_related("report__culprit")
    ended = list(done.defer("payload").order_by("-finished_at", "-pk")[:ENDED])
    return render(request, "lab.html", {"rows": rows, "cut": cut, "ended": ended})


@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one job: the mail that asks, the mail with its patch, what was measured, and what became of it.

    What was asked in a private mail is for operators.
    """
    job = row_or_404(LabJob.objects.select_related("report__culprit").filter(pk=pk), f"there is no job {pk}")
    shown, named = shown_messages(request.user), (job.asked_in, job.patch_mail, *job.patch_parts)
    mails = _mails(named, shown)
    private = Message.objects.filter(message_id__in=named).exclude(pk__in=[mail.pk for mail in mails.values()])
    unfinished = job.state in UNFINISHED
    context = {
        "job": job,
        "asking": mails.get(job.asked_in),
        "patch": mails.get(job.patch_mail),
        "private": private.exists(),
        "measured": measured_metrics(job.payload),
        "may_act": request.user.has_perm(SEND),
        "may_cancel": unfinished,
        "may_allow": unfinished and not job.proven and bool(job.patch_digest or (job.branch and not job.patch_mail)),
        "may_retry": unfinished or (job.state == JobState.DONE and job.outcome != JobOutcome.MEASURED),
    }
    return render(request, "lab_job.html", context)


@require_POST
@permission_required(SEND, "only operators can act on the lab's jobs")
def act(request: HttpRequest, pk: int) -> HttpResponse:
    """Act on a job: `do` cancel (with a `reason`, told to the thread if `notify_thread`), allow or retry."""
    command, person, now = request.POST.get("do", ""), username(request), timezone.now()
    reason = " ".join(cleaned(request.POST, "reason").split())
    match command:
        case "cancel" if not reason:
            return error_response("reason: say why, for those who asked; nothing was changed")
        case "cancel":
            notify_thread = "notify_thread" in request.POST
            done = lab_jobs.cancel(pk, person, reason, now, notify_thread=notify_thread)
        case "allow":
            done = lab_jobs.allow(pk, person)
        case "retry":
            done = lab_jobs.retry(pk, person, now)
        case _:
            return error_response(f"do: expected cancel, allow or retry; found {command[:40]!r}")
    said = {"cancel": "Cancelled.", "allow": "Any runner may take it now.", "retry": "Offered to runners again."}
    messages.info(request, said[command] if done else "Nothing was changed: the job is in another state by now.")
    return redirect("lab-job", pk)


# --- `/results/` ---

PAGE = 100  # rows
FINDINGS = 500  # per result; its payload has the rest


def result_named(pk: int) -> BisectResult:
    """Return one result without its payload; raise Http404 if there is none."""
    rows = BisectResult.objects.select_related("report__culprit").defer("payload").filter(pk=pk)
    return row_or_404(rows, "there is no such result")


def findings_of(row: BisectResult) -> list[Finding]:
    """Return the findings that a result was the first to report."""
    if row.report is None:
        return []
    # Filtered by report first, which has an index; a report has only a few results.
    findings = Finding.objects.filter(report=row.report, result=row).select_related("metric", "scenario", "machine")
    return by_importance(findings.order_by(*MOST_IMPORTANT)[:FINDINGS])


def results(request: HttpRequest) -> HttpResponse:
    """List results, newest first; `?held=1`, `?outcome=inconclusive` and `?before=KEY` filter."""
    outcome, held = request.GET.get("outcome", ""), request.GET.get("held") == "1"
    before = key_in(request.GET, "before")
    if outcome and outcome not in Outcome.values:
        return error_response(f"outcome: expected {', '.join(Outcome.values)}; found {outcome[:40]!r}")
    rows = BisectResult.objects.select_related("report__culprit").defer("payload", "measured", "files").order_by("-pk")
    if outcome:
        rows = rows.filter(outcome=outcome)
    if held:
        rows = rows.exclude(held="")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    page = list(rows[: PAGE + 1])
    older = page[PAGE - 1].pk if len(page) > PAGE else None
    context = {"rows": page[:PAGE], "older": older, "outcome": outcome, "held": held, "outcomes": Outcome.values}
    return render(request, "results.html", context)


def result(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one result with its findings."""
    row = result_named(pk)
    return render(request, "result.html", {"row": row, "findings": findings_of(row)})


def payload(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the payload as submitted."""
    row = row_or_404(BisectResult.objects.filter(pk=pk).only("payload"), "there is no such result")
    return HttpResponse(row.payload, content_type="application/json")


# --- `/kernel/v5.6/`, and kernels side by side ---

MOST_KERNELS = 500  # to choose from
MOST_COMPARED = 200_000  # measurements per comparison: years of a lab
MOST_MEASUREMENTS, MOST_FILES = 500, 200  # of one kernel, as shown
# Where several results cover the same test, the newest is the one measured last.
OLDEST_FIRST = (F("result__created_at").asc(nulls_first=True), "pk")
_COLUMNS = (
    "kernel_id", "scenario_id", "machine_id", "metric_id", "mean", "stddev", "runs", "samples",
    "scenario__suite", "scenario__params", "metric__name", "metric__unit", "metric__direction",
    "machine__name", "machine__codename", "machine__cpu_model", "machine__cpus", "machine__memory_bytes",
    "machine__family",
)  # fmt: skip


def kernels() -> list[Kernel]:
    """Return the kernels measured last: commits, then versions in release order, so that the oldest of those chosen is
    the baseline for the others.
    """
    return sorted(Kernel.objects.order_by("-pk")[:MOST_KERNELS], key=release_order)


def release_order(kernel: Kernel) -> tuple[Any, ...]:
    """Return a sort key: release order."""
    version = versions.parse(kernel.name)
    return (version is not None, version or versions.Version(0, 0, 0, 0, 0), kernel.measured_at, kernel.variant)


def kernels_named(handles: Sequence[str]) -> list[Kernel | None]:
    """Return the kernels of these handles ("v5.6", "v5.6/2M"), in order; None where there is no such kernel."""
    pairs = [handle.replace("\0", "\ufffd").partition("/")[::2] for handle in handles]
    condition = Q(pk__in=[])
    for name, variant in pairs:
        condition |= Q(name=name, variant=variant)
    by_pair = {(kernel.name, kernel.variant): kernel for kernel in Kernel.objects.filter(condition)}
    return [by_pair.get((name, variant)) for name, variant in pairs]


def compare(compared: Sequence[Kernel], metrics: Collection[str] | None = None) -> list[ComparisonLine]:
    """Return the results of these kernels, test by test: by suite position, then as received. Two queries.

    `metrics`: those to compare; None for the headlines.
    """
    chosen = Q(role=MeasuredRole.HEADLINE) if metrics is None else Q(metric__name__in=metrics)
    rows = Measurement.objects.filter(chosen, kernel__in=compared).order_by("pk").values_list(*_COLUMNS)
    tests: dict[tuple[int, int, int], ComparedTest] = {}
    cells: dict[tuple[int, int, int], dict[int, list[Cell]]] = {}
    for kernel, scenario, machine, metric, mean, stddev, runs, samples, *test in rows[:MOST_COMPARED].iterator(
        chunk_size=2000
    ):
        key = (scenario, machine, metric)
        if key not in tests:
            suite, params, name, unit, direction, *box = test
            tests[key] = ComparedTest(suite, tuple(params.items()), Box(*box), name, unit, direction)
            cells[key] = {}
        cells[key].setdefault(kernel, []).append(Cell(SampleSummary(mean, stddev, runs), tuple(samples)))
    positions = dict(Suite.objects.values_list("name", "position"))
    ordered = sorted(tests, key=lambda key: positions.get(tests[key].suite, 1000))
    return lines(
        [
            (tests[key], [pooled(cells[key][column.pk]) if column.pk in cells[key] else None for column in compared])
            for key in ordered
        ]
    )


def curves_of(tests: Collection[ComparedTest]) -> dict[ComparedTest, Curve]:
    """Return the curves of tests, of those that have one, in one query."""
    places = {(test.metric, scenario_key(test.suite, dict(test.params)), test.box.name): test for test in tests}
    metrics, scenarios, machines = ({place[part] for place in places} for part in range(3))
    rows = Curve.objects.filter(metric__name__in=metrics, scenario__key__in=scenarios, machine__name__in=machines)
    related = rows.select_related("metric", "scenario", "machine")
    curves = {(row.metric.name, row.scenario.key, row.machine.name): row for row in related}
    return {test: curves[place] for place, test in places.items() if place in curves}


def neighbours(kernel: Kernel) -> list[Kernel]:
    """Return likely kernels to compare with: its other variants, else the neighbouring versions."""
    offered = kernels()
    others = [other for other in offered if other.name == kernel.name and other != kernel]
    if others:
        return others
    ordered = [other for other in offered if not other.variant or other == kernel]
    if kernel not in ordered:
        return []  # one of the oldest: only the newest are offered
    at = ordered.index(kernel)
    return [*ordered[max(0, at - 2) : at], *ordered[at + 1 : at + 3]]


def kernel(request: HttpRequest, handle: str) -> HttpResponse:
    """Show every measurement, headlines first."""
    (kernel,) = kernels_named([handle])
    if kernel is None:
        raise Http404(f"no kernel {handle[:100]} was measured")
    related = Measurement.objects.filter(kernel=kernel).select_related("metric", "scenario", "machine", "result")
    rows = list(related.order_by("role", "scenario__suite", "pk")[: MOST_MEASUREMENTS + 1])  # headline, kpi, monitor
    context = {
        "kernel": kernel,
        "rows": rows[:MOST_MEASUREMENTS],
        "is_cut": len(rows) > MOST_MEASUREMENTS,
        "results": kernel.results.order_by("-pk")[:MOST_FILES],
        "files": kernel.tool_outputs.select_related("machine", "scenario").defer("text").order_by("pk")[:MOST_FILES],
        "neighbours": neighbours(kernel),
    }
    return render(request, "kernel.html", context)


# --- `/tool-output/…` ---


def place_of(report: str = "", side: str = "", kernel: str = "", machine: str = "") -> dict[str, Any]:
    """Return a report with its side, or a kernel, and the machine, as `catalog.attach` takes them. Raises
    InvalidInput if that is not exactly one, Http404 if it does not exist.
    """
    if bool(report) == bool(kernel):
        raise InvalidInput("expected a report with its side, or a kernel")
    if any("\0" in name for name in (report, kernel, machine)):
        raise InvalidInput("names must not contain NUL")
    box = row_or_404(Machine.objects.filter(name=machine), f"there is no machine {machine[:100]}") if machine else None
    if report:
        if side not in CommitSide.values:
            raise InvalidInput(f"side: expected parent or culprit, found {side[:20]!r}")
        return {"report": find_report(report), "side": side, "machine": box}
    (kernel_row,) = kernels_named([kernel])
    if kernel_row is None:
        raise Http404(f"no kernel {kernel[:100]} was measured")
    return {"kernel": kernel_row, "machine": box}


MOST_ROWS = 200
MOST_CHARACTERS = 200_000  # characters shown; a link leads to the whole file


def one_file(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a file as a table, and its text."""
    row = _row(pk)
    listing = read(row.kind, row.text)
    context = {
        "row": row,
        "listing": listing,
        "rows": listing.rows[:MOST_ROWS] if listing else (),
        "more": max(0, len(listing.rows) - MOST_ROWS) if listing else 0,
        "text": row.text[:MOST_CHARACTERS],
        "is_cut": len(row.text) > MOST_CHARACTERS,
    }
    return render(request, "tool_output.html", context)


def raw(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the text as received, as plain text that browsers don't interpret."""
    return HttpResponse(_row(pk).text, content_type="text/plain; charset=utf-8")


def beside(request: HttpRequest) -> HttpResponse:
    """Show two files of one kind, `old` and `new`, side by side."""
    keys = [request.GET.get(name, "") for name in ("old", "new")]
    if not all(map(is_key, keys)):
        return error_response("old, new: expected the IDs of two files")
    old, new = (_row(int(key)) for key in keys)
    if old.kind != new.kind:
        return error_response(f"old, new: expected files of one kind; found {old.kind} and {new.kind}")
    before, after = read(old.kind, old.text), read(new.kind, new.text)
    document = None
    if before and after:
        differences = diff([before, after], TOP if before.is_share else MOST_ROWS)
        sides = tuple(row.side or (row.kernel.label if row.kernel else "") for row in (old, new))
        document = Document("", "", (table(Beside(old.kind, "", sides, (), differences)),))
    return render(request, "tool_output_beside.html", {"old": old, "new": new, "document": document})


def _row(pk: int) -> ToolOutput:
    rows = ToolOutput.objects.select_related("report__culprit", "kernel", "machine", "scenario").filter(pk=pk)
    return row_or_404(rows, "there is no such file")
