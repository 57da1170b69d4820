"""Mail, as it goes out and as it was read.

A mail of ours has a Message-ID and bytes that are fixed when it is composed (DESIGN rule 5). It goes from composed (or
held, until an operator has looked) to approved, sending and sent, or ends as in doubt, failed or cancelled. Each step,
and each remark, is a row of `MailTransition`; tracker/services/mail_transitions.py makes the steps.

`purpose` says what a mail is for. A report has one mail per purpose, and a bulletin, which is about no single report,
goes out once: the database holds both as constraints. A stop of all sending is in force until it has an end, and is
never deleted.

A mail that was read is a `RawMessage`, with the bytes as they came, and where from. If it is about a report, it is a
`Message` of that report, too; one that may be about a report some day waits under the names that it gives.
"""

import zlib
from datetime import UTC

from django.db import models

from tracker.domain.events import ArchiveKind
from tracker.models.base import Lease, NamedLease
from tracker.models.reports import Report


class OutgoingState(models.TextChoices):
    """composed → (held) → approved → sending → sent; or in doubt, failed, cancelled."""

    COMPOSED = "composed"
    HELD = "held"
    APPROVED = "approved"
    SENDING = "sending"
    SENT = "sent"
    IN_DOUBT = "in_doubt"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Purpose:
    """What a mail is for. All but REPORT are prefixes, followed by what it is about: "still_there v9.1-rc5"."""

    REPORT = "report"
    ANSWER = "answer "
    FOLLOW_UP = "follow_up "
    REMINDER = "reminder "
    BULLETIN = "bulletin "  # not about a single report: a release report, a digest, a study
    SUBSCRIPTION = "subscription "


PERSONAL = (Purpose.ANSWER, Purpose.SUBSCRIPTION)  # to the one person who asked for it; nobody else's business
# Neither sent nor being sent.
WAITING = frozenset({OutgoingState.COMPOSED, OutgoingState.HELD, OutgoingState.APPROVED})


class OutgoingMail(Lease):
    """An outgoing mail. Its Message-ID and its bytes are fixed when it is composed (DESIGN rule 5)."""

    message_id = models.TextField(unique=True)
    report = models.ForeignKey(
        Report, null=True, blank=True, on_delete=models.PROTECT, related_name="outgoing", help_text="none: a bulletin"
    )
    purpose = models.TextField(default=Purpose.REPORT, help_text="what it is for: a report has one mail per purpose")
    raw = models.BinaryField()
    sender = models.TextField()
    recipients = models.JSONField(help_text="the envelope recipients")
    people = models.JSONField(
        default=list, blank=True, help_text='[[address, name, "To", "Cc" or "" if left out, reason], …]'
    )
    subject = models.TextField()
    body = models.TextField(blank=True, help_text="its text, as recipients read it")
    edited_by = models.TextField(blank=True, help_text="the operator who edited its text, which is not composed again")
    newest_finding = models.PositiveBigIntegerField(
        default=0, help_text="the newest finding when it was composed: it does not cover later ones"
    )
    state = models.TextField(choices=OutgoingState.choices, default=OutgoingState.COMPOSED)
    reason = models.TextField(blank=True, help_text="why it is held, failed or in doubt")
    withheld = models.JSONField(
        default=list, blank=True, help_text="earlier findings that it leaves out, since they were held"
    )
    news_until = models.DateTimeField(
        null=True, blank=True, help_text="of a report: events until then were considered for further mails"
    )
    decided_by_person = models.BooleanField(default=False, help_text="a user decided on it: no rule overrides that")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="when it was last checked again")
    stale = models.BooleanField(default=False, help_text="outdated: more is known than it says")
    composed_at = models.DateTimeField()
    not_before = models.DateTimeField(null=True, blank=True)
    turn_at = models.DateTimeField(null=True, blank=True, help_text="the time that the rate limits assigned to it")
    handed_over_at = models.DateTimeField(
        null=True, blank=True, help_text="when its bytes began to leave; a crash before that is harmless"
    )
    sent_at = models.DateTimeField(null=True, blank=True, help_text="when a server first accepted it, for anyone")
    settled = models.JSONField(
        default=list, blank=True, help_text="the recipients that are done, if a server deferred others"
    )
    lists = models.JSONField(default=list, blank=True, help_text="which of the recipients are lists")
    maintainers = models.JSONField(
        default=list, blank=True, help_text="which of them MAINTAINERS calls a maintainer of the culprit's files"
    )
    tries = models.PositiveIntegerField(default=0, help_text="temporary delivery failures since it was last approved")
    connection_attempts = models.PositiveIntegerField(
        default=0, help_text="times that no server was reachable since then"
    )
    unrecorded = models.BooleanField(default=False, help_text="sent, but its report does not record that yet")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["report", "purpose"], name="a_report_tells_each_thing_once"),
            models.UniqueConstraint(
                fields=["purpose"], condition=models.Q(report__isnull=True), name="a_bulletin_is_told_once"
            ),
            models.CheckConstraint(condition=models.Q(state__in=OutgoingState.values), name="outgoing_state_is_known"),
            models.CheckConstraint(
                condition=~models.Q(state=OutgoingState.SENT) | models.Q(sent_at__isnull=False),
                name="sent_mail_says_when",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "not_before", "id"], name="mail_that_is_due"),
            models.Index(fields=["state", "id"], name="mail_by_state"),
            models.Index(fields=["id"], condition=models.Q(unrecorded=True), name="mail_to_be_told_of"),
            models.Index(fields=["sender"], name="return_paths"),
            models.Index(fields=["state"], condition=models.Q(stale=True), name="mail_that_says_too_little"),
        ]

    def __str__(self) -> str:
        return f"{self.state}: {self.subject}"

    @property
    def version(self) -> str:
        """Its key and when it was composed: an operator approves the text that they saw, not one composed since."""
        return f"{self.pk}@{self.composed_at.astimezone(UTC):%Y%m%dT%H%M%S%f}"

    @property
    def purpose_in_words(self) -> str:
        """What it is for, without the key that follows: "said fix failed" of "said fix_failed:job/3"."""
        return self.purpose.partition(":")[0].partition(" job/")[0].replace("_", " ")

    @property
    def about(self) -> Report:
        """The report that it is about: every mail but a bulletin has one."""
        assert self.report
        return self.report


class Reminder(models.Model):
    """A report that a reminder names, and who was awaited. One mail may name several.

    What an operator cancelled counts; the rows of what we cancelled ourselves are deleted.
    """

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="reminders")
    mail = models.ForeignKey(OutgoingMail, on_delete=models.CASCADE, related_name="reminders")
    person = models.TextField(db_index=True, help_text="the email address")
    composed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mail", "report"], name="a_reminder_names_a_report_once")]

    def __str__(self) -> str:
        return f"{self.person} about {self.report_id}"


class MailTransition(models.Model):
    """One entry in a mail's history. `was` is "" when it was created; equal states mean a remark."""

    mail = models.ForeignKey(OutgoingMail, on_delete=models.CASCADE, related_name="transitions")
    was = models.TextField(blank=True, choices=OutgoingState.choices)
    became = models.TextField(choices=OutgoingState.choices)
    at = models.DateTimeField()
    by = models.TextField(help_text="a user, or the part of Perfwork that did it")
    words = models.TextField(blank=True, help_text="why, or what the server said")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(became__in=OutgoingState.values), name="move_leads_to_a_state"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.was} → {self.became} by {self.by}"


class FailureSource(models.TextChoices):
    """Who reported it."""

    SERVER = "server"
    BOUNCE = "bounce"


class DeliveryFailure(models.Model):
    """One address of one mail, with the error text. `dead`: the address does not exist; `personal`: the error is about
    the address at all, rather than about the mail or us.
    """

    mail = models.ForeignKey(OutgoingMail, on_delete=models.CASCADE, related_name="delivery_failures")
    address = models.TextField(db_index=True)
    words = models.TextField(blank=True)
    by = models.TextField(choices=FailureSource.choices)
    dead = models.BooleanField(default=False)
    personal = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["mail", "address"], name="a_mail_is_refused_once_by_each"),
            models.CheckConstraint(condition=models.Q(by__in=FailureSource.values), name="who_refused_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.address}: {self.words}"


class RateCalendar(models.Model):
    """The times that one rate limit has given to mails. `key`: "" for all mail, "@domain", or an address."""

    key = models.TextField(unique=True)
    taken = models.JSONField(default=list, help_text="[[begin, end], …], joined where they touch")

    def __str__(self) -> str:
        return f"{self.key or 'all'}: {len(self.taken)} times"


class SendingStop(models.Model):
    """Who stopped all sending, when and why; who resumed it, and when. Never deleted."""

    at = models.DateTimeField()
    by = models.TextField()
    reason = models.TextField(blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(ended_at__isnull=True), name="stops_in_force"),
        ]

    def __str__(self) -> str:
        return f"stopped by {self.by}"


class ServiceLease(NamedLease):
    """Something that one process at a time does: the scheduler."""

    name = models.TextField(unique=True)

    def __str__(self) -> str:
        return self.name


# --- Mail that was read: archives and their positions, raw messages, messages, and pending references ---
# The bytes of a relevant mail are stored before it is parsed, and stay as they came: what is known of a mail can be
# read anew from them. A mail that can't be read is in quarantine, with the error beside its bytes. A message is a mail
# of a report's thread, by its Message-ID; a mail that relates to nothing known yet waits under the keys that it names,
# and under its own Message-ID, since replies to it are worth keeping.
#
# A mirror is a configured archive, which may consist of several archives (the epochs of an inbox); each has a cursor,
# in its reader's own format, where reading goes on.


class Mirror(NamedLease):
    """A configured archive (PERFWORK_ARCHIVES): an inbox with its epochs, a mailbox, a folder on a server."""

    path = models.TextField(unique=True, help_text="without a password")
    tried_at = models.DateTimeField(null=True, blank=True, help_text="when it was last fetched and read, or tried to")
    error = models.TextField(blank=True, help_text="why it could not be opened, fetched or read, and what to do")
    failing_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="attempts since then: each waits longer")

    def __str__(self) -> str:
        return self.path


class Archive(NamedLease):
    """A public-inbox epoch, an mbox or a Maildir. `cursor` is the position, in the reader's own format."""

    path = models.TextField(unique=True)
    kind = models.TextField(choices=[(kind.value, kind.value) for kind in ArchiveKind], default=ArchiveKind.FILE.value)
    cursor = models.TextField(blank=True)
    read_at = models.DateTimeField(null=True, blank=True, help_text="when it was last read to its end")
    error = models.TextField(blank=True, help_text="why it could not be read, and what to do")
    seen = models.PositiveBigIntegerField(default=0, help_text="mails read from it")
    kept = models.PositiveBigIntegerField(default=0, help_text="mails from it that were filed or wait for their report")
    newest_at = models.DateTimeField(null=True, blank=True, help_text="date of the last mail read")
    searched = models.JSONField(
        default=dict, blank=True, help_text="the last message, report and sent mail whose names were searched in it"
    )

    def __str__(self) -> str:
        return self.path


class ArchivePositions(models.Model):
    """Where the mails of an archive are, from number `first` on: commits, with spaces between."""

    archive = models.ForeignKey(Archive, on_delete=models.CASCADE, related_name="positions")
    first = models.PositiveBigIntegerField()
    positions = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["archive", "first"], name="positions_of_an_archive")]

    def __str__(self) -> str:
        return f"{self.archive} from {self.first}"


class ArchiveNames(models.Model):
    """A slice of the index of the names in an archive's mails (bot/archives/known_reports.py)."""

    archive = models.ForeignKey(Archive, on_delete=models.CASCADE, related_name="names")
    slice = models.PositiveSmallIntegerField()
    entries = models.BinaryField()

    class Meta:
        indexes = [models.Index(fields=["archive", "slice"])]

    def __str__(self) -> str:
        return f"{self.archive}, slice {self.slice}"


PEOPLE = ("person", "bot_operator")  # the kinds of mail written by people


class RawMessage(models.Model):
    """The bytes of one relevant mail, stored before it is parsed; with an error, it is quarantined."""

    digest = models.TextField(unique=True, help_text="sha256 of the bytes")
    archive = models.ForeignKey(Archive, null=True, blank=True, on_delete=models.SET_NULL, related_name="mail")
    position = models.TextField(blank=True, help_text="where in the archive it was")
    compressed = models.BinaryField()
    error = models.TextField(blank=True)
    received_at = models.DateTimeField()
    erased_at = models.DateTimeField(
        null=True, blank=True, help_text="its writer's data was erased on request: it is empty, and never read again"
    )

    class Meta:
        indexes = [models.Index(fields=["id"], condition=~models.Q(error=""), name="quarantined")]

    def __str__(self) -> str:
        return f"{self.archive or 'mail'} {self.position}"

    @property
    def raw(self) -> bytes:
        """The mail, byte for byte."""
        return zlib.decompress(bytes(self.compressed))


class Message(models.Model):
    """One mail of a report's thread, known by its Message-ID, without angle brackets."""

    message_id = models.TextField(unique=True)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="messages")
    source = models.OneToOneField(RawMessage, on_delete=models.PROTECT, related_name="message")
    in_reply_to = models.TextField(blank=True, db_index=True)
    author_name = models.TextField(blank=True)
    author_email = models.TextField(blank=True, db_index=True)
    subject = models.TextField(blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    kind = models.TextField(help_text="who wrote it: a person, ourselves, a robot, …")
    role = models.TextField(blank=True)
    relation = models.TextField(blank=True, help_text="how it relates to the report: in its thread, by a link, …")
    thread = models.TextField(
        blank=True, default="report", help_text="the thread that its answers are in: of the report, a fix or a patch"
    )
    trust = models.TextField(blank=True, help_text="whether its author is verified: pass, fail or none")
    trust_by = models.TextField(blank=True, help_text="what verified it: DKIM of a domain, a trusted server, a key")
    signature = models.TextField(
        blank=True,
        db_index=True,
        help_text="identifies what is signed, if the Message-ID is not: copies have the same one",
    )
    tables = models.BinaryField(
        default=b"", help_text="the tables of a robot's report (tracker/domain/archived_reports.py)"
    )
    own_text = models.TextField(blank=True)
    public = models.BooleanField(
        default=False, help_text="a public archive has it, or a list got it: shown to everybody"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~models.Q(message_id=""), name="message_has_an_id"),
        ]
        indexes = [models.Index(fields=["report", "sent_at"])]

    def __str__(self) -> str:
        return f"{self.author_email}: {self.subject}"


class PendingReference(models.Model):
    """One key of one mail: a Message-ID that it replies or links to, or a commit or title that it says it fixes.

    A mail that is not filed yet also waits under its own Message-ID (`own`), since replies to it are worth keeping.
    """

    key = models.TextField()
    own = models.BooleanField(default=False, db_index=True)
    source = models.ForeignKey(RawMessage, on_delete=models.CASCADE, related_name="keys")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "source"], name="an_orphan_waits_once_for_a_key")]

    def __str__(self) -> str:
        return self.key
