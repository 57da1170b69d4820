"""What a kept mail names and nobody has seen yet: its report, perhaps. Once that is tracked, the mail is read again."""

from __future__ import annotations

from django.db import models

from tracker.models.message import RawMessage


class Orphan(models.Model):
    """One key of one mail: a Message-ID that it answers or links to, a commit or a title that it says to fix.

    A mail that is filed nowhere yet waits by its own id, too (`own`), since answers to it are worth keeping.
    """

    key = models.TextField()
    own = models.BooleanField(default=False, db_index=True)
    source = models.ForeignKey(RawMessage, on_delete=models.CASCADE, related_name="keys")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "source"], name="an_orphan_waits_once_for_a_key")]

    def __str__(self) -> str:
        return self.key
