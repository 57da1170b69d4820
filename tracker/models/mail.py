"""Mail that was read: archives and their positions, raw messages, messages, and pending references.

The bytes of a relevant mail are stored before it is parsed, and stay as they came: what is known of a mail can be
read anew from them. A mail that can't be read is in quarantine, with the error beside its bytes. A message is a mail
of a report's thread, by its Message-ID; a mail that relates to nothing known yet waits under the keys that it names,
and under its own Message-ID, since replies to it are worth keeping.

A mirror is a configured archive, which may consist of several archives (the epochs of an inbox); each has a cursor,
in its reader's own format, where reading goes on.
"""

import zlib

from django.db import models

from tracker.domain.events import ArchiveKind
from tracker.models.base import NamedLease
from tracker.models.reports import Report


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
        default=b"", help_text="the tables of a robot's report (tracker/domain/comparison_tables.py)"
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
