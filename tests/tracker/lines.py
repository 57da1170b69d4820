"""Lines of tables for tests: reports with the columns that are asked for, and no history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tracker.models import Commit, Report

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def line(number: int, **columns: Any) -> Report:
    """A report whose culprit has this number for a sha."""
    commit = Commit.objects.create(sha=f"{number + 1:010x}" * 4, title=columns.pop("title", f"mm: change {number}"))
    defaults = {
        "verdict": "regression",
        "state": "no_response",
        "status": "no response from author yet",
        "awaited": "author",
    }
    return Report.objects.create(culprit=commit, tag=f"{number:016x}", **{**defaults, **columns})
