"""Somebody whom we might mail, and what is known of that: who wants it, who does not, whose address bounces."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower

from tracker.models.natural import NaturalManager


class Mailing(models.TextChoices):
    """How an address stands to our mail. All but the first keep it away."""

    OPTED_IN = "opted_in"
    OPTED_OUT = "opted_out"
    BOUNCING = "bouncing"
    STOPPED = "stopped"  # by an operator


class Correspondent(models.Model):
    """An address in lower case. `note` says who told us, or what the server said."""

    NATURAL = ("address",)
    address = models.TextField(unique=True)
    mailing = models.TextField(choices=Mailing.choices)
    note = models.TextField(blank=True)
    since = models.DateTimeField()

    objects = NaturalManager["Correspondent"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(mailing__in=Mailing.values), name="mailing_is_known"),
            models.CheckConstraint(
                condition=models.Q(address=Lower("address")), name="correspondent_address_in_normal_form"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address}: {self.get_mailing_display().lower()}"

    def natural_key(self) -> tuple[str]:
        return (self.address,)
