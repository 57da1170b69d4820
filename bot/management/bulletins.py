"""Put a bulletin into the outbox from a management command."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.utils import timezone

from bot.compose.bulletin_mail import Bulletin
from bot.outbox.composing import bulletins
from bot.outbox.composing.bulletins import BulletinConfig
from tracker.domain.errors import InvalidInput


def hold_bulletin(bulletin: Bulletin, config: BulletinConfig) -> str:
    """Hold the bulletin and return one line about the result; CommandError if it can't be sent."""
    try:
        row = bulletins.hold(bulletin, config, timezone.now())
    except InvalidInput as error:
        raise CommandError(str(error)) from None
    return f"mail {row.pk} to {', '.join(row.recipients)} is {row.state}: {row.reason}"
