"""How a rule's suggestions fared with the people who decided: counted at each decision, never by counting all."""

from __future__ import annotations

from django.db import models


class RuleRecord(models.Model):
    """One rule, and how often its suggestions were accepted, changed to another event, or rejected."""

    rule = models.TextField(unique=True)
    accepted = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["rule"]

    def __str__(self) -> str:
        return f"{self.rule}: {self.accepted} of {self.decided}"

    @property
    def decided(self) -> int:
        return self.accepted + self.changed + self.rejected

    @property
    def accepted_pct(self) -> float | None:
        """Of what was decided, in per cent; None where nothing was."""
        return 100 * self.accepted / self.decided if self.decided else None
