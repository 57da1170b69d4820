"""`/v5.6/report/`: the report of a release, also as text, Markdown and JSON.

Its facts are loaded here in about twenty queries, however many rows there are, and composed by
tracker/documents/release_report.py: the reports of the cycle and its course, the highlights that triagers chose, and
the release, or its last measured -rc, compared with the previous release. The prose is edited in place and keeps its
versions (tracker/pages/prose.py).
"""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.documents.blocks import Document
from tracker.documents.digest import Week, week
from tracker.documents.release_report import SECTIONS, CycleRow, HighlightData, Merged, ReleaseFacts, compose
from tracker.domain import versions
from tracker.domain.events import OPEN, EventKind, TreeRole, Verdict
from tracker.domain.kernel_comparison import Box
from tracker.domain.report_state import NOT_KNOWN
from tracker.domain.text import lore_url
from tracker.domain.versions import CyclePoint
from tracker.models import (
    Event,
    Kernel,
    Machine,
    Parameter,
    Release,
    ReleaseCandidate,
    Report,
    ReportHighlight,
    Suite,
)
from tracker.pages import index
from tracker.pages.http import cleaned, permission_required, row_or_404
from tracker.pages.lab import compare, curves_of
from tracker.pages.prose import editing, in_form, save_text, texts
from tracker.pages.report import find_report
from tracker.services.accounts import CHANGE_REPORTS
from tracker.services.report_summary import ReleaseCalendar, headline_of, in_cycle, with_headlines


def document(release: Release, lab: str, now: datetime) -> Document:
    """Return the current report of a release. `lab`: who publishes it."""
    return compose(_facts(release, lab, now))


def _facts(release: Release, lab: str, now: datetime) -> ReleaseFacts:
    """Return all data of the report."""
    # Authors hear of a report before the lists do, and of a held one nobody does
    reports = [report for report in _reports(in_cycle(release.version)) if report.reported_at]
    previous = Release.objects.filter(number__lt=release.number).order_by("-number").first()
    kernel, base = kernels(release.version, previous.version if previous else "")
    lines = compare([base, kernel]) if kernel and base else []
    # The machines of the lab's own list and those in this report, with or without known details
    names = {report.machine for report in reports} | {line.test.box.name for line in lines}
    machines = Machine.objects.filter(~Q(family="") | Q(name__in=names - {"", "unknown"})).order_by("pk")
    boxes = machines.values_list("name", "codename", "cpu_model", "cpus", "memory_bytes", "family")
    return ReleaseFacts(
        lab=lab,
        contact=settings.PERFWORK_LIST_ADDRESS,
        version=release.version,
        previous=previous.version if previous else "",
        released_at=release.released_at,
        as_of=now,
        rows=_rows(reports, release.version),
        points=_points(release, now),
        highlights=_highlights(release),
        parameters=list(Parameter.objects.values_list("classification", "name", "description")),
        suites=dict(Suite.objects.values_list("name", "description")),
        kernel=kernel.label if kernel else "",
        base=base.label if base else "",
        lines=lines,
        curves={
            test: (curve.outline, reverse("curve", args=[curve.pk]))
            for test, curve in curves_of([line.test for line in lines]).items()
        },
        index=index.against(base, kernel) if kernel and base else None,
        boxes=[Box(*fields) for fields in boxes],
        prose={name: row.text for name, row in texts(document_key(release.version)).items()},
    )


def _points(release: Release, now: datetime) -> list[CyclePoint]:
    """Return the release candidates of a cycle, then the release if it is out, and now; [] before the first -rc."""
    tagged = ReleaseCandidate.objects.filter(release=release).values_list("number", "tagged_at")
    candidates = versions.points(release.version, dict(tagged))
    if candidates and release.released_at:
        candidates.append(CyclePoint(release.version, release.released_at))
    return [*candidates, CyclePoint("now", now)] if candidates else []


MOST = 5000  # reports of a cycle; a real one has about fifty


def _reports(which: Q, order: str = "-weight") -> list[Report]:
    """Return reports with their headlines, by default those of which most is certain first: two queries."""
    rows = Report.objects.filter(which).select_related("culprit", "tree")
    return list(with_headlines(rows).order_by(order, "pk")[:MOST])


def mail_lines(which: Q, version: str, order: str = "-weight") -> list[CycleRow]:
    """Return the regressions among these reports for a mail: three queries. Authors hear of one before the lists do."""
    rows = [report for report in _reports(which, order) if report.verdict == Verdict.REGRESSION and report.reported_at]
    return _rows(rows, version)


def current_cycle() -> str:
    """Return the release in development; until its -rc1, the previous one. "" if no release is known."""
    newest = Release.objects.order_by("-number").values_list("version", flat=True).first()
    return ReleaseCalendar.load().current or newest or ""


def week_of(version: str, now: datetime) -> Week:
    """Return the week of a release cycle, most urgent reports first."""
    return week(mail_lines(in_cycle(version), version, "-urgency"), now)


def _rows(reports: Sequence[Report], version: str) -> list[CycleRow]:
    """Return the rows of reports with their headlines in a release's cycle, in this order; one query for threads."""
    mails = Event.objects.filter(report__in=reports, kind=EventKind.REPORTED).exclude(message_id="").order_by("-pk")
    threads = dict(mails.values_list("report", "message_id"))
    return [_row(report, version, threads.get(report.pk, "")) for report in reports]


def _row(report: Report, version: str, thread: str = "") -> CycleRow:
    headline = headline_of(report)
    culprit = report.culprit
    scenario = headline.scenario.params.items() if headline else ()
    untitled = str(report) if report.of_person else ": ".join(filter(None, (report.subsystem, report.suite)))
    return CycleRow(
        sha=culprit.sha,
        title=report.given_title or culprit.title or untitled,
        subsystem=report.subsystem,
        metric=headline.metric.name if headline else report.metric,
        change=headline.change if headline else report.change,
        author=culprit.author_name or culprit.author_email,
        state=report.state,
        status=report.status,
        awaited=report.awaited,
        reported_at=report.reported_at,
        thread=lore_url(thread) if thread else "",
        fix_landing=report.fix_landing,
        reporter=report.reporter,
        bisected=not culprit.placeholder,
        verdict=report.verdict,
        merged=_merged(report, version),
        is_shift_left=report.shift_left_release == version,
        scenario=" ".join(f"{name}={value}" for name, value in scenario) if headline else report.scenario,
        machine=headline.machine.name if headline else report.machine,
        base=headline.base if headline else "",
        magnitude=report.person_report.magnitude.value if report.of_person and report.change is None else "",
        low=headline.low_pct if headline else None,
        high=headline.high_pct if headline else None,
        closed_at=report.closed_at,
        awaited_since=report.awaited_since,
        blocks=report.blocks if report.state in OPEN else "",
    )


def _merged(report: Report, version: str) -> Merged:
    if report.merged_release:
        return Merged.IN_CYCLE if report.merged_release == version else Merged.IN_ANOTHER
    if report.tree and report.tree.role == TreeRole.MAINLINE:
        return Merged.UNKNOWN
    return Merged.UNTOLD if NOT_KNOWN in report.status else Merged.NOT_YET


def document_key(version: str) -> str:
    """Return the `place` of a report's prose in `TextRevision`."""
    return f"report {version}"


def kernels(version: str, previous: str) -> tuple[Kernel | None, Kernel | None]:
    """Return the kernels to compare: the release or its last measured -rc, and the previous release."""
    plain = Kernel.objects.filter(variant="").filter(Q(name__startswith=version) | Q(name=previous))
    by_name = {kernel.name: kernel for kernel in plain}
    candidates = [
        (parsed, kernel)
        for name, kernel in by_name.items()
        if (parsed := versions.parse(name)) and parsed.cycle == version and not parsed.is_stable
    ]
    newest = max(candidates, key=lambda pair: pair[0])[1] if candidates else None
    return newest, by_name.get(previous)


def _highlights(release: Release) -> list[HighlightData]:
    chosen = ReportHighlight.objects.filter(release=release).select_related("report__culprit", "report__tree")
    highlights = []
    for row in with_headlines(chosen, "report__findings"):
        report = row.report
        headline = headline_of(report)
        tree = report.tree.name if report.tree else ""
        highlights.append(
            HighlightData(
                row=_row(report, release.version),
                heading=row.heading,
                branch="/".join(part for part in (tree, report.branch) if part),
                suite=headline.scenario.suite if headline else report.suite,
                scenario=tuple(headline.scenario.params.items()) if headline else (),
                landing=report.landing,
            )
        )
    return highlights


# --- Views ---


def report(request: HttpRequest, version: str) -> HttpResponse:
    """Show the report; `edit` names the text to edit."""
    release, edit = _release(version), editing(request, document_key(version), SECTIONS)
    facts = _facts(release, settings.PERFWORK_LAB, timezone.now())
    kernels = [name for name in (facts.base, facts.kernel) if name]
    context = {"release": release, "document": compose(facts), "edit": edit, "kernels": kernels}
    return render(request, "release_report.html", context)


def as_form(request: HttpRequest, version: str, form: str) -> HttpResponse:
    """Return the report as text, Markdown or JSON."""
    return in_form(document(_release(version), settings.PERFWORK_LAB, timezone.now()), form)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can edit release reports")
def edit(request: HttpRequest) -> HttpResponse:
    """Save one of the texts; earlier versions stay in its history."""
    release = _release(cleaned(request.POST, "version", 30))
    save_text(request, document_key(release.version), SECTIONS)
    return redirect("release-report", release.version)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can choose report highlights")
def choose_highlight(request: HttpRequest) -> HttpResponse:
    """Make a report a highlight, under `heading` if one is given; or remove it (`away`)."""
    release, report = _release(cleaned(request.POST, "version", 30)), find_report(cleaned(request.POST, "report", 64))
    if request.POST.get("away"):
        ReportHighlight.objects.filter(release=release, report=report).delete()
        messages.info(request, f"No longer a highlight of the {release.version} report.")
    else:
        heading = " ".join(cleaned(request.POST, "heading", 120).split())
        ReportHighlight.objects.update_or_create(release=release, report=report, defaults={"heading": heading})
        messages.info(request, f"Now a highlight of the {release.version} report.")
    return redirect("report", report.culprit.sha)


def _release(version: str) -> Release:
    return row_or_404(Release.objects.filter(version=version), f"there is no release {version[:40]}")
