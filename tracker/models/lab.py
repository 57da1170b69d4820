"""The lab's jobs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tracker.domain.lab.debts import Request
from tracker.domain.lab.jobs import UNFINISHED, JobOutcome, JobState
from tracker.models.base import Lease, values
from tracker.models.reports import Report


class LabJob(Lease):
    """A request of one event, with the patch to test and the commit to test it on. A runner holds it by a lease.

    The patch itself is in the mail: `patch_mail` names it. `payload`: the runner's result as received.
    """

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="jobs")
    event_key = models.TextField(help_text="the event that asks for it")
    request = models.TextField(choices=[(each.value, each.value) for each in Request])
    state = models.TextField(choices=[(each.value, each.value) for each in JobState], default=JobState.WAITING.value)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    asked_in = models.TextField(blank=True, help_text="Message-ID of the mail that asks")
    proven = models.BooleanField(default=False, help_text="whether it is proven who asks")
    title = models.TextField(blank=True, help_text="of the patch")
    patch_mail = models.TextField(blank=True, help_text="Message-ID of the mail with the patch")
    in_series = models.BooleanField(default=False, help_text="the patch is one of several: b4 fetches all")
    branch = models.TextField(blank=True, help_text="a repository and branch to test instead of a patch")
    base = models.TextField(blank=True, help_text="sha of the commit to apply it to")
    applies = models.BooleanField(null=True, blank=True, help_text="to its base; unknown without a tree that has it")
    runner = models.TextField(blank=True)
    lease_token = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(blank=True, choices=[(each.value, each.value) for each in JobOutcome])
    detail = models.TextField(blank=True, help_text="what went wrong, in the words of git, make or the test")
    payload = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "event_key"], name="a_request_is_one_job"),
            models.CheckConstraint(condition=Q(state__in=values(JobState)), name="job_state_is_known"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state__in=[each.value for each in UNFINISHED]), name="unfinished_jobs"
            )
        ]

    def __str__(self) -> str:
        return f"{self.request}: {self.title or self.branch or self.asked_in}"

    @property
    def name(self) -> str:
        """How events name its result."""
        return f"job/{self.pk}"
