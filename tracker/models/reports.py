"""Reports, one per culprit: their events, suggestions and related commits, and the lab's jobs.

A report is what its events say. Each event names its evidence (a mail, a commit, a result or a user) and is recorded
once, by its key. The columns from `given_title` on are a cache of the folded events (tracker/domain/report_state.py);
those of `ReportSummary` are a cache for tables, which tracker/services/report_summary.py writes.

A suggestion is an event that a mail, a commit or a curve would add; a user decides. `RuleRecord` counts these
decisions, so that the suggestions of a rule that is nearly always right may be accepted all at once. A related commit
is one whose relation git itself proves: what people said is in events. A job of the lab is the request of one event,
which a runner holds by a lease.
"""

from django.db import models
from django.db.models import Q

from tracker.domain.archived_reports import PersonReport, read_stored
from tracker.domain.events import EventData, EventKind, Part, ReportedBy, Role, State, Verdict
from tracker.domain.lab_jobs import UNFINISHED, JobOutcome, JobState, Request
from tracker.domain.text import is_a_list
from tracker.models.base import Lease, NaturalModel, values
from tracker.models.git import Commit, Tree

# What a release's tables are filtered and sorted by. An index holds a narrow copy of these columns, so that a query
# over ten thousand reports reads none of their rows. Names in it must be cut (`clipped` in
# tracker/services/report_summary.py): an entry of a PostgreSQL index has 2,704 bytes, and seven names are what fits.
FILTER_COLUMNS = (
    "state", "verdict", "awaited", "subsystem", "suite", "metric", "machine", "author", "assignee", "blocks",
    "lacks_fix", "reported_at", "last_human_reply_at", "weight",
)  # fmt: skip


class ReportSummary(models.Model):
    """A cache, like the columns of the state: `report_summary` of the services writes it, and `refold` rebuilds it."""

    merged_release = models.TextField(blank=True, help_text="the release in whose cycle the culprit landed, if shown")
    shift_left_release = models.TextField(
        blank=True, help_text="the release in whose cycle it was reported from another tree"
    )
    author = models.TextField(blank=True, help_text="email address of the culprit's author")
    suite = models.TextField(blank=True, help_text="from the headline finding, like the next nine fields")
    metric = models.TextField(blank=True)
    machine = models.TextField(blank=True)
    scenario = models.TextField(blank=True)
    base = models.TextField(blank=True)
    change = models.FloatField(null=True, blank=True, help_text="the metric's own change in per cent")
    noise_pct = models.FloatField(null=True, blank=True, help_text="the larger spread of the two sides")
    spark = models.TextField(blank=True, help_text="the samples of both sides as heights: 3,4,3|17,18")
    effect = models.FloatField(null=True, blank=True, help_text="the change in multiples of the usual noise")
    weight = models.FloatField(default=0, help_text="how much of the change is certain (change.certain)")
    last_human_reply_at = models.DateTimeField(null=True, blank=True, help_text="when a person last wrote about it")
    closed_at = models.DateTimeField(null=True, blank=True)
    blocks = models.TextField(blank=True, help_text="the release that it blocks")
    assignee = models.TextField(blank=True)
    lacks_fix = models.BooleanField(default=False, help_text="a stable series has the culprit but not its fix")
    urgency = models.BigIntegerField(default=0, help_text="sorts by blocking, weight, silence (report_summary.urgency)")
    revision = models.BigIntegerField(default=0, help_text="changes with each event; detects stale pages")
    words = models.TextField(blank=True, help_text="the text that a search in the table looks in, in lower case")

    class Meta:
        abstract = True
        indexes = [
            models.Index(fields=["merged_release", "-urgency", "id", *FILTER_COLUMNS], name="lines_merged"),
            models.Index(fields=["shift_left_release", "-urgency", "id", *FILTER_COLUMNS], name="lines_shifted"),
            models.Index(fields=["merged_release", "-revision"], name="news_of_merged"),
            models.Index(fields=["shift_left_release", "-revision"], name="news_of_shifted"),
            models.Index(fields=["subsystem", "-urgency"], name="lines_of_a_subsystem"),
            models.Index(fields=["metric", "-urgency"], name="lines_of_a_metric"),
            models.Index(fields=["machine", "-urgency"], name="lines_of_a_machine"),
            models.Index(fields=["author", "-urgency"], name="lines_of_an_author"),
        ]


class Report(NaturalModel, ReportSummary):
    """What is known about one culprit. The columns from `given_title` on are a cache of its folded events; those of
    `ReportSummary` are the report summary.
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
    recipients = models.JSONField(default=list, blank=True, help_text="addresses and names of its recipients")
    people_verified = models.BooleanField(
        default=True, help_text="whether these people come from git, from a lab's result or from a verified mail"
    )

    held = models.TextField(blank=True, help_text="why it is held: an operator has to check it first")
    reported_by = models.TextField(
        choices=[(by.value, by.value) for by in ReportedBy], default=ReportedBy.ROBOT.value, help_text="who opened it"
    )
    reporters = models.JSONField(
        default=list, blank=True, help_text="addresses and names of the person who reported it"
    )
    facts = models.JSONField(
        default=dict, blank=True, help_text="what that person's mail says (tracker/domain/archived_reports.py)"
    )

    given_title = models.TextField(blank=True, help_text="a title that a user gave it later")
    state = models.TextField(choices=[(s.value, s.value) for s in State])
    status = models.TextField(help_text="the status text")
    decided_by = models.TextField(blank=True, help_text="the key of the event that decided the state")
    awaited = models.TextField(blank=True)
    awaited_since = models.DateTimeField(null=True, blank=True)
    landing = models.TextField(blank=True, help_text="the first mainline version with the culprit")
    cycle = models.TextField(blank=True, db_index=True, help_text="the release in whose cycle the landing is")
    fix_title = models.TextField(blank=True)
    fix_sha = models.TextField(blank=True)
    fix_landing = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    tags = models.TextField(blank=True, help_text='what people sort it by, each between blanks: " numa thp "')
    reported_at = models.DateTimeField(null=True, blank=True, db_index=True)
    responded_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    @property
    def verified_authors(self) -> frozenset[str]:
        """The authors that nobody can have made up: git's, and those of a verified report."""
        return frozenset(self.authors if self.people_verified else ()) | ({self.author} - {""})

    @property
    def reporter(self) -> str:
        """The name of the person who reported it; "" for a robot's report."""
        return self.person_report.reporter if self.of_person else ""

    @property
    def of_person(self) -> bool:
        """Whether a person's mail opened it; a lab may have measured it since."""
        return self.reported_by == ReportedBy.PERSON

    @property
    def person_report(self) -> PersonReport:
        """What the person's mail says."""
        return read_stored(self.facts)

    @property
    def verified_recipients(self) -> frozenset[str]:
        """The recipients that nobody can have made up, lists aside, in whose name anybody writes."""
        return self.people_addressed if self.people_verified else frozenset()

    @property
    def people_addressed(self) -> frozenset[str]:
        """The recipients but for lists, by address and name."""
        return frozenset(recipient for recipient in self.recipients if not is_a_list(recipient))

    @property
    def verified_maintainers(self) -> frozenset[str]:
        """Those who speak for the culprit beside its author: the verified recipients and, by git, who signed it and
        who maintains its files.
        """
        return self.verified_recipients | self.culprit.people

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(verdict__in=values(Verdict)), name="report_verdict_is_known"),
            models.CheckConstraint(condition=models.Q(state__in=values(State)), name="report_state_is_known"),
            models.CheckConstraint(condition=~models.Q(status=""), name="report_has_a_sentence"),
        ]
        indexes = [
            models.Index(fields=["state", "reported_at"]),
            models.Index(fields=["cycle", "state"]),
            models.Index(fields=["fix_sha"], condition=~Q(fix_sha=""), name="reports_by_their_fix"),
            *ReportSummary.Meta.indexes,
        ]

    def __str__(self) -> str:
        return self.given_title or self.title or self.culprit.sha10


# The events that may be worth a further mail to a report's recipients (bot/notifications/follow_ups.py).
NEWS = (EventKind.STILL_THERE, EventKind.FIX_CONFIRMED, EventKind.FIX_WITHOUT_EFFECT, EventKind.INVALID)


class Event(NaturalModel):
    """The stored form of `EventData`, with the same fields; `recorded_at`: when we learned of it."""

    NATURAL = ("report__culprit__sha", "key")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="events")
    key = models.TextField(help_text="identifies the event within the report, so that it is recorded once")
    kind = models.TextField(choices=[(h.value, h.value) for h in EventKind])
    occurred_at = models.DateTimeField()
    role = models.TextField(choices=[(r.value, r.value) for r in Role], default=Role.MACHINE.value)
    message_id = models.TextField(blank=True, db_index=True)
    commit = models.TextField(blank=True, db_index=True)
    result = models.TextField(blank=True)
    actor = models.TextField(blank=True, help_text="a user, or a person who said so outside of mail and git")
    title = models.TextField(blank=True)
    tag = models.TextField(blank=True)
    tree = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    reverses = models.TextField(blank=True)
    in_reply_to = models.TextField(blank=True, help_text="the Message-ID of the mail that this one replies to")
    quote = models.TextField(blank=True, help_text="the words that were relied on")
    recorded_at = models.DateTimeField()
    batch = models.TextField(blank=True, help_text="ID of the report action that it belongs to")
    notify_thread = models.BooleanField(default=False, help_text="the user wants it announced in the thread")

    class Meta:
        ordering = ["occurred_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "key"], name="a_fact_is_told_once"),
            models.CheckConstraint(condition=Q(kind__in=values(EventKind)), name="event_kind_is_known"),
            models.CheckConstraint(
                condition=~Q(message_id="") | ~Q(commit="") | ~Q(result="") | ~Q(actor=""),
                name="event_names_its_evidence",
            ),
            models.CheckConstraint(
                condition=Q(kind=EventKind.REVERSED.value) ^ Q(reverses=""), name="only_a_reversal_reverses"
            ),
        ]
        indexes = [
            models.Index(
                fields=["recorded_at"], condition=Q(kind__in=[kind.value for kind in NEWS]), name="news_for_a_thread"
            ),
            models.Index(fields=["recorded_at"], condition=Q(notify_thread=True), name="said_aloud"),
            models.Index(fields=["batch"], condition=~Q(batch=""), name="acts_of_people"),
            models.Index(fields=["recorded_at"], name="events_as_learned"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.occurred_at:%Y-%m-%d}"

    def value(self) -> EventData:
        """Return the event as `fold` takes it."""
        return _event_data(self, _EVENT_COLUMNS)


_EVENT_COLUMNS = tuple(name for name in EventData.__dataclass_fields__ if name not in ("kind", "role"))
_SUGGESTED_COLUMNS = tuple(name for name in _EVENT_COLUMNS if name not in ("result", "actor", "reverses"))


def _event_data(row: "Event | Suggestion", columns: tuple[str, ...]) -> EventData:
    named = {name: getattr(row, name) for name in columns}
    return EventData(kind=EventKind(row.kind), role=Role(row.role), **named)


class Decision(models.TextChoices):
    """What a user decided about it, if it did not withdraw itself."""

    OPEN = "open"
    WITHDRAWN = "withdrawn"  # what is known since leaves it nothing to change; if that goes, it is open again
    ACCEPTED = "accepted"
    CHANGED = "changed"  # to another event than the one suggested
    REJECTED = "rejected"


UNDECIDED = (Decision.OPEN, Decision.WITHDRAWN)


class Suggestion(models.Model):
    """The event that a mail, a commit or a curve would add. `key` is the event's, so that it is suggested once."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="suggestions")
    key = models.TextField()
    kind = models.TextField(choices=[(h.value, h.value) for h in EventKind])
    occurred_at = models.DateTimeField()
    role = models.TextField(choices=[(r.value, r.value) for r in Role])
    message_id = models.TextField(blank=True, help_text="empty: it is from a commit")
    commit = models.TextField(blank=True)
    title = models.TextField(blank=True)
    tag = models.TextField(blank=True)
    tree = models.TextField(blank=True)
    remark = models.TextField(blank=True)
    in_reply_to = models.TextField(blank=True, help_text="the Message-ID of the mail that this one replies to")
    quote = models.TextField(blank=True, help_text="the words that were relied on")
    rule = models.TextField(help_text="the rule that read it")
    curve = models.ForeignKey("Curve", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    certainty = models.PositiveSmallIntegerField(null=True, blank=True, help_text="how likely it is right, in per cent")
    why = models.TextField(blank=True, help_text="the words that weigh most; or who said so")
    decision = models.TextField(choices=Decision.choices, default=Decision.OPEN)
    decided_by = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="when the daily mail to triagers had it")

    class Meta:
        ordering = ["occurred_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "key"], name="a_reading_is_suggested_once"),
            models.CheckConstraint(condition=models.Q(decision__in=Decision.values), name="decision_is_known"),
            models.CheckConstraint(
                condition=models.Q(decision__in=UNDECIDED) | ~models.Q(decided_by=""), name="a_decision_names_a_person"
            ),
        ]
        indexes = [
            models.Index(fields=["rule", "decision"]),
            models.Index(fields=["occurred_at"], condition=models.Q(decision="open"), name="open_suggestions"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.quote}"

    def value(self) -> EventData:
        """Return the event that it would become."""
        return _event_data(self, _SUGGESTED_COLUMNS)


class OfferedReport(models.Model):
    """A mail in which a person seems to report a performance regression. It waits in the review queue until somebody
    accepts it, or until a command in a later mail makes it a report.
    """

    message_id = models.TextField(unique=True)
    source = models.OneToOneField("RawMessage", on_delete=models.PROTECT, related_name="offered")
    subject = models.TextField(blank=True)
    author_name = models.TextField(blank=True)
    author_email = models.TextField(blank=True)
    sent_at = models.DateTimeField()
    reporters = models.JSONField(default=list, help_text="addresses and names of its author")
    recipients = models.JSONField(default=list, help_text="addresses and names of those whom it went to")
    subsystem = models.TextField(blank=True)
    proven = models.BooleanField(default=False, help_text="whether its author is verified")
    score = models.PositiveSmallIntegerField(help_text="how much it looks like a report of a performance regression")
    facts = models.JSONField(default=dict, help_text="what it says (tracker/domain/archived_reports.py)")
    decision = models.TextField(choices=Decision.choices, default=Decision.OPEN)
    decided_by = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["-proven", "-score", "-sent_at"], condition=models.Q(decision="open"), name="open_offers"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(decision__in=Decision.values), name="offer_decision_is_known"),
        ]

    def __str__(self) -> str:
        return self.subject

    @property
    def person_report(self) -> PersonReport:
        """What its mail says."""
        return read_stored(self.facts)


class SecondOpinion(models.Model):
    """What a language model answered about one reply: asked once, and kept as the evidence of a suggestion."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="second_opinions")
    message_id = models.TextField()
    model = models.TextField(help_text="its name, as the endpoint was asked for it")
    answer = models.TextField(blank=True)
    kind = models.TextField(blank=True, help_text="the event that it sees; empty: none, or the answer does not count")
    sentence = models.TextField(blank=True)
    fault = models.TextField(blank=True, help_text="why the answer does not count")
    asked_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "message_id"], name="a_reply_is_asked_about_once"),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.kind or self.fault or 'nothing'}"


PRECISE, ENOUGH_DECISIONS = 0.99, 100  # of a rule, before its suggestions may be accepted all at once


class RuleRecord(models.Model):
    """One rule, and how often its suggestions were accepted, changed to another event, or rejected."""

    rule = models.TextField(unique=True)
    accepted = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["rule"]

    def __str__(self) -> str:
        return f"{self.rule}: {self.accepted} of {self.decided}"

    @property
    def decided(self) -> int:
        return self.accepted + self.changed + self.rejected

    @property
    def accepted_pct(self) -> float | None:
        """The accepted ones, in per cent of those decided; None if none were."""
        return 100 * self.accepted / self.decided if self.decided else None

    @property
    def is_precise(self) -> bool:
        """Whether enough people's decisions show that at least PRECISE of its suggestions are right."""
        return self.decided >= ENOUGH_DECISIONS and self.accepted >= PRECISE * self.decided


class RelatedCommit(NaturalModel):
    """A relation proven by git itself, by a rule of bot/upstream/matching.py. What people said is in events."""

    NATURAL = ("report__culprit__sha", "commit__sha")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="related")
    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="related_to")
    part = models.TextField(choices=[(part.value, part.value) for part in Part])
    undoes = models.TextField(blank=True, help_text="the sha of the commit that it reverts")
    tree = models.ForeignKey("Tree", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    rule = models.TextField(help_text="the rule that found it")
    quote = models.TextField(blank=True, help_text="the words that were relied on")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "commit"], name="a_commit_has_one_part_in_a_report"),
            models.CheckConstraint(condition=models.Q(part__in=values(Part)), name="part_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.commit.sha10}: {self.part} of {self.report}"


class StableSeries(NaturalModel):
    """A stable series that contains a culprit: "in v6.6.12, fix missing"."""

    NATURAL = ("report__culprit__sha", "tree__name", "series")
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="stable")
    tree = models.ForeignKey("Tree", on_delete=models.CASCADE, related_name="+")
    series = models.TextField(help_text='"v6.6"')
    number = models.BigIntegerField(help_text="sorts series in release order")
    newest = models.TextField(help_text='its newest release: "v6.6.12"')
    fixed_in = models.TextField(blank=True, help_text="the first release with the fix; empty: the fix is missing")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["report", "tree", "series"], name="a_series_is_told_once_a_report"),
        ]
        indexes = [
            models.Index(fields=["report"], condition=models.Q(fixed_in=""), name="fix_missing_in_stable"),
        ]

    def __str__(self) -> str:
        return f"in {self.newest}, " + (f"fixed in {self.fixed_in}" if self.fixed_in else "fix missing")


# --- The lab's jobs ---


class LabJob(Lease):
    """A request of one event, with the patch to test and the commit to test it on. A runner holds it by a lease.

    The patch itself is in the mail: `patch_mail` names it. `payload`: the runner's result as received. Requests
    of others for the same test have no job of their own: they are `joined`.
    """

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="jobs")
    event_key = models.TextField(help_text="the event that asks for it")
    joined = models.JSONField(default=list, blank=True, help_text="the events that ask for the same")
    request = models.TextField(choices=[(member.value, member.value) for member in Request])
    state = models.TextField(
        choices=[(member.value, member.value) for member in JobState], default=JobState.WAITING.value
    )
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    asked_in = models.TextField(blank=True, help_text="Message-ID of the mail that asks")
    proven = models.BooleanField(default=False, help_text="whether it is proven who asks")
    allowed_by = models.TextField(blank=True, help_text="who here lets any runner take it, proven or not")
    title = models.TextField(blank=True, help_text="of the patch")
    patch_mail = models.TextField(blank=True, help_text="Message-ID of the mail with the patch")
    patch_parts = models.JSONField(default=list, blank=True, help_text="Message-IDs of the mails that its text is from")
    parts_private = models.BooleanField(default=False, help_text="whether one of these mails is for operators only")
    patch_digest = models.TextField(blank=True, help_text="SHA-256 of that text")
    in_series = models.BooleanField(default=False, help_text="the patch is a series")
    branch = models.TextField(blank=True, help_text="a repository and branch to test instead of a patch")
    base = models.TextField(blank=True, help_text="sha of the commit to apply it to")
    applies = models.BooleanField(null=True, blank=True, help_text="to its base; unknown without a tree that has it")
    runner = models.TextField(blank=True)
    lease_token = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(
        blank=True, choices=[(member.value, member.value.replace("-", " ")) for member in JobOutcome]
    )
    detail = models.TextField(blank=True, help_text="what went wrong, in the words of git, make or the test")
    payload = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "event_key"], name="a_request_is_one_job"),
            models.CheckConstraint(condition=Q(state__in=values(JobState)), name="job_state_is_known"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state__in=[state.value for state in UNFINISHED]), name="unfinished_jobs"
            )
        ]

    def __str__(self) -> str:
        return f"{self.request}: {self.title or self.branch or self.asked_in}"

    @property
    def requests(self) -> tuple[str, ...]:
        """The events that it answers, its own first."""
        return (self.event_key, *self.joined)

    @property
    def name(self) -> str:
        """How events name its result."""
        return f"job/{self.pk}"
