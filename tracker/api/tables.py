"""`/api/v1/`: reports, findings, events, messages and the other lists, with OpenAPI (Django Ninja).

The shapes document the answers, which are written without going through them: a page of 100 rows takes a third of the
time that way. A test checks real answers against the document.

Reports take the filters of the triage table, with `release` and `updated_since` besides; improvements are included,
as a list of all reports has them. Every list takes `fields`, `limit` and `cursor`. Errors are problem+json (RFC 9457)
and say which parameter, what was expected, and what was found. The lists are public, but for outgoing mail: that
needs a key that acts for an operator.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from string import hexdigits
from types import GenericAlias
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from ninja import NinjaAPI, Router, Schema

from tracker.api import shapes
from tracker.api.requests import (
    NOT_FOUND,
    PROBLEM,
    WRITING,
    PageVersion,
    as_json,
    authenticate,
    page,
    person_of,
    takes,
)
from tracker.api.shapes import shaped
from tracker.domain import versions
from tracker.domain.events import InvalidInput
from tracker.domain.lab_jobs import JobState
from tracker.models import (
    Commit,
    Curve,
    Decision,
    Event,
    Finding,
    LabJob,
    Machine,
    Measurement,
    Message,
    Metric,
    OutgoingMail,
    OutgoingState,
    Release,
    Report,
    Suggestion,
)
from tracker.pages.http import ApiError
from tracker.pages.report_json import FINDING_VERSION, REPORT_VERSION, directions, finding_json, report_json
from tracker.pages.triage.filters import TriageQuery
from tracker.services import event_log, lab_jobs
from tracker.services.accounts import SEND, Scope

# --- Outgoing mail ---

router = Router()
View = Callable[..., HttpResponse]
_REFUSED = {status: {"description": text} for status, text in ((401, "no valid key"), (403, "not an operator"))}
_DOCUMENT = takes("state", "report")
_DOCUMENT["responses"] |= {400: {"description": "Bad Request", **PROBLEM}, **_REFUSED, 429: {"description": "later"}}
_DOCUMENT["security"] = [{"key": []}]


@router.get(
    "",
    response={200: list[shapes.OutgoingShape], 400: shapes.Problem},
    url_name="api-outgoing",
    openapi_extra=_DOCUMENT,
)
def outgoing(request: HttpRequest) -> HttpResponse:
    """Outgoing mails without their bytes: all, or those with `state=held` (sent, failed, …) or of `report=SHA`."""
    key = authenticate(request, Scope.TRIAGE)
    if not person_of(key).has_perm(SEND):
        raise ApiError(403, f"the key {key.name!r} acts for nobody who may see outgoing mail")
    mails = OutgoingMail.objects.select_related("report__culprit").defer("raw", "body", "people")
    rows = _of_report(request, mails)
    if state := _one_of("state", request, OutgoingState.values):
        rows = rows.filter(state=state)

    def shape(mail: OutgoingMail) -> dict[str, Any]:
        return shaped(shapes.OutgoingShape, mail, report=mail.report.culprit.sha if mail.report else "")

    response = page(request, rows, shape, shapes.OutgoingShape)
    response["Cache-Control"] = "private, no-store"
    return response


# --- Public lists ---

OWN = ("cursor", "limit", "fields", "updated_since", "release")  # parameters that are not filters of the triage table


class DocumentedAPI(NinjaAPI):
    """Ninja's own, whose document also names the addresses that take data."""

    def get_openapi_schema(self, **options: Any) -> Any:
        document = super().get_openapi_schema(**options)
        document["paths"] |= WRITING["paths"]
        document["components"] |= WRITING["components"]
        return document


api = DocumentedAPI(
    title="Perfwork",
    version="1",
    urls_namespace="api",
    description="Kernel performance reports. Lists are paged by the Link header; errors are problem+json.",
    docs_url=None,
)


api.add_router("/outgoing", router)


def _list(path: str, shape: type[Schema], *parameters: str) -> Callable[[View], View]:
    """Register a list of objects of this shape with these query parameters."""
    return api.get(
        path,
        response={200: GenericAlias(list, (shape,)), 400: shapes.Problem},
        url_name=f"api-{path.removeprefix('/')}",
        openapi_extra=takes(*parameters),
    )


@api.exception_handler(InvalidInput)
def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    return _problem(request, 400, str(error))


@api.exception_handler(ApiError)
def _refused_to_a_program(request: HttpRequest, error: Exception) -> HttpResponse:
    assert isinstance(error, ApiError)
    return error.response


def _problem(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    """Return an error (RFC 9457)."""
    answer = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    response = api.create_response(request, answer, status=status)
    response["Content-Type"] = "application/problem+json"
    return response


@_list("/reports", shapes.ReportShape, "release", "updated_since", "state", "subsystem", "author", "metric", "machine")
def reports(request: HttpRequest) -> HttpResponse:
    """Reports, by the filters of the triage table (`state=open`, `subsystem=mm`, `state!=fixed`, …), `release=v6.12`
    and `updated_since=2026-03-01T00:00:00Z`. Every list takes `fields=culprit,state`, `limit` (up to 1000), `cursor`.
    """
    rows = _filtered(request).select_related("culprit", "tree")
    by_metric = directions()

    def shape(report: Report) -> dict[str, Any]:
        return report_json(report, by_metric, request.build_absolute_uri)

    return page(request, rows, shape, shapes.ReportShape, PageVersion(REPORT_VERSION, by_metric))


@api.get(
    "/reports/{culprit}",
    response={200: shapes.ReportShape, 404: shapes.Problem},
    url_name="api-report",
    openapi_extra=NOT_FOUND,
)
def report(request: HttpRequest, culprit: str) -> HttpResponse:
    """One report, by its culprit's sha or at least seven digits of it; a former culprit's counts, too."""
    matches = []
    if len(culprit) >= 7 and culprit.isalnum():
        related = Report.objects.select_related("culprit", "tree")
        matches = list(related.filter(culprit__sha__startswith=culprit.lower())[:2])
        matches = matches or list(related.filter(culprit__former_culprits__sha__startswith=culprit.lower())[:2])
    if len(matches) != 1:
        return _problem(request, 404, f"no report has the culprit {culprit[:64]!r}")
    return as_json(request, report_json(matches[0], directions(), request.build_absolute_uri))


@_list("/findings", shapes.FindingShape, "report")
def findings(request: HttpRequest) -> HttpResponse:
    """Findings of all reports, or of those with `report=SHA`."""
    rows = _of_report(request, Finding.objects.select_related("report__culprit", "metric", "scenario", "machine"))

    def shape(finding: Finding) -> dict[str, Any]:
        return {"report": finding.report.culprit.sha, **finding_json(finding)}

    version = PageVersion(("report__culprit__sha", *FINDING_VERSION))
    return page(request, rows, shape, shapes.FindingShape, version)


@_list("/events", shapes.EventShape, "report")
def events(request: HttpRequest) -> HttpResponse:
    """Events of all reports, or of those with `report=SHA`, in the order in which they were recorded."""
    rows = event_log.with_trust(_of_report(request, Event.objects.select_related("report__culprit")))
    return page(request, rows, shapes.event_json, shapes.EventShape, PageVersion(shapes.EVENT_VERSION))


@_list("/messages", shapes.MessageShape, "report")
def messages(request: HttpRequest) -> HttpResponse:
    """Mails of all threads, or of those with `report=SHA`."""
    public = Message.objects.filter(public=True).select_related("report__culprit")
    rows = _of_report(request, public.defer("own_text", "tables"))

    def shape(message: Message) -> dict[str, Any]:
        sha = message.report.culprit.sha
        return shaped(shapes.MessageShape, message, report=sha, author=message.author_email, date=message.sent_at)

    return page(request, rows, shape, shapes.MessageShape)


@_list("/releases", shapes.ReleaseShape)
def releases(request: HttpRequest) -> HttpResponse:
    """Releases."""

    def shape(release: Release) -> dict[str, Any]:
        url = request.build_absolute_uri(reverse("triage", args=[release.version]))
        return shaped(shapes.ReleaseShape, release, url=url)

    return page(request, Release.objects.all(), shape, shapes.ReleaseShape)


@_list("/curves", shapes.CurveShape, "metric", "machine")
def curves(request: HttpRequest) -> HttpResponse:
    """Curves of measurements, by `metric` and `machine`."""
    rows = _by_name(request, Curve.objects.select_related("metric", "scenario", "machine"), "metric", "machine")

    def shape(curve: Curve) -> dict[str, Any]:
        metric = {"metric": curve.metric.name, "unit": curve.metric.unit, "direction": curve.metric.direction}
        place = {"suite": curve.scenario.suite, "scenario": str(curve.scenario), "machine": curve.machine.name}
        url = request.build_absolute_uri(reverse("curve", args=[curve.pk]))
        return shaped(shapes.CurveShape, curve, **metric, **place, url=url)

    return page(request, rows, shape, shapes.CurveShape)


@_list("/jobs", shapes.JobShape, "state", "report")
def jobs(request: HttpRequest) -> HttpResponse:
    """The lab's jobs: requests of people to test a patch or to answer something; all, or those with `state=waiting`
    (claimed, done, withdrawn) or `report=SHA`. Of what was asked or posted in a private mail, the words are left out.
    """
    rows = _of_report(request, lab_jobs.with_privacy(LabJob.objects.select_related("report__culprit")))
    if state := _one_of("state", request, list(JobState)):
        rows = rows.filter(state=state)

    def shape(job: Any) -> dict[str, Any]:
        own = shapes.job_json(job, request.build_absolute_uri)
        return {**own, "title": "", "branch": "", "detail": ""} if job.private else own

    return page(request, rows, shape, shapes.JobShape)


@_list("/suggestions", shapes.SuggestionShape, "decision", "report")
def suggestions(request: HttpRequest) -> HttpResponse:
    """Suggestions that wait for a person, or those with another `decision`, or of `report=SHA`."""
    decision = _one_of("decision", request, Decision.values, "open")
    of_report = _of_report(request, Suggestion.objects.select_related("report__culprit"))
    rows = event_log.with_trust(of_report.filter(decision=decision))

    def shape(suggestion: Suggestion) -> dict[str, Any]:
        sha = suggestion.report.culprit.sha
        return shaped(shapes.SuggestionShape, suggestion, report=sha, at=suggestion.occurred_at, by=suggestion.role)

    return page(request, rows, shape, shapes.SuggestionShape)


@_list("/commits", shapes.CommitShape, "author")
def commits(request: HttpRequest) -> HttpResponse:
    """Culprits, fixes and other commits that reports are about; all, or those of an `author`, by address."""
    rows = Commit.objects.all()
    if author := request.GET.get("author", ""):
        rows = rows.filter(author_email=author.lower().replace("\0", ""))

    def shape(commit: Commit) -> dict[str, Any]:
        return shaped(shapes.CommitShape, commit, author=commit.author_email, patch=commit.patch_message_id)

    return page(request, rows, shape, shapes.CommitShape)


@_list("/measurements", shapes.MeasurementShape, "kernel", "metric", "machine")
def measurements(request: HttpRequest) -> HttpResponse:
    """Measurements of kernels as a whole, by `kernel`, `metric` and `machine`; those of commits are in `/curves`."""
    related = Measurement.objects.select_related("kernel", "metric", "scenario", "machine")
    rows = _by_name(request, related, "kernel", "metric", "machine")

    def shape(measurement: Measurement) -> dict[str, Any]:
        kernel = {"kernel": measurement.kernel.name, "variant": measurement.kernel.variant}
        metric = {"metric": measurement.metric.name, "unit": measurement.metric.unit}
        place = {"scenario": str(measurement.scenario), "machine": measurement.machine.name}
        return shaped(shapes.MeasurementShape, measurement, **kernel, **metric, **place)

    return page(request, rows, shape, shapes.MeasurementShape)


@_list("/metrics", shapes.NamedShape)
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics, with their units and directions."""
    return page(request, Metric.objects.all(), _named(request, "metric"), shapes.NamedShape)


@_list("/machines", shapes.NamedShape)
def machines(request: HttpRequest) -> HttpResponse:
    """Machines."""
    return page(request, Machine.objects.all(), _named(request, "machine"), shapes.NamedShape)


def _named(request: HttpRequest, kind: str) -> Callable[[Any], dict[str, Any]]:
    def shape(thing: Any) -> dict[str, Any]:
        own = {name: getattr(thing, name, "") for name in ("name", "unit", "direction", "description")}
        return {**own, "url": request.build_absolute_uri(reverse("thing", args=[kind, thing.name]))}

    return shape


def _filtered(request: HttpRequest) -> QuerySet[Report]:
    """Return the reports that the filters ask for; improvements, too, as a list of all reports has them."""
    params = QueryDict("improvements=on", mutable=True)
    for name in request.GET:
        if name not in OWN:
            params.setlist(name, request.GET.getlist(name))
    rows = TriageQuery.from_query(params, timezone.now()).filtered(Report.objects.all())
    if release := request.GET.get("release", ""):
        if versions.parse(release) is None:
            raise InvalidInput(f"release: expected a version like v6.12; found {release[:40]!r}")
        keys = Report.objects.order_by().values("pk")  # two indexes, where an OR reads all rows of both
        rows = rows.filter(pk__in=keys.filter(merged_release=release).union(keys.filter(shift_left_release=release)))
    if since := request.GET.get("updated_since", ""):
        rows = rows.filter(changed_at__gte=_moment(since))
    return rows


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text.replace(" ", "+"))  # an unescaped + is a space
        moment = moment.astimezone(UTC) if moment and timezone.is_aware(moment) else moment
        day = parse_date(text) if moment is None else None
    except (ValueError, OverflowError):  # no date, or one beyond the calendar
        moment = day = None
    if day is not None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    if moment is None:
        raise InvalidInput(f"updated_since: expected a time like 2026-03-01T00:00:00Z; found {text[:40]!r}")
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=UTC)


def _one_of(name: str, request: HttpRequest, choices: Sequence[str], default: str = "") -> str:
    value: str = request.GET.get(name, default)
    if value != default and value not in choices:
        raise InvalidInput(f"{name}: expected one of {', '.join(choices)}; found {value[:40]!r}")
    return value


def _by_name(request: HttpRequest, rows: QuerySet[Any], *names: str) -> QuerySet[Any]:
    for name in names:
        if value := request.GET.get(name):
            rows = rows.filter(**{f"{name}__name": value.replace("\0", "")})
    return rows


def _of_report(request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
    sha = request.GET.get("report", "").lower()
    if not sha:
        return rows
    if not set(sha) <= set(hexdigits):
        raise ApiError(400, f"report is {sha[:64]!r}; expected a culprit's sha, or its first digits")
    return rows.filter(report__culprit__sha__startswith=sha)
