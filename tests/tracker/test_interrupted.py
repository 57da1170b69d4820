"""Only what may work if tried again is an interruption; a hostile mail or a bug is not."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DataError, InternalError, OperationalError

from tracker.services.database import is_interruption


def caused(cause: Exception) -> InternalError:
    """Return the error as Django raises it, which keeps psycopg's own as its cause."""
    error = InternalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationalError("database is locked"), True),
        (caused(psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")), True),
        (caused(psycopg.errors.InFailedSqlTransaction("current transaction is aborted")), False),
        (InternalError("no cause"), False),
        (DataError("value too long"), False),
        (ValueError("terminating connection"), False),
        (None, False),
    ],
)
def test_what_may_be_tried_again(error: BaseException | None, expected: bool) -> None:
    assert is_interruption(error) is expected
