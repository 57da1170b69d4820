"""What has changed last, as a value that is compared instead of pages: one query, answered by primary keys alone.

What is changed in place, such as the name of a machine, is not in it; those who use a stamp let it age.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import Model

from tracker import models

# What pages show is added, not changed, but for caches, which follow from what is added.
ALL: Sequence[type[Model]] = (
    models.Event,
    models.Message,
    models.Finding,
    models.BisectResult,
    models.Measurement,
    models.MailTransition,
    models.Suggestion,
    models.TextRevision,
    models.Release,
    models.ReleaseCandidate,
    models.ReportHighlight,
    models.SavedView,
    models.CurveChange,
    models.LabJob,
)
MEASURED: Sequence[type[Model]] = (
    models.Measurement,
    models.Kernel,
    models.BasketEntry,
    models.Study,
    models.TextRevision,
)


def stamp(of: Sequence[type[Model]] = ALL) -> str:
    """Return a stamp that differs once a row was added to one of these tables."""
    newest = ", ".join(
        f"(SELECT MAX(id) FROM {connection.ops.quote_name(model._meta.db_table)})"  # our own names
        for model in of
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {newest}")
        return ":".join(str(value or 0) for value in cursor.fetchone())
