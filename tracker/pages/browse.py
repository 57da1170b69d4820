"""Reports of all releases: by name (`/subsystem/`, `/machine/`, `/metric/`, `/author/`), one's own (`/mine/`), and
those that need a push (`/escalations/`).

The lists have the names with open reports. A page shows the reports of one name as the triage table does, with its
filters and its exports; only open ones, unless a filter asks for states. Beside them stand how the reports of this
name fared, computed from the newest ones, and the curves of a machine or a metric. A page takes a constant number of
queries.

The record of an author's replies is for that person and for operators: numbers rank work, not people.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from tracker.domain.deadlines import DEFAULT, before_working_days
from tracker.domain.events import OPEN, Awaited, State, Verdict
from tracker.domain.track_record import Course, TrackRecord, record
from tracker.models import Machine, Metric, OutgoingMail, OutgoingState, Report
from tracker.pages.http import kept, permission_required, sign_in_required, username, without_empty
from tracker.pages.measurements import curves_of
from tracker.pages.prose import NOTED, note_place, notes, write
from tracker.pages.triage.exports import NAMES, in_form
from tracker.pages.triage.filters import GROUPS, ORDERS, POSITIONS, InvalidQuery, TriageQuery
from tracker.pages.triage.table import BOTH, COUNTED, KEEP, FilterCounts, TriageSection, controls, listed, section
from tracker.pages.triage.table import MOST as OFFERED
from tracker.pages.triage.table import Count as ValueCount
from tracker.pages.triage.views import invalid_query, rights
from tracker.services.accounts import CHANGE_REPORTS, SEND, subsystems_of
from tracker.services.report_actions import ACTION_KEYS
from tracker.services.report_summary import clipped

KINDS = ("subsystem", "machine", "metric", "author")
RECORD = 2000  # the newest reports, from which the record is computed
MOST = 500  # names in a list


def _reports(kind: str, name: str) -> tuple[str, QuerySet[Report]]:
    if "\0" in name:  # no database stores NUL, so no name has it
        raise Http404(f"there is no such {kind}")
    name = name.lower() if kind == "author" else name
    return name, Report.objects.filter(**{kind: clipped(name)})


def _shown(reports: QuerySet[Report], query: TriageQuery) -> QuerySet[Report]:
    """Return those that are open, unless a filter asks for states."""
    has_state_filter = "state" in query.active_filters or "state!" in query.active_filters
    return reports if has_state_filter else reports.filter(state__in=sorted(OPEN))


def _newest(reports: QuerySet[Report]) -> tuple[TrackRecord, FilterCounts]:
    """Return how the newest of these reports fared, and how many of them each filter value has, the most first."""
    own = ("subsystem", "suite", "machine", "state", "verdict", "reported_at", "responded_at", "noise_pct")
    columns = {"merged_release", "shift_left_release", *own, *COUNTED.values()}
    rows = list(reports.order_by("-pk").values(*columns)[:RECORD])
    past = record(
        Course(
            release=row["merged_release"] or row["shift_left_release"] or "not in a release",
            **{name: row[name] for name in own},
        )
        for row in rows
    )
    counts = {}
    for name, column in COUNTED.items():
        values = Counter(str(row[column]) for row in rows if row[column])
        counts[name] = [ValueCount(value, number) for value, number in values.most_common(OFFERED)]
    return past, counts


# --- Views ---


def catalog(request: HttpRequest, kind: str) -> HttpResponse:
    """List the names that have open reports, with their number, the most first."""
    rows = Report.objects.filter(state__in=sorted(OPEN)).exclude(**{kind: ""}).order_by()
    grouped = rows.values_list(kind).annotate(number=Count("pk")).order_by("-number", kind)
    names = kept(f"things:{kind}", lambda: list(grouped[:MOST]), KEEP)
    return render(request, "browse_names.html", {"kind": kind, "names": names})


def catalog_page(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Show one of them: its reports as the URL requests, and its statistics."""
    now = timezone.now()
    if address := without_empty(request):
        return redirect(address)
    params = request.GET.copy()
    params.setdefault("improvements", "on")
    if any(params.get(position) for position in POSITIONS):
        params["section"] = "merged"  # this page has only one section
    try:
        query = TriageQuery.from_query(params, now)
    except InvalidQuery as error:
        return invalid_query(request, error)
    name, reports = _reports(kind, name)
    machine = Machine.objects.filter(name=name).first() if kind == "machine" else None
    metric = Metric.objects.filter(name=name).first() if kind == "metric" else None
    shown = _shown(reports, query)
    listing = section("merged", "Reports" if shown is reports else "Open reports", shown, query, now)
    past, counts = _newest(reports)
    if not (past.total.reports or machine or metric):
        raise Http404(f"there is no {kind} {name[:200]}")
    # A record of a person's replies is for that person and for operators: numbers rank work, not people.
    own = isinstance(request.user, User) and request.user.email.lower() == name.lower()
    context = {
        "kind": kind,
        "name": name,
        "section": listing,
        "record": past,
        "machine": machine,
        "note": next((row for _, _, row in notes([(kind, name)])), None) if kind in NOTED else None,
        "may_note": kind in NOTED and request.user.has_perm(CHANGE_REPORTS),
        "metric": metric,
        "curves": curves_of(kind, name) if kind in ("metric", "machine") else [],
        "query": query,
        "controls": controls(query, counts, improvements_default=True),
        "orders": ORDERS,
        "groups": GROUPS,
        "forms": NAMES,
        "actions": ACTION_KEYS,
        "shows_record": kind != "author" or own or request.user.has_perm(SEND),
        "may_change": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "browse_name.html", context)


@require_POST
@permission_required(CHANGE_REPORTS, "only triagers can write notes")
def write_note(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Write the note on a machine, a metric or a subsystem; an empty one removes it. All versions stay."""
    if kind not in NOTED:
        raise Http404("notes are for machines, metrics and subsystems")
    name, _ = _reports(kind, name)
    written = write(note_place(kind, name), "note", request.POST.get("text", ""), username(request), timezone.now())
    messages.info(request, "Saved." if written else "Nothing has changed.")
    return redirect("thing", kind, name)


def catalog_page_as(request: HttpRequest, kind: str, name: str, form: str) -> HttpResponseBase:
    """The reports of one name as JSON, CSV, text, Markdown or Atom, with the page's filters."""
    params = request.GET.copy()
    params.setdefault("improvements", "on")
    query = TriageQuery.from_query(params, timezone.now())
    title, reports = _reports(kind, name)
    if not reports.exists():
        raise Http404(f"there is no {kind} {title[:200]}")
    rows = listed(_shown(reports, query), query)
    page = reverse("thing", args=[kind, name]) + query.url().rstrip("?")
    return in_form(request, form, f"{kind} {title}", {"reports": rows}, page)


# --- `/mine/`: what awaits whoever is signed in: reports of theirs, and mails that they may approve ---
# The page takes a constant number of queries.

DRAFTS = 20  # mails on the page


@require_safe
@sign_in_required
def mine(request: HttpRequest) -> HttpResponse:
    """Show what awaits somebody, what is assigned to them, their culprits, their subsystems, and their drafts."""
    user, now = request.user, timezone.now()
    assert isinstance(user, User)
    address = user.email.lower()
    own = Q(author=address) if address else Q(pk__in=())
    reports = Report.objects.filter(state__in=sorted(OPEN))
    awaits = own & Q(awaited=Awaited.AUTHOR.value)
    maintained = reports.filter(subsystem__in=subsystems_of(address), verdict=Verdict.REGRESSION).exclude(own)
    query = TriageQuery.from_query(QueryDict("improvements=on"), now)
    sections = [
        section("awaiting", "Awaiting your answer", reports.filter(awaits), query, now, BOTH),
        section("assigned", "Assigned to you", reports.filter(assignee=user.get_username()), query, now, BOTH),
        section("culprits", "Your other open culprits", reports.filter(own).exclude(awaits), query, now, BOTH),
        section("subsystems", "Open in your subsystems", maintained, query, now, BOTH),
    ]
    drafts = OutgoingMail.objects.filter(state=OutgoingState.COMPOSED).defer("raw", "body").order_by("pk")
    context = {
        "sections": sections,
        "has_rows": any(section.rows for section in sections),
        "subsystems": sorted({row.subsystem for row in sections[-1].rows}),  # that MAINTAINERS lists the person for
        "drafts": list(drafts[:DRAFTS]) if user.has_perm(SEND) else [],  # that they may approve
        **rights(request, sections),
    }
    return render(request, "mine.html", context)


# --- `/escalations/` ---
# They block a release, nobody answers, nobody picks up the fix, the fix waits in a tree, or a stable series lacks it.

ROWS = 50  # per section
NEWEST = timedelta(days=180)  # what nobody marked as blocking and is older is history, as in an imported archive
_SUBSYSTEMS = 30


@dataclass(frozen=True, slots=True)
class Escalation:
    """Reports for one reason. `search`: a query that finds exactly them, or ""."""

    reason: str
    section: TriageSection
    search: str


def _regressions() -> QuerySet[Report]:
    return Report.objects.filter(state__in=sorted(OPEN), verdict=Verdict.REGRESSION)


def _unanswered(now: datetime) -> QuerySet[Report]:
    """Return the recent regressions that nobody has answered in time."""
    late = before_working_days(now, DEFAULT.response_days)
    return _regressions().filter(state=State.NO_RESPONSE, reported_at__gte=now - NEWEST, reported_at__lt=late)


def load_escalations(now: datetime) -> list[Escalation]:
    """Return the sections that have reports, each with the most urgent of them."""
    recent = _regressions().filter(reported_at__gte=now - NEWEST)
    # Nobody wrote for so long; the time of the report itself, if nobody wrote at all
    quiet = Q(last_human_reply_at__lt=before_working_days(now, DEFAULT.landing_days))
    candidates = recent.filter(Q(state__in=(State.FIX_PROPOSED, State.FIX_CONFIRMED)) & quiet)
    reasons: Sequence[tuple[str, str, str, QuerySet[Report], str]] = (
        (
            "blocking",
            "Blocking a release",
            "Open, and a person said that they block a release.",
            _regressions().exclude(blocks=""),
            "blocking:yes state:open kind:regression",
        ),
        (
            "unanswered",
            "Unanswered",
            f"No response for more than {DEFAULT.response_days} working days.",
            _unanswered(now),
            "",
        ),
        (
            "candidates",
            "Fixes that nobody picked up",
            f"Posted, and quiet for {DEFAULT.landing_days} working days.",
            candidates.exclude(awaited=Awaited.REPORTER),
            "",
        ),
        (
            "queued",
            "Fixes that wait in a tree",
            "The mainline has the regression; its fix is queued elsewhere.",
            recent.filter(state=State.FIX_QUEUED).exclude(merged_release="").exclude(awaited=Awaited.NOBODY),
            "",
        ),
        (
            "stable",
            "Fix missing in stable",
            "A stable series has the culprit, but not its fix.",
            Report.objects.filter(lacks_fix=True, verdict=Verdict.REGRESSION),
            "stable:missing kind:regression",
        ),
    )
    query = TriageQuery.from_query(QueryDict(), now)
    escalations = [
        Escalation(reason, section(name, heading, rows, query, now, ROWS), search)
        for name, heading, reason, rows, search in reasons
    ]
    return [escalation for escalation in escalations if escalation.section.rows]


@require_safe
def escalations(request: HttpRequest) -> HttpResponse:
    """Show what blocks, what nobody answers, fixes that lie about, and fixes that stable series lack."""
    now = timezone.now()
    by_subsystem = _unanswered(now).exclude(subsystem="").order_by().values_list("subsystem")
    too_old = _regressions().filter(state=State.NO_RESPONSE, reported_at__lt=now - NEWEST, blocks="")
    context = {
        "escalations": load_escalations(now),
        # With how many of their regressions nobody has answered
        "subsystems": by_subsystem.annotate(number=Count("pk")).order_by("-number", "subsystem")[:_SUBSYSTEMS],
        "older": too_old.count(),  # and not listed
        "older_search": f"state:no_response kind:regression before:{now - NEWEST:%Y-%m-%d}",
        "actions": ACTION_KEYS,
        "may_change": request.user.has_perm(CHANGE_REPORTS),
    }
    return render(request, "escalations.html", context)
