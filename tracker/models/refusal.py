"""A recipient whom a mail did not reach: turned down by the server that took it, or come back later as a bounce."""

from __future__ import annotations

from django.db import models

from tracker.models.outgoing import OutgoingMail


class RefusedBy(models.TextChoices):
    """Who said so."""

    SERVER = "server"
    BOUNCE = "bounce"


class Refusal(models.Model):
    """One address of one mail, with the words against it. `dead` where nobody is at that address, `personal` where they
    say something of the address at all, rather than of the mail or of us.
    """

    mail = models.ForeignKey(OutgoingMail, on_delete=models.CASCADE, related_name="refusals")
    address = models.TextField(db_index=True)
    words = models.TextField(blank=True)
    by = models.TextField(choices=RefusedBy.choices)
    dead = models.BooleanField(default=False)
    personal = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["mail", "address"], name="a_mail_is_refused_once_by_each"),
            models.CheckConstraint(condition=models.Q(by__in=RefusedBy.values), name="who_refused_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.address}: {self.words}"
