"""Every table, for the administrator's eyes; what is a record of the past cannot be changed there."""

from tracker.admin import comparisons, reports

__all__ = ["comparisons", "reports"]
