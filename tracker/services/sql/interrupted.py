"""Tells whether the database failed for no fault of the data: it is busy, gone, or ended an idle transaction."""

from __future__ import annotations

from django.db import InternalError, OperationalError

_IDLE = "25P03"  # SQLSTATE idle_in_transaction_session_timeout, which psycopg makes an InternalError


def is_interruption(error: BaseException | None) -> bool:
    """Return whether what failed may work if tried again. Other internal errors are of the program or its data."""
    if isinstance(error, InternalError):
        return getattr(error.__cause__, "sqlstate", None) == _IDLE
    return isinstance(error, OperationalError)
