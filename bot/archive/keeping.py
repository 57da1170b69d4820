"""The bytes of mails that concern us: stored once as received, before they are understood (DESIGN rule 1)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from datetime import datetime

from bot.archive.raw import RawMail
from tracker.models import Archive, Orphan, RawMessage

MOST_KEYS = 60  # of one orphan


def keep(mail: RawMail, archive: Archive | None, now: datetime, error: str = "") -> RawMessage:
    """Store the bytes, once. `error` quarantines the mail; without one it is understood, or waits as an orphan."""
    row, made = RawMessage.objects.get_or_create(
        digest=hashlib.sha256(mail.raw).hexdigest(),
        defaults={
            "archive": archive,
            "position": mail.position,
            "compressed": zlib.compress(mail.raw),
            "error": error[:1000],
            "received_at": now,
        },
    )
    if not made and row.error and not error:
        row.error = ""  # understood at last
        row.save(update_fields=["error"])
    return row


def wait_for(source: RawMessage, keys: Iterable[str], own: str = "") -> None:
    """Have a mail read again on the day when one of these keys is tracked. `own`: its id, where it is filed nowhere."""
    rows = [Orphan(key=key, source=source) for key in list(dict.fromkeys(keys))[:MOST_KEYS]]
    if own:
        rows.append(Orphan(key=own, source=source, own=True))
    Orphan.objects.bulk_create(rows, ignore_conflicts=True)
