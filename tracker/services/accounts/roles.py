"""Roles: the permissions of each group. Anybody may read; admins are superusers, who may do everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from tracker.domain.events import Role
from tracker.models import Report
from tracker.services.accounts.addresses import is_of_a_person
from tracker.services.report_actions import Permit

CHANGE_REPORTS = "tracker.change_report"
DECIDE = "tracker.change_suggestion"
CHANGE_BASKET = "tracker.change_basketentry"
SEND = "tracker.change_outgoingmail"
ROLES: Mapping[str, frozenset[str]] = {
    "triager": frozenset({CHANGE_REPORTS, DECIDE}),
    "operator": frozenset({CHANGE_REPORTS, DECIDE, SEND, CHANGE_BASKET, "tracker.pages.release_report"}),
}


def permit_of(user: AbstractBaseUser | AnonymousUser) -> Permit:
    """Return a function that gives the role in which a user may change a report, or None if they may not.

    Triagers may change any report; authors and recipients only their own.
    """
    everything = user.has_perm(CHANGE_REPORTS)  # type: ignore[union-attr]
    address = str(getattr(user, "email", "")).lower()
    address = address if is_of_a_person(address) else "nobody's"

    def permit(report: Report) -> Role | None:
        if address in report.authors:
            return Role.AUTHOR
        if everything:
            return Role.REPORTER
        return Role.MAINTAINER if address in report.recipients else None

    return permit


def granted(rows: list[Any]) -> frozenset[str]:
    """Return the permissions of a user, from the joined rows of the user and their roles."""
    found: set[str] = set()
    for row in rows:
        found |= ROLES.get(row.role or "", frozenset())
        found |= {f"{app}.{code}" for app, code in ((row.app, row.code), (row.own_app, row.own_code)) if code}
    return frozenset(found)
