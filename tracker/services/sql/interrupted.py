"""What the database raises for no fault of the data: it is busy, gone, or ended a transaction that was silent."""

from __future__ import annotations

from django.db import InternalError, OperationalError

# PostgreSQL's idle_in_transaction_session_timeout is of SQLSTATE class 25, which psycopg maps to InternalError.
INTERRUPTED = (OperationalError, InternalError)
