"""A git commit, known by its sha, or by the longest part of it that anybody has told us."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Length, Lower

from tracker.models.natural import NaturalManager

models.TextField.register_lookup(Length)
models.TextField.register_lookup(Lower)


class Commit(models.Model):
    """Old reports tell ten digits of a sha; the rest is filled in when a tree shows it."""

    NATURAL = ("sha",)
    sha = models.TextField(unique=True)
    sha_length = models.GeneratedField(
        expression=Length("sha"), output_field=models.PositiveSmallIntegerField(), db_persist=True, db_index=True
    )
    title = models.TextField(blank=True)
    author_name = models.TextField(blank=True)
    author_email = models.TextField(blank=True, db_index=True)
    authored_at = models.DateTimeField(null=True, blank=True)
    trailers = models.JSONField(default=list, blank=True, help_text="[[tag, value], …] of the commit message")
    patch_message_id = models.TextField(blank=True, db_index=True, help_text="the mail that carried it as a patch")
    patch_references = models.JSONField(default=list, blank=True, help_text="what that mail answers, the oldest first")
    patch_id = models.TextField(blank=True, db_index=True, help_text="git's name for a change, in any tree")
    base = models.TextField(blank=True, help_text='of a parent: the version before it, by git describe: "v5.5-rc3"')
    same_patch_as = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="other_commits",
        help_text="the culprit of the report that it belongs to: the same patch in another tree",
    )

    objects = NaturalManager["Commit"]()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sha__length__gte=7, sha__length__lte=64), name="commit_sha_is_seven_to_64_digits"
            ),
            models.CheckConstraint(condition=models.Q(sha=Lower("sha")), name="commit_sha_in_normal_form"),
        ]

    def __str__(self) -> str:
        return f'{self.sha10} ("{self.title}")'

    def natural_key(self) -> tuple[str]:
        return (self.sha,)

    @property
    def sha10(self) -> str:
        """The ten digits that subjects and tables show."""
        return self.sha[:10]
