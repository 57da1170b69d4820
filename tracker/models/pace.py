"""How fast mail may go to one place: until when what was sent there uses up its rate."""

from __future__ import annotations

from django.db import models


class Pace(models.Model):
    """One rate in use. `key`: "" for all mail, "@domain", or an address."""

    key = models.TextField(unique=True)
    used_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key or 'all'}: {self.used_until:%H:%M:%S}"
