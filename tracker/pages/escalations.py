"""`/escalations/`: the reports of all releases that need a push, a section for each reason.

They block a release, nobody answers, nobody picks up the fix, the fix waits in a tree, or a stable series lacks it.
The page takes a constant number of queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.domain.deadlines import DEFAULT, before_working_days
from tracker.domain.events import OPEN, Awaited, State, Verdict
from tracker.models import Report
from tracker.pages.triage.filters import TriageQuery
from tracker.pages.triage.table import TriageSection, section
from tracker.services.accounts import CHANGE_REPORTS
from tracker.services.report_actions import ACTION_KEYS

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
            *("blocking", "Blocking a release", "Open, and a person said that they block a release."),
            _regressions().exclude(blocks=""),
            "blocking:yes state:open kind:regression",
        ),
        (
            *("unanswered", "Unanswered", f"No response for more than {DEFAULT.response_days} working days."),
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
            *("queued", "Fixes that wait in a tree", "The mainline has the regression; its fix is queued elsewhere."),
            recent.filter(state=State.FIX_QUEUED).exclude(merged_release="").exclude(awaited=Awaited.NOBODY),
            "",
        ),
        (
            *("stable", "Fix missing in stable", "A stable series has the culprit, but not its fix."),
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


# --- Views ---


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
