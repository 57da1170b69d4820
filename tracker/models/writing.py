"""What people write beside the numbers, in Markdown: the prose of a release report, comments. Only ever added to."""

from __future__ import annotations

from django.db import models


class Writing(models.Model):
    """One version of one text. The newest of a name is shown, the others are its history; an empty one takes it away.

    `place`: the page it stands on, "report v5.6", "index v5.6"; `name`: which text of that place.
    """

    place = models.TextField()
    name = models.TextField()
    text = models.TextField(blank=True)
    by = models.TextField(help_text="who wrote this version")
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["place", "name", "id"], name="texts_of_a_place")]

    def __str__(self) -> str:
        return f"{self.place}: {self.name} by {self.by}"
