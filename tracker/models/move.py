"""A move of an outgoing mail from state to state: when, by whom, and in whose words. Only ever added to."""

from __future__ import annotations

from django.db import models

from tracker.models.outgoing import OutgoingMail, OutgoingState


class Move(models.Model):
    """One line in a mail's record. `was` is "" where it came into being; the same in both is a remark."""

    mail = models.ForeignKey(OutgoingMail, on_delete=models.CASCADE, related_name="moves")
    was = models.TextField(blank=True, choices=OutgoingState.choices)
    became = models.TextField(choices=OutgoingState.choices)
    at = models.DateTimeField()
    by = models.TextField(help_text="a user, or the part of Perfwork that moved it")
    words = models.TextField(blank=True, help_text="why, or what the server said")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(became__in=OutgoingState.values), name="move_leads_to_a_state"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.was} → {self.became} by {self.by}"
