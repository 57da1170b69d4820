"""A kernel that was measured as a whole: a release, a candidate or a commit, and how it was set up."""

from __future__ import annotations

from django.db import models

from tracker.models.natural import NaturalManager


class Kernel(models.Model):
    """ "v5.6", "v5.6-rc3", a sha of 40 digits, or a version of somebody's own. `variant` tells kernels apart that
    differ by a parameter or a configuration: "2M", "transparent_hugepage=never".
    """

    NATURAL = ("name", "variant")
    name = models.TextField()
    variant = models.TextField(blank=True, help_text="how it was set up, where that is what is compared")
    describe = models.TextField(blank=True, help_text="of a commit: git describe")
    measured_at = models.DateTimeField(help_text="by its first result")

    objects = NaturalManager["Kernel"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "variant"], name="a_kernel_has_one_row")]

    def __str__(self) -> str:
        return f"{self.name}/{self.variant}" if self.variant else self.name

    @property
    def label(self) -> str:
        """What it is called where there is little room: of a commit, its description or its first digits."""
        name = self.name
        if len(name) == 40 and set(name) <= set("0123456789abcdef"):
            name = self.describe[:40] or name[:12]
        return f"{name}/{self.variant}" if self.variant else name

    def natural_key(self) -> tuple[str, str]:
        return (self.name, self.variant)
