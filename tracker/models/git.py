"""Git as far as it concerns reports: commits, the trees that are followed, and landings."""

from django.db import models
from django.db.models.functions import Length, Lower

from tracker.domain.events import TreeRole
from tracker.domain.report_state import NOT_BISECTED
from tracker.models.base import NamedLease, NaturalModel, values

models.TextField.register_lookup(Length)
models.TextField.register_lookup(Lower)


class Commit(NaturalModel):
    """Old reports have ten digits of a sha; the rest is filled in when a followed tree has the commit."""

    NATURAL = ("sha",)
    sha = models.TextField(unique=True)
    sha_length = models.GeneratedField(
        expression=Length("sha"), output_field=models.PositiveSmallIntegerField(), db_persist=True, db_index=True
    )
    title = models.TextField(blank=True)
    author_name = models.TextField(blank=True)
    author_email = models.TextField(blank=True, db_index=True)
    author_from_report = models.BooleanField(
        default=False, help_text="whether the author is only known as the person whom the report mail was sent to"
    )
    authored_at = models.DateTimeField(null=True, blank=True)
    trailers = models.JSONField(default=list, blank=True, help_text="[[tag, value], …] of the commit message")
    signers = models.JSONField(
        default=list, blank=True, help_text="addresses and names of those who signed, reviewed or tested it"
    )
    maintainers = models.JSONField(
        null=True,
        blank=True,
        help_text="addresses and names of those whom MAINTAINERS lists for its files; null: not asked yet",
    )
    patch_message_id = models.TextField(blank=True, db_index=True, help_text="the mail that carried it as a patch")
    patch_references = models.JSONField(default=list, blank=True, help_text="the References of that mail, oldest first")
    patch_id = models.TextField(blank=True, db_index=True, help_text="git patch-id: identifies the change in any tree")
    base = models.TextField(blank=True, help_text='of a parent: the version before it, by git describe ("v5.5-rc3")')
    same_patch_as = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="other_commits",
        help_text="the culprit that is the same patch in another tree, and has the report",
    )

    corrected_to = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="former_culprits",
        help_text="the culprit that people found instead of this one, and has its report",
    )

    placeholder = models.BooleanField(
        default=False, help_text="it stands for the culprit of a report while nobody has bisected it"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sha__length__gte=7, sha__length__lte=64), name="commit_sha_is_seven_to_64_digits"
            ),
            models.CheckConstraint(condition=models.Q(sha=Lower("sha")), name="commit_sha_in_normal_form"),
        ]

    @property
    def reported_as(self) -> int:
        """The key of the commit that has the report about this one, if there is one."""
        first = self.same_patch_as or self
        return first.corrected_to_id or first.pk

    @property
    def people(self) -> frozenset[str]:
        """Those who speak for it beside its author, by git: the addresses and names of its signers and maintainers."""
        return frozenset(self.signers) | frozenset(self.maintainers or ())

    def __str__(self) -> str:
        return f'{self.sha10} ("{self.title}")'

    @property
    def sha10(self) -> str:
        """The ten digits shown in subjects and tables; "not bisected" where nobody knows it."""
        return NOT_BISECTED if self.placeholder else self.sha[:10]


class Tree(NaturalModel, NamedLease):
    """A git repository that results come from, or that is searched for landings."""

    NATURAL = ("name",)
    name = models.TextField(unique=True)
    role = models.TextField(
        choices=[(role.value, role.value.capitalize()) for role in TreeRole], default=TreeRole.MAINTAINER.value
    )
    url = models.TextField(blank=True)
    path = models.TextField(blank=True, help_text="the local clone; empty: known by name only")
    branches = models.TextField(blank=True, help_text="those to follow, as in linux-6.*; empty: the role's default")
    cursor = models.TextField(blank=True, help_text="checkpoint: where the last walk ended (bot/upstream/landings.py)")
    error = models.TextField(blank=True)
    series = models.JSONField(
        default=dict, blank=True, help_text="for a stable tree: each series and its newest release"
    )
    fetched_at = models.DateTimeField(null=True, blank=True, help_text="when its remote was last fetched")
    walked_at = models.DateTimeField(null=True, blank=True, help_text="when a walk last found anything new")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="when a walk last came to its end")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=values(TreeRole)), name="tree_role_is_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Landing(NaturalModel):
    """A tracked commit in a tree: the first tag with it ("merged at v5.6-rc1"), or since when it waits for a tag."""

    NATURAL = ("commit__sha", "tree__name")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="landings")
    tree = models.ForeignKey(Tree, on_delete=models.CASCADE, related_name="landings")
    tag = models.TextField(blank=True, help_text="the first version, or linux-next day, that contains it")
    at = models.DateTimeField(help_text="the date of the tag, or of the merge while there is none")
    merge = models.TextField(blank=True, help_text="the commit that brought it into the branch")
    merged_at = models.DateTimeField(null=True, blank=True)
    after = models.TextField(blank=True, help_text="while no version contains it: the last version before it")
    gone_at = models.DateTimeField(null=True, blank=True, help_text="since when the tree no longer has it")
    back_at = models.DateTimeField(null=True, blank=True, help_text="when it came back after that")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["commit", "tree"], name="a_commit_lands_once_in_a_tree"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.sha10} in {self.tree.name} at {self.tag or 'no version yet'}"
