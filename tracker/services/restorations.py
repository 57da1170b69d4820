"""What follows from a restored backup: for a week no mail leaves without a person, since it may have left before."""

from __future__ import annotations

from datetime import datetime, timedelta

from tracker.models import Restoration

CAREFUL = timedelta(days=7)


def why_careful(now: datetime) -> str:
    """Return why a mail that is composed now has to wait for a person; "" if there is no reason."""
    last = Restoration.objects.filter(restored_at__gt=now - CAREFUL).order_by("-restored_at").first()
    if last is None:
        return ""
    backup, restored = f"{last.backup_at:%Y-%m-%d %H:%M}", f"{last.restored_at:%Y-%m-%d %H:%M}"
    return f"restored on {restored} from a backup of {backup} UTC: check in the archives that it was not sent before"
