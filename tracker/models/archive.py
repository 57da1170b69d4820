"""An archive: a place that mail is read from, and how far it has been read."""

from __future__ import annotations

from django.db import models

from tracker.models.lease import Held


class Archive(Held):
    """A public-inbox epoch, an mbox or a Maildir. `cursor` is the reader's own word for its position."""

    path = models.TextField(unique=True)
    cursor = models.TextField(blank=True)
    read_at = models.DateTimeField(null=True, blank=True, help_text="when it was last read to its end")
    error = models.TextField(blank=True, help_text="what kept it from being read, and what to do")
    seen = models.PositiveBigIntegerField(default=0, help_text="mails read from it")
    kept = models.PositiveBigIntegerField(default=0, help_text="mails of it that were filed, or wait for their report")
    newest_at = models.DateTimeField(null=True, blank=True, help_text="when the last mail read was sent")

    def __str__(self) -> str:
        return self.path
