"""What is measured, its unit and its direction."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager


class Direction(models.TextChoices):
    """Which movement is better."""

    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


class DirectionBy(models.TextChoices):
    """Who told the direction. An operator's word stands against everybody's, a lab's against our table."""

    OPERATOR = "operator"
    LAB = "lab"
    TABLE = "table"  # tracker/directions.py
    NOBODY = "nobody"


class Metric(models.Model):
    """ "will-it-scale.per_process_ops"."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    unit = models.TextField(blank=True)
    direction = models.TextField(choices=Direction.choices, default=Direction.UNKNOWN)
    direction_by = models.TextField(choices=DirectionBy.choices, default=DirectionBy.NOBODY)

    objects = NaturalManager["Metric"]()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(direction__in=Direction.values), name="metric_direction_is_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)
