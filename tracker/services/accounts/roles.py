"""Who may change what: the permissions that pages ask for, and the role in which somebody changes a report.

Anybody may read. The groups triager and operator have these permissions (0002_seed); superusers may do everything.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from tracker.domain.events import Role
from tracker.models import Report
from tracker.services.accounts.addresses import is_of_a_person
from tracker.services.reports.report_actions import Permit

CHANGE_REPORTS = "tracker.change_report"
DECIDE = "tracker.change_suggestion"
CHANGE_BASKET = "tracker.change_basketentry"
SEND = "tracker.change_outgoingmail"


def permit_of(user: AbstractBaseUser | AnonymousUser) -> Permit:
    """Return a function that gives the role in which a user may change a report, or None if they may not.

    Triagers may change any report; authors, recipients, signers and maintainers of the culprit only their own.
    """
    everything = user.has_perm(CHANGE_REPORTS)  # type: ignore[union-attr]
    address = str(getattr(user, "email", "")).lower()
    address = address if is_of_a_person(address) else "nobody's"

    def permit(report: Report) -> Role | None:
        if address in report.verified_authors:
            return Role.AUTHOR
        if everything:
            return Role.REPORTER
        return Role.MAINTAINER if address in report.verified_maintainers else None

    return permit
