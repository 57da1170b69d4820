"""The statements that run once per mail, as plain SQL: Django needs a millisecond to build what the database executes
in a tenth of that (benchmarks/outbox.py). All other transitions use the ORM.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from tracker.models import MailTransition, OutgoingMail, SendingStop

_MAIL, _MOVE, _STOP = (model._meta.db_table for model in (OutgoingMail, MailTransition, SendingStop))
_BEGIN = (
    f"UPDATE {_MAIL} SET handed_over_at = %s WHERE id = %s AND attempts = %s AND state = 'sending'"
    " AND handed_over_at IS NULL"
    f" AND NOT EXISTS (SELECT 1 FROM {_STOP} WHERE ended_at IS NULL)"
)
_SENT = (
    f"UPDATE {_MAIL} SET state = 'sent', sent_at = %s, unrecorded = (unrecorded OR %s), reason = '',"
    " lease_until = NULL, handed_over_at = NULL, not_before = NULL"
    " WHERE id = %s AND attempts = %s AND state = 'sending'"
)
_RECORD = f"INSERT INTO {_MOVE} (mail_id, was, became, at, by, words) VALUES (%s, 'sending', 'sent', %s, %s, %s)"
_CLAIMED = (
    f"INSERT INTO {_MOVE} (mail_id, was, became, at, by, words)"
    f" SELECT id, 'approved', 'sending', %s, %s, '' FROM {_MAIL} WHERE id IN"
)


def record_claims(keys: Sequence[int], now: datetime, by: str) -> None:
    """Record who claimed these mails for sending."""
    with connection.cursor() as cursor:
        cursor.execute(f"{_CLAIMED} ({', '.join(['%s'] * len(keys))})", [_moment(now), by, *keys])


def begin_data(mail: OutgoingMail, now: datetime) -> bool:
    """Record that the last step begins; return False if the claim was lost or all sending is stopped."""
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN, [_moment(now), mail.pk, mail.attempts])
        return bool(cursor.rowcount == 1)


def sent(mail: OutgoingMail, sent_at: datetime, unrecorded: bool, now: datetime, by: str, reply: str) -> bool:
    """Record that a server accepted it for all recipients; return False and change nothing if the claim was lost."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SENT, [_moment(sent_at), unrecorded, mail.pk, mail.attempts])
        if cursor.rowcount != 1:
            return False
        cursor.execute(_RECORD, [mail.pk, _moment(now), by, reply])
    return True


def _moment(at: datetime) -> Any:
    """Return a datetime in the form that the database adapter expects."""
    return connection.ops.adapt_datetimefield_value(at)
