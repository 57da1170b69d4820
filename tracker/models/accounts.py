"""People and programs we deal with: who gets mail, sign-in, keys, subscriptions, webhooks; operations.

An address is written in lower case, and `Correspondent` says whether it gets our mail. Secrets are not stored where
that can be avoided: a sign-in link is signed with the installation's key, and of an API key only a hash is kept. The
secret of a webhook has to be stored, since its deliveries are signed with it.

Sessions are rows, so that a sign-out or an operator ends them. A webhook's delivery has its body made once, so that
every attempt sends the same bytes.

Operations are what the installation knows of itself: when each periodic task last ran, which operators were mailed
what does not work, what was restored, and how far the reports are folded after an upgrade.
"""

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models.functions import Lower

from tracker.models.base import NaturalModel
from tracker.models.reports import Event

# --- People and their keys ---


class Mailing(models.TextChoices):
    """Whether an address gets our mail. All values but the first prevent it."""

    OPTED_IN = "opted_in"
    OPTED_OUT = "opted_out"
    BOUNCING = "bouncing"
    STOPPED = "stopped"  # by an operator


class Correspondent(NaturalModel):
    """An address in lower case. `note` says who decided, or what the server said."""

    NATURAL = ("address",)
    address = models.TextField(unique=True)
    mailing = models.TextField(choices=Mailing.choices)
    note = models.TextField(blank=True)
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(mailing__in=Mailing.values), name="mailing_is_known"),
            models.CheckConstraint(
                condition=models.Q(address=Lower("address")), name="correspondent_address_in_normal_form"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address}: {self.get_mailing_display().lower()}"


class SavedView(models.Model):
    """Works for every release. Private to its owner, or shared with everyone."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="views")
    name = models.TextField()
    query = models.TextField(blank=True, help_text="state=working&machine!=lab7-m1")
    shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="a_view_has_a_name_of_its_own")]

    def __str__(self) -> str:
        return self.name


class SignIn(models.Model):
    """One link: mailed once, used once. No secret is stored: the link is signed with the installation's key."""

    address = models.TextField()
    for_opt_out = models.BooleanField(default=False, help_text="confirms that the address wants no more mail")
    asked_from = models.TextField(blank=True, help_text="IP address of the browser")
    asked_at = models.DateTimeField()
    leads_to = models.TextField(default="/", help_text="the page of ours on which it was asked for")
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="when a mail server accepted it")
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["address", "asked_at"], name="links_to_an_address"),
            models.Index(fields=["asked_from", "asked_at"], name="links_from_a_place"),
            models.Index(fields=["id"], condition=models.Q(mailed_at__isnull=True), name="links_to_be_mailed"),
        ]

    def __str__(self) -> str:
        return f"{self.address} {self.asked_at:%Y-%m-%d %H:%M}"


class SigningKey(models.Model):
    """One DKIM record (RFC 6376 section 3.6). An empty record means that there was none at `fetched_at`."""

    name = models.TextField(unique=True, help_text="20230601._domainkey.gmail.com")
    record = models.TextField(blank=True, help_text='the text of the record: "v=DKIM1; k=rsa; p=…"')
    fetched_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Session(AbstractBaseSession):
    """A session on the server, so that a sign-out or an operator ends it. `account` empty: nobody is signed in."""

    account = models.PositiveBigIntegerField(null=True, blank=True, db_index=True, help_text="key of the user")


class PasswordAttempt(models.Model):
    """One try to sign in with a password, counted before the password is looked at."""

    account = models.TextField(help_text="the username that was given, in lower case")
    network = models.TextField(help_text="IP address, or the /48 of an IPv6 address")
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["account", "at"], name="attempts_on_an_account"),
            models.Index(fields=["network", "at"], name="attempts_from_a_network"),
        ]

    def __str__(self) -> str:
        return f"{self.account} from {self.network}"


class ApiKey(models.Model):
    """The key of a program: what it may do, as which producer of results. Only a hash of the token is stored."""

    name = models.TextField(unique=True)
    digest = models.TextField(unique=True, help_text="sha256 of the token, in hexadecimal")
    beginning = models.TextField(help_text="the first characters of the token, to recognise it by")
    scopes = models.JSONField(default=list, help_text="what it may do: results, evidence, jobs, triage")
    producer = models.TextField(blank=True, help_text="the producer whose results it may submit; * for any")
    created_at = models.DateTimeField()
    acts_for = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="api_keys"
    )
    used_at = models.DateTimeField(null=True, blank=True, help_text="to the minute")
    minute = models.DateTimeField(null=True, blank=True, help_text="in which `requests` were made")
    requests = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Maintainer(models.Model):
    """Who is listed in MAINTAINERS for a subsystem of which a report was composed."""

    address = models.TextField()
    subsystem = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["address", "subsystem"], name="a_subsystem_has_each_once")]

    def __str__(self) -> str:
        return f"{self.address} of {self.subsystem}"


class Often(models.TextChoices):
    """How often a subscription is mailed, if anything has changed."""

    AT_ONCE = "at once"
    DAILY = "daily"
    WEEKLY = "weekly"


class Subscription(models.Model):
    """What somebody asked to get by mail: the changed reports of a search, or the escalations if `query` is empty."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    query = models.TextField(blank=True)
    often = models.TextField(choices=Often.choices, default=Often.DAILY)
    created_at = models.DateTimeField()
    mailed_until = models.DateTimeField(help_text="changes that were recorded until then were mailed")
    mailed = models.JSONField(default=list, blank=True, help_text="the reports in the last mails, each KEY:REVISION")

    class Meta:
        ordering = ["query", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "query"], name="a_subscription_is_made_once"),
            models.CheckConstraint(condition=models.Q(often__in=Often.values), name="subscription_often_is_known"),
        ]

    def __str__(self) -> str:
        return self.query or "escalations"


# --- Webhooks ---


class Webhook(models.Model):
    """An address that gets the new events of the reports that match a search; `query` "": of all reports."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    url = models.TextField()
    query = models.TextField(blank=True)
    secret = models.TextField(help_text="whsec_ and the key in base64, which signatures are made with")
    created_at = models.DateTimeField()
    events_until = models.DateTimeField(help_text="events that were recorded until then have their deliveries")
    stopped = models.TextField(blank=True, help_text="why nothing is sent any more")
    silent = models.PositiveIntegerField(default=0, help_text="attempts in a row that got no answer")
    retry_at = models.DateTimeField(help_text="nothing is sent before")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "url", "query"], name="a_webhook_is_made_once")]

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    """What became of a delivery. `failed`: given up."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookDelivery(models.Model):
    """One event for one webhook. The body is made once, so that every attempt sends the same bytes."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(Event, null=True, on_delete=models.SET_NULL, related_name="+")
    key = models.TextField(help_text="the same at every attempt, so that the receiver can tell a repeat")
    body = models.TextField()
    state = models.TextField(choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(help_text="not tried before")
    answered_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True, help_text="the HTTP status of the last answer")
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "key"], name="an_event_is_delivered_once"),
            models.CheckConstraint(condition=models.Q(state__in=DeliveryState.values), name="delivery_state_is_known"),
        ]
        indexes = [
            models.Index(fields=["webhook", "next_at"], condition=models.Q(state="waiting"), name="deliveries_due")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.state}"


# --- Operations ---


class TaskRun(models.Model):
    """The last run of a task, whichever worker ran it."""

    task = models.TextField(unique=True)
    at = models.DateTimeField(help_text="when it ended")
    seconds = models.FloatField(help_text="how long it took")
    error = models.TextField(blank=True, help_text="what it raised; empty: it succeeded")

    def __str__(self) -> str:
        return self.task


class StoredSize(models.Model):
    """How large a table or a directory was, measured once a day."""

    name = models.TextField()
    size = models.PositiveBigIntegerField(help_text="bytes")
    at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.size:,} bytes"


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
    """How far all reports were folded by a version of the report summary; one row (tracker/services/event_log.py)."""

    version = models.PositiveIntegerField(help_text="the version by which all reports are folded")
    folded_to = models.PositiveBigIntegerField(default=0, help_text="key of the last report folded by the next one")

    def __str__(self) -> str:
        return f"version {self.version}"
