"""A question to a table that somebody gave a name: the filters that stand in its URL."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """Holds for every release. Its owner's alone, or shared with everybody."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="views")
    name = models.TextField()
    query = models.TextField(blank=True, help_text="state=working&machine!=lab7-m1")
    shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="a_view_has_a_name_of_its_own")]

    def __str__(self) -> str:
        return self.name
