"""Rows for tests: API keys, and reports with the columns that are asked for and no history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from tracker.models import Commit, Report
from tracker.services import accounts
from tracker.services.accounts import ANY_PRODUCER, Scope


def token(*scopes: Scope, producer: str = ANY_PRODUCER, name: str = "our lab") -> str:
    """Return the token of a new key."""
    return accounts.create_api_key(name, scopes or (Scope.RESULTS, Scope.EVIDENCE), producer, timezone.now())[1]


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
