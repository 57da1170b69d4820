"""A suggestion: a reading of a reply that is not sure enough to act on; one click makes it an event."""

from __future__ import annotations

from django.db import models

from tracker.models.report import Report
from tracker.status import EventData, Happening, Role


class Decision(models.TextChoices):
    """What a person made of it."""

    OPEN = "open"
    ACCEPTED = "accepted"
    CHANGED = "changed"  # to another event than the one suggested
    REJECTED = "rejected"


class Suggestion(models.Model):
    """The event that a mail or a commit would make. `key` is the event's, so that it is suggested once."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="suggestions")
    key = models.TextField()
    kind = models.TextField(choices=[(h.value, h.value) for h in Happening])
    at = models.DateTimeField()
    by = models.TextField(choices=[(r.value, r.value) for r in Role])
    message_id = models.TextField(blank=True, help_text="empty: a commit says it")
    commit = models.TextField(blank=True)
    title = models.TextField(blank=True)
    tag = models.TextField(blank=True)
    tree = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    answers = models.TextField(blank=True, help_text="the Message-ID of the mail that this one replies to")
    quote = models.TextField(blank=True, help_text="the words that were relied on")
    rule = models.TextField(help_text="which reading it is")
    decision = models.TextField(choices=Decision.choices, default=Decision.OPEN)
    decided_by = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "key"], name="a_reading_is_suggested_once"),
            models.CheckConstraint(condition=models.Q(decision__in=Decision.values), name="decision_is_known"),
            models.CheckConstraint(
                condition=models.Q(decision=Decision.OPEN) | ~models.Q(decided_by=""), name="a_decision_names_a_person"
            ),
        ]
        indexes = [
            models.Index(fields=["rule", "decision"]),
            models.Index(fields=["at"], condition=models.Q(decision="open"), name="open_suggestions"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.quote}"

    def value(self) -> EventData:
        """The event that it would be."""
        return EventData(
            key=self.key,
            kind=Happening(self.kind),
            at=self.at,
            by=Role(self.by),
            message_id=self.message_id,
            commit=self.commit,
            title=self.title,
            tag=self.tag,
            tree=self.tree,
            remark=self.remark,
            answers=self.answers,
        )
