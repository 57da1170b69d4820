"""Operations: when each periodic task last ran, which operators were mailed what does not work, what was restored,
and how far the reports are folded after an upgrade.
"""

from __future__ import annotations

from django.db import models


class TaskRun(models.Model):
    """The last run of a task, whichever worker ran it."""

    task = models.TextField(unique=True)
    at = models.DateTimeField(help_text="when it ended")
    seconds = models.FloatField(help_text="how long it took")
    error = models.TextField(blank=True, help_text="what it raised; empty: it succeeded")

    def __str__(self) -> str:
        return self.task


class FaultMail(models.Model):
    """A mail to one operator about what does not work: at most one a day, and none twice."""

    address = models.TextField()
    day = models.DateField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["address", "day"], name="one_fault_mail_a_day")]

    def __str__(self) -> str:
        return f"{self.address} on {self.day}"


class Restoration(models.Model):
    """A backup was restored: what happened between the two times, mail that was sent included, is not known here."""

    backup_at = models.DateTimeField()
    restored_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"of {self.backup_at:%Y-%m-%d %H:%M}"


class Folding(models.Model):
    """How far all reports were folded by a version of the report summary; one row (services/reports/folding.py)."""

    version = models.PositiveIntegerField(help_text="the version by which all reports are folded")
    folded_to = models.PositiveBigIntegerField(default=0, help_text="key of the last report folded by the next one")

    def __str__(self) -> str:
        return f"version {self.version}"
