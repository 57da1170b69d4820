"""Somebody asked for a link to sign in with: whose address it is, and what became of it."""

from __future__ import annotations

from django.db import models


class SignIn(models.Model):
    """One link: mailed once, used once. It holds no secret: the link is signed with the key of the installation."""

    address = models.TextField()
    asked_from = models.TextField(blank=True, help_text="the network address of the browser")
    asked_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="when it was handed to a mail server")
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["address", "asked_at"], name="links_to_an_address"),
            models.Index(fields=["asked_from", "asked_at"], name="links_from_a_place"),
            models.Index(fields=["id"], condition=models.Q(mailed_at__isnull=True), name="links_to_be_mailed"),
        ]

    def __str__(self) -> str:
        return f"{self.address} {self.asked_at:%Y-%m-%d %H:%M}"
