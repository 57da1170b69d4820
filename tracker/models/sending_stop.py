"""The stop switch: as long as one of these has no end, no mail begins to leave."""

from __future__ import annotations

from django.db import models


class SendingStop(models.Model):
    """Who stopped all sending, when and why; who let it go on, and when. Never deleted."""

    at = models.DateTimeField()
    by = models.TextField()
    reason = models.TextField(blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(ended_at__isnull=True), name="stops_in_force"),
        ]

    def __str__(self) -> str:
        return f"stopped by {self.by}"
