"""`/v5.6/report/`: the report of a release, also as text, Markdown and JSON.

Its facts are loaded here in about fifteen queries, however many rows there are, and composed by
tracker/documents/release_report.py: both sections of the release's table, the highlights that triagers chose, and the
release, or its last measured -rc, compared with the previous release. The prose is edited in place and keeps its
versions (tracker/pages/prose.py).
"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from django.conf import settings
from django.contrib import messages
from django.db.models import Prefetch, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from tracker.documents.blocks import Document
from tracker.documents.linus_mail import MailLine
from tracker.documents.release_report import SECTIONS, HighlightData, ParameterData, ReleaseFacts, compose
from tracker.domain import versions
from tracker.domain.events import EventKind, InvalidInput, Verdict
from tracker.domain.kernel_comparison import Box
from tracker.models import Event, Finding, Kernel, Machine, Parameter, Release, Report, ReportHighlight, Suite
from tracker.pages import kernels as comparison
from tracker.pages.http import cleaned, error_response, permission_required
from tracker.pages.prose import editing, in_form, save_text, texts
from tracker.pages.report import find_report
from tracker.pages.triage.table import table
from tracker.services.accounts import CHANGE_REPORTS


def document(release: Release, lab: str, now: datetime) -> Document:
    """Return the current report of a release. `lab`: who publishes it."""
    return compose(_facts(release, lab, now))


def _facts(release: Release, lab: str, now: datetime) -> ReleaseFacts:
    """Return all data of the report."""
    printed_table = table(release)
    previous = Release.objects.filter(number__lt=release.number).order_by("-number").first()
    kernel, base = kernels(release.version, previous.version if previous else "")
    lines = comparison.compare([base, kernel]) if kernel and base else []
    # The machines of the lab's own list and those in this report, with or without known details
    printed = {row.machine for row in (*printed_table.merged, *printed_table.shift_left)}
    names = printed | {line.test.box.name for line in lines}
    machines = Machine.objects.filter(~Q(family="") | Q(name__in=names)).order_by("pk")
    boxes = machines.values_list("name", "codename", "cpu_model", "cpus", "memory_bytes", "family")
    parameters = Parameter.objects.values_list("classification", "name", "description")
    return ReleaseFacts(
        lab=lab,
        version=release.version,
        previous=previous.version if previous else "",
        released_at=release.released_at,
        as_of=now,
        merged=printed_table.merged,
        shift_left=printed_table.shift_left,
        by_people=printed_table.by_people,
        details=_highlights(release),
        parameters=[ParameterData(*fields) for fields in parameters],
        suites=dict(Suite.objects.values_list("name", "description")),
        kernel=kernel.label if kernel else "",
        base=base.label if base else "",
        lines=lines,
        curves={
            test: (curve.outline, reverse("curve", args=[curve.pk]))
            for test, curve in comparison.curves_of([line.test for line in lines]).items()
        },
        boxes=[Box(*fields) for fields in boxes],
        prose={name: row.text for name, row in texts(document_key(release.version)).items()},
        regressions=mail_lines(release),
    )


def mail_lines(release: Release) -> list[MailLine]:
    """Return the regressions of a release for a mail, those of which most is certain first: two queries."""
    in_cycle = Q(merged_release=release.version) | Q(shift_left_release=release.version)
    reports = list(
        Report.objects.filter(in_cycle, verdict=Verdict.REGRESSION)
        .exclude(reported_at=None)
        .select_related("culprit")
        .order_by("-weight", "pk")
    )
    mails = Event.objects.filter(report__in=reports, kind=EventKind.REPORTED).exclude(message_id="").order_by("-pk")
    threads = dict(mails.values_list("report", "message_id"))
    return [
        MailLine(
            report.culprit.sha,
            report.given_title or report.culprit.title or _untitled(report),
            report.subsystem,
            report.metric,
            report.change,
            report.culprit.author_name or report.culprit.author_email,
            report.state,
            report.status,
            report.awaited,
            report.reported_at,
            f"https://lore.kernel.org/r/{quote(threads[report.pk], safe='@+')}" if report.pk in threads else "",
            report.fix_landing,
            report.reporter,
            bisected=not report.culprit.placeholder,
        )
        for report in reports
    ]


def _untitled(report: Report) -> str:
    """Return what to call a report whose culprit is not known, or has no title here."""
    return str(report) if report.of_person else f"{report.subsystem or report.culprit.sha10}: {report.suite}"


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
    headlines = Finding.objects.filter(headline=True).select_related("metric", "scenario", "machine")
    chosen = ReportHighlight.objects.filter(release=release).select_related("report__culprit", "report__tree")
    rows = chosen.prefetch_related(Prefetch("report__findings", headlines, to_attr="headlines"))
    highlights = []
    for row in rows:
        report = row.report
        headline: Finding | None = next(iter(report.headlines), None)  # type: ignore[attr-defined]
        tree = report.tree.name if report.tree else ""
        highlights.append(
            HighlightData(
                sha=report.culprit.sha,
                title=report.culprit.title,
                branch="/".join(part for part in (tree, report.branch) if part),
                report=str(report),
                indicator=headline.metric.name if headline else report.metric,
                suite=headline.scenario.suite if headline else report.suite,
                change=headline.change if headline else None,
                verdict=report.verdict,
                base=headline.base if headline else "",
                landing=report.landing,
                scenario=tuple(headline.scenario.params.items()) if headline else (),
                machine=headline.machine.name if headline else "",
                status=report.status,
                heading=row.heading,
                is_merged=report.merged_release == release.version,
            )
        )
    return highlights


# --- Views ---


def report(request: HttpRequest, version: str) -> HttpResponse:
    """Show the report; `edit` names the text to edit."""
    release = _release(version)
    try:
        edit = editing(request, document_key(version), SECTIONS)
    except InvalidInput as error:
        return error_response(str(error))
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
    return save_text(request, document_key(release.version), SECTIONS) or redirect("release-report", release.version)


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
    release = Release.objects.filter(version=version).first()
    if release is None:
        raise Http404(f"there is no release {version[:40]}")
    return release
