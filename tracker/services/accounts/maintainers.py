"""Whose subsystems are whose: learnt from MAINTAINERS as reports are composed, for the page of what is theirs."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from tracker.models import Maintainer


def learn_maintainers(subsystem: str, addresses: Iterable[str]) -> None:
    """Record the maintainers of a subsystem; those that are known stay."""
    rows = [Maintainer(address=each.lower(), subsystem=subsystem) for each in addresses if subsystem]
    Maintainer.objects.bulk_create(rows, ignore_conflicts=True)


def subsystems_of(address: str) -> QuerySet[Maintainer, str]:
    """Return the subsystems that somebody maintains; none for no address."""
    return Maintainer.objects.filter(address=address.lower()).exclude(address="").values_list("subsystem", flat=True)
