"""The Django admin: every table, with records of the past read-only."""

from tracker.admin import accounts, comparisons, operations, reports

__all__ = ["accounts", "comparisons", "operations", "reports"]
