"""Mails missing from tracked threads: we have a reply to them, but not the mail itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef

from tracker.models import Archive, Message, OutgoingMail

AT_ONCE = 50  # threads per run, to spare the server
RETRY_AFTER = timedelta(days=7)  # after which a server is asked again for what it did not have


def missing_parents(now: datetime) -> list[str]:
    """Return missing parents, newest first, that the lore server was not asked for lately, and mark them as asked."""
    seen = Message.objects.filter(message_id=OuterRef("in_reply_to"))
    ours = OutgoingMail.objects.filter(message_id=OuterRef("in_reply_to"))
    answers = Message.objects.exclude(in_reply_to="").filter(
        ~Exists(seen), ~Exists(ours), kind__in=("person", "bot_operator")
    )
    parents = dict.fromkeys(answers.order_by("-pk").values_list("in_reply_to", flat=True)[: AT_ONCE * 20])
    names = {f"{settings.PERFWORK_LORE} {parent}": parent for parent in parents}
    requested = Archive.objects.filter(path__in=names, read_at__gt=now - RETRY_AFTER).values_list("path", flat=True)
    recent = set(requested)
    chosen = {name: parent for name, parent in names.items() if name not in recent}
    batch = dict(list(chosen.items())[:AT_ONCE])
    for name in batch:  # counts as asked, whatever comes of it
        Archive.objects.update_or_create(path=name, defaults={"read_at": now})
    return list(batch.values())
