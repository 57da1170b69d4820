"""`/mine/`: what awaits whoever is signed in: reports of theirs, and mails that they may approve.

The page takes a constant number of queries.
"""

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from tracker.domain.events import OPEN, Awaited, Verdict
from tracker.models import OutgoingMail, OutgoingState, Report
from tracker.pages.http import sign_in_required
from tracker.pages.triage.filters import TriageQuery
from tracker.pages.triage.table import BOTH, section
from tracker.pages.triage.views import rights
from tracker.services.accounts import SEND, subsystems_of

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
