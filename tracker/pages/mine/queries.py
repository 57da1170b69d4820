"""The reports of one person, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import QueryDict

from tracker.domain.events import OPEN, Awaited
from tracker.models import Report
from tracker.pages.triage.queries import BOTH, TriageSection, section
from tracker.pages.triage.query import TriageQuery


def sections(user: User, now: datetime) -> Sequence[TriageSection]:
    """Return what awaits somebody's answer, what is assigned to them, and the rest of their culprits that are open."""
    address = user.email.lower()
    own = Q(author=address) if address else Q(pk__in=())
    reports = Report.objects.filter(state__in=sorted(OPEN))
    awaits = own & Q(awaited=Awaited.AUTHOR.value)
    query = TriageQuery.from_query(QueryDict("improvements=on"), now)
    return [
        section("awaiting", "Awaiting your answer", reports.filter(awaits), query, now, BOTH),
        section("assigned", "Assigned to you", reports.filter(assignee=user.get_username()), query, now, BOTH),
        section("culprits", "Your other open culprits", reports.filter(own).exclude(awaits), query, now, BOTH),
    ]
