"""Events: what happened to a report, each with its evidence. Only ever added to (DESIGN rule 2)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tracker.models.natural import NaturalManager
from tracker.models.report import Report
from tracker.status import EventData, Happening, Role

# What those who were told of a report may want to hear (bot/outbox/further.py).
NEWS = (
    Happening.STILL_THERE,
    Happening.FIX_CONFIRMED,
    Happening.FIX_WITHOUT_EFFECT,
    Happening.INVALID,
)


class Event(models.Model):
    """The stored form of `status.Event`, whose fields it has, and `recorded_at`: when we learned of it."""

    NATURAL = ("report__culprit__sha", "key")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="events")
    key = models.TextField(help_text="names the fact within the report, so that it is told once")
    kind = models.TextField(choices=[(h.value, h.value) for h in Happening])
    at = models.DateTimeField()
    by = models.TextField(choices=[(r.value, r.value) for r in Role], default=Role.MACHINE)
    message_id = models.TextField(blank=True, db_index=True)
    commit = models.TextField(blank=True, db_index=True)
    result = models.TextField(blank=True)
    said_by = models.TextField(blank=True, help_text="a user, or a person outside of mail and git")
    title = models.TextField(blank=True)
    tag = models.TextField(blank=True)
    tree = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    reverses = models.TextField(blank=True)
    answers = models.TextField(blank=True, help_text="the Message-ID of the mail that this one replies to")
    quote = models.TextField(blank=True, help_text="the words that were relied on")
    recorded_at = models.DateTimeField()
    batch = models.TextField(blank=True, help_text="the act of a person that it belongs to")
    aloud = models.BooleanField(default=False, help_text="who did it wants the thread to hear of it")

    objects = NaturalManager["Event"]()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "key"], name="a_fact_is_told_once"),
            models.CheckConstraint(condition=Q(kind__in=list(Happening)), name="event_kind_is_known"),
            models.CheckConstraint(
                condition=~Q(message_id="") | ~Q(commit="") | ~Q(result="") | ~Q(said_by=""),
                name="event_names_its_evidence",
            ),
            models.CheckConstraint(
                condition=Q(kind=Happening.REVERSED) ^ Q(reverses=""), name="only_a_reversal_reverses"
            ),
        ]
        indexes = [
            models.Index(
                fields=["recorded_at"], condition=Q(kind__in=[kind.value for kind in NEWS]), name="news_for_a_thread"
            ),
            models.Index(fields=["recorded_at"], condition=Q(aloud=True), name="said_aloud"),
            models.Index(fields=["batch"], condition=~Q(batch=""), name="acts_of_people"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.at:%Y-%m-%d}"

    def natural_key(self) -> tuple[str, ...]:
        return (*self.report.natural_key(), self.key)

    def value(self) -> EventData:
        """The event as the fold takes it."""
        return EventData(
            key=self.key,
            kind=Happening(self.kind),
            at=self.at,
            by=Role(self.by),
            message_id=self.message_id,
            commit=self.commit,
            result=self.result,
            said_by=self.said_by,
            title=self.title,
            tag=self.tag,
            tree=self.tree,
            remark=self.remark,
            reverses=self.reverses,
            answers=self.answers,
        )
