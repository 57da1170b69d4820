"""A report: the thread about one culprit. One culprit, one report."""

from __future__ import annotations

from django.db import models

from tracker.models.commit import Commit
from tracker.models.listed import Listed
from tracker.models.natural import NaturalManager
from tracker.models.tree import Tree
from tracker.status import State, Verdict

# What an operator has to look at first is not shown in the tables, unless it was told to people all the same.
SHOWN = models.Q(held="") | models.Q(reported_at__isnull=False)


class Report(Listed):
    """What is known of one culprit. The columns from `given_title` on are a cache of its folded events, and those of
    `Listed` one of its line in the tables.
    """

    NATURAL = ("culprit__sha",)
    culprit = models.OneToOneField(Commit, on_delete=models.PROTECT, related_name="report")
    tag = models.TextField(unique=True)
    verdict = models.TextField(choices=[(v.value, v.value) for v in Verdict])
    title = models.TextField(blank=True, help_text="the subject of the report mail")
    subsystem = models.TextField(blank=True, db_index=True)
    tree = models.ForeignKey(Tree, null=True, blank=True, on_delete=models.SET_NULL, related_name="reports")
    branch = models.TextField(blank=True)
    authors = models.JSONField(default=list, blank=True, help_text="addresses and names of the culprit's author")
    told = models.JSONField(default=list, blank=True, help_text="addresses and names that the report was sent to")

    held = models.TextField(blank=True, help_text="why nobody is told yet: an operator has to look at it first")

    given_title = models.TextField(blank=True, help_text="a title that somebody gave it since")
    state = models.TextField(choices=[(s.value, s.value) for s in State])
    status = models.TextField(help_text="the sentence of the triage table")
    because = models.TextField(blank=True, help_text="the key of the event that decided the state")
    awaited = models.TextField(blank=True)
    landing = models.TextField(blank=True, help_text="the first mainline version with the culprit")
    cycle = models.TextField(blank=True, db_index=True, help_text="the release that the landing belongs to")
    fix_title = models.TextField(blank=True)
    fix_sha = models.TextField(blank=True)
    fix_landing = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    reported_at = models.DateTimeField(null=True, blank=True, db_index=True)
    responded_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    objects = NaturalManager["Report"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(verdict__in=list(Verdict)), name="report_verdict_is_known"),
            models.CheckConstraint(condition=models.Q(state__in=list(State)), name="report_state_is_known"),
            models.CheckConstraint(condition=~models.Q(status=""), name="report_has_a_sentence"),
        ]
        indexes = [
            models.Index(fields=["state", "reported_at"]),
            models.Index(fields=["cycle", "state"]),
            *Listed.Meta.indexes,
        ]

    def __str__(self) -> str:
        return self.given_title or self.title or self.culprit.sha10

    def natural_key(self) -> tuple[str]:
        return (self.culprit.sha,)
