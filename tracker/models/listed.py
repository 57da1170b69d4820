"""A report's line in the tables: the columns by which they are filtered and ordered, and what a row shows at once."""

from __future__ import annotations

from django.db import models

# What the tables of releases are filtered and ordered by. An index holds a narrow copy of it, so that a question over
# ten thousand lines reads none of the rows behind them.
ASKED = (
    *("state", "verdict", "awaited", "subsystem", "suite", "metric", "machine", "author", "assignee", "blocks"),
    *("lacks_fix", "reported_at", "heard_at", "weight"),
)


class Listed(models.Model):
    """A cache, as the columns of the state are: tracker/listing.py writes it, and `refold` writes it again.

    Names are cut to what an index can hold (tracker/listing.py).
    """

    merged = models.TextField(blank=True, help_text="the release in whose cycle the culprit landed, if it is shown")
    shifted = models.TextField(blank=True, help_text="the release before which it was reported from another tree")
    author = models.TextField(blank=True, help_text="the address of the culprit's author")
    suite = models.TextField(blank=True, help_text="of the headline, as are the next eight")
    metric = models.TextField(blank=True)
    machine = models.TextField(blank=True)
    scenario = models.TextField(blank=True)
    base = models.TextField(blank=True)
    change_pct = models.FloatField(null=True, blank=True, help_text="plus is better, where the direction is known")
    noise_pct = models.FloatField(null=True, blank=True, help_text="the larger spread of both sides")
    spark = models.TextField(blank=True, help_text="the samples of both sides as heights: 3,4,3|17,18")
    weight = models.FloatField(default=0, help_text="the change in times of the noise")
    heard_at = models.DateTimeField(null=True, blank=True, help_text="when a person last said something about it")
    closed_at = models.DateTimeField(null=True, blank=True)
    blocks = models.TextField(blank=True, help_text="the release that must not go out with it")
    assignee = models.TextField(blank=True)
    lacks_fix = models.BooleanField(default=False, help_text="a stable series carries the culprit without its fix")
    urgency = models.BigIntegerField(default=0, help_text="blocking, then by weight, then by silence (listing.urgency)")
    revision = models.BigIntegerField(default=0, help_text="the newest of its events: who saw another saw less")
    words = models.TextField(blank=True, help_text="what a search in the table looks into, in lower case")

    class Meta:
        abstract = True
        indexes = [
            models.Index(fields=["merged", "-urgency", "id", *ASKED], name="lines_merged"),
            models.Index(fields=["shifted", "-urgency", "id", *ASKED], name="lines_shifted"),
            models.Index(fields=["merged", "-revision"], name="news_of_merged"),
            models.Index(fields=["shifted", "-revision"], name="news_of_shifted"),
            models.Index(fields=["subsystem", "-urgency"], name="lines_of_a_subsystem"),
            models.Index(fields=["metric", "-urgency"], name="lines_of_a_metric"),
            models.Index(fields=["machine", "-urgency"], name="lines_of_a_machine"),
            models.Index(fields=["author", "-urgency"], name="lines_of_an_author"),
        ]
