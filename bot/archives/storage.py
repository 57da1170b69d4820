"""Store the bytes of mails that concern us: once, as received, before they are read (DESIGN rule 1)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from bot.archives.sources.raw import RawMail
from tracker.models import Archive, PendingReference, RawMessage

MOST_KEYS = 60  # per pending mail


def is_too_long(error: Exception) -> bool:
    """Whether the database rejects a mail because a name in it is too long, which is the mail's fault."""
    return type(error.__cause__).__name__ == "ProgramLimitExceeded"  # PostgreSQL: no index holds more than 2,704 bytes


def erased(mails: Iterable[RawMail]) -> set[bytes]:
    """Return the bytes of those mails that were erased on request: the archives that they came from still have them."""
    digests = {hashlib.sha256(mail.raw).hexdigest(): mail.raw for mail in mails}
    rows = RawMessage.objects.filter(digest__in=digests, erased_at__isnull=False)
    return {digests[digest] for digest in rows.values_list("digest", flat=True)}


def keep(mail: RawMail, archive: Archive | None, now: datetime) -> RawMessage:
    """Store the bytes, once, and return the row; a quarantined one leaves quarantine."""
    row, made = RawMessage.objects.get_or_create(
        digest=hashlib.sha256(mail.raw).hexdigest(),
        defaults={
            "archive": archive,
            "position": mail.position,
            "compressed": zlib.compress(mail.raw),
            "received_at": now,
        },
    )
    if not made and row.error:
        row.error = ""  # it can be read now
        row.save(update_fields=["error"])
    return row


def keep_all(mails: Sequence[RawMail], archive: Archive | None, now: datetime) -> tuple[dict[bytes, RawMessage], int]:
    """Store many at once. Returns the rows by their bytes, and how many of them are new."""
    by_digest = {hashlib.sha256(mail.raw).hexdigest(): mail for mail in mails}
    known = RawMessage.objects.filter(digest__in=by_digest).values_list("digest", flat=True)
    new = by_digest.keys() - set(known)
    RawMessage.objects.bulk_create(
        (
            RawMessage(
                digest=digest,
                archive=archive,
                position=mail.position,
                compressed=zlib.compress(mail.raw),
                received_at=now,
            )
            for digest, mail in by_digest.items()
            if digest in new
        ),
        ignore_conflicts=True,
    )
    rows = RawMessage.objects.filter(digest__in=by_digest).defer("compressed")
    return {by_digest[row.digest].raw: row for row in rows}, len(new)


def add_pending_references(waiting: Iterable[tuple[RawMessage, Mapping[str, bool]]]) -> None:
    """Add pending references: a mail is read again once one of its keys is tracked. Each key maps to whether it is the
    mail's own, which means that the mail is not filed yet.
    """
    PendingReference.objects.bulk_create(
        (
            PendingReference(key=key, source=source, own=own)
            for source, keys in waiting
            for key, own in list(keys.items())[:MOST_KEYS]
        ),
        ignore_conflicts=True,
    )
