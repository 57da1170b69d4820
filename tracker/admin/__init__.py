"""The Django admin: every table, with records of the past read-only."""

from tracker.admin import comparisons, reports

__all__ = ["comparisons", "reports"]
