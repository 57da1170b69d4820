"""The Django admin: every table, the records of the past read-only, and what administrators may do to them.

Raw mail, results, events and the like never change (DESIGN rules 1 and 2), so most tables are ReadOnly: nothing is
added, changed or deleted here. What remains are actions that go through the services: release a held report, make a
finding the headline, decide on suggestions, revoke a key, end somebody's sessions.

Where a row can be edited, saving it also refreshes what depends on it: a tree's role decides the section of its
reports, a metric's direction grades its findings again, a release's date ends a cycle. Secrets (session keys,
digests, lease tokens) are not shown, and filters are limited to the listed ones, since a query on a hidden column
would tell it letter by letter.
"""

from django.contrib import admin, messages
from django.contrib.admin import site
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.forms import CharField, ModelForm, Textarea
from django.http import HttpRequest
from django.utils import timezone

from tracker import models
from tracker.models.measurements import Direction, DirectionBy
from tracker.pages.accounts import AdminPasswordForm
from tracker.services import accounts, corrections, report_actions
from tracker.services.report_summary import refresh, refresh_since

# --- Read-only tables ---


class ReadOnly(admin.ModelAdmin):
    """For records that never change, such as raw mail, results and events (DESIGN rules 1 and 2)."""

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the listed filters: a query on a hidden column would tell it letter by letter."""
        names = [entry[0] if isinstance(entry, tuple) else entry for entry in self.list_filter]
        return any(lookup == name or lookup.startswith(f"{name}__") for name in names)

    def _nobody(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _nobody


# --- Accounts ---

site.login_form = AdminPasswordForm
site.unregister(User)


@admin.register(User)
class Accounts(UserAdmin):
    """Django's own, with an action that signs people out everywhere."""

    actions = ("end_sessions",)

    @admin.action(description="Sign out everywhere: end all sessions", permissions=["change"])
    def end_sessions(self, request: HttpRequest, users: QuerySet[User]) -> None:
        ended = sum(accounts.end_sessions(user.pk) for user in users)
        self.message_user(request, f"Sessions ended: {ended}")


site.register(
    models.Session,  # the keys are secrets, and not shown
    ReadOnly,
    list_display=("account", "expire_date"),
    list_display_links=None,
    exclude=("session_key", "session_data"),
)
site.register(models.PasswordAttempt, ReadOnly, list_display=("account", "network", "at"), ordering=("-at",))


@admin.register(models.ApiKey)
class ApiKeyAdmin(ReadOnly):
    """Keys of programs; `manage.py apikey create` makes one."""

    list_display = ("name", "beginning", "scopes", "producer", "created_at", "used_at", "revoked_at")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke: it is not accepted any more", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[models.ApiKey]) -> None:
        now = timezone.now()
        revoked = sum(accounts.revoke(key.name, now) for key in keys)
        self.message_user(request, f"Keys revoked: {revoked}")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)


site.register(
    models.Webhook,
    ReadOnly,
    list_display=("url", "owner", "query", "stopped", "silent", "events_until"),
    exclude=("secret",),
)
site.register(
    models.WebhookDelivery,
    ReadOnly,
    list_display=("webhook", "key", "state", "attempts", "status", "error", "answered_at"),
    list_filter=("state",),
)
site.register(models.Subscription, ReadOnly, list_display=("owner", "query", "often", "mailed_until"))

# --- Kernels, release reports, studies ---

site.register(
    models.Kernel,
    ReadOnly,
    list_display=("name", "variant", "describe", "measured_at"),
    search_fields=("name", "variant"),
)
site.register(
    models.ReleaseResult,
    ReadOnly,
    list_display=("producer", "external_id", "kernel", "created_at", "received_at"),
    search_fields=("external_id",),
)
site.register(
    models.Measurement,
    ReadOnly,
    list_display=("kernel", "metric", "scenario", "machine", "role", "mean", "runs"),
    show_full_result_count=False,
)


class _Described(ModelForm):
    """Give the description a larger field."""

    description = CharField(widget=Textarea(attrs={"rows": 4, "cols": 100}), required=False)


site.register(
    models.Suite, form=_Described, list_display=("name", "position", "description"), list_editable=("position",)
)
site.register(
    models.Parameter,
    form=_Described,
    list_display=("name", "classification", "position", "description"),
    list_editable=("position",),
)
site.register(models.TextRevision, ReadOnly, list_display=("place", "name", "by", "at"), search_fields=("place",))
site.register(
    models.ReportHighlight,
    list_display=("release", "report", "heading"),
    list_editable=("heading",),
    raw_id_fields=("report",),
)
site.register(models.BasketEntry, ReadOnly, list_display=("metric", "params", "weight", "since", "until"))


class StudyKernels(admin.TabularInline):
    model = models.StudyKernel
    extra = 0


site.register(models.Study, list_display=("slug", "title", "kind", "made_at"), inlines=(StudyKernels,))


@admin.register(models.ToolOutput)
class ToolOutputAdmin(ReadOnly):
    list_display = ("name", "kind", "report", "kernel", "submitted_by", "at")
    list_select_related = ("report__culprit", "kernel")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.ToolOutput]:
        return super().get_queryset(request).defer("text")


# --- Operations ---

site.register(models.TaskRun, ReadOnly, list_display=("task", "at", "seconds", "error"))
site.register(models.FaultMail, ReadOnly, list_display=("address", "day", "at"))
site.register(models.Restoration, ReadOnly, list_display=("backup_at", "restored_at"))
site.register(models.Folding, ReadOnly, list_display=("version", "folded_to"))

# --- Reports, mail and people ---

site.register(models.Commit, list_display=("sha10", "title", "author_email"), search_fields=("sha", "title"))


@admin.register(models.Tree)
class TreeAdmin(admin.ModelAdmin):
    list_display = ("name", "role", "path", "walked_at", "error")

    def save_model(self, request: HttpRequest, obj: models.Tree, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        refresh(obj.reports.values_list("pk", flat=True))  # the tree's role determines their section


site.register(models.Landing, ReadOnly, list_display=("commit", "tree", "tag", "at", "merged_at", "gone_at"))
site.register(models.RelatedCommit, ReadOnly, list_display=("commit", "part", "report", "rule", "quote"))
site.register(models.StableSeries, ReadOnly, list_display=("report", "series", "newest", "fixed_in"))
site.register(models.Machine, list_display=("name", "description", "cpus"), search_fields=("name",))
site.register(models.Scenario, list_display=("suite", "key"), search_fields=("key",))


@admin.register(models.Metric)
class MetricAdmin(admin.ModelAdmin):
    """Sets directions: an operator overrides labs, and labs override the built-in table; and which metrics a suite is
    run for, where the built-in table is not what this lab wants.
    """

    list_display = ("name", "unit", "direction", "direction_by", "key")
    list_filter = ("direction", "direction_by", "key")
    search_fields = ("name",)
    readonly_fields = ("direction_by",)

    def save_model(self, request: HttpRequest, obj: models.Metric, form: ModelForm, change: bool) -> None:
        if "direction" in form.changed_data:  # unknown hands the choice back to labs and the table
            obj.direction_by = DirectionBy.NOBODY if obj.direction == Direction.UNKNOWN else DirectionBy.OPERATOR
        super().save_model(request, obj, form, change)
        changed = corrections.regrade([obj])
        self.message_user(request, f"{changed} findings graded again")


@admin.register(models.Release)
class ReleaseAdmin(admin.ModelAdmin):
    list_display = ("version", "released_at")

    def save_model(self, request: HttpRequest, obj: models.Release, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        refresh_since(None)  # the end of a cycle may have changed


site.register(models.ReleaseCandidate, ReadOnly, list_display=("version", "tagged_at"))
site.register(models.SavedView, list_display=("name", "owner", "query", "shared"), list_filter=("shared",))
site.register(
    models.SignIn,
    ReadOnly,
    list_display=("address", "asked_at", "asked_from", "mailed_at", "used_at"),
    search_fields=("address",),
)
site.register(
    models.BisectResult,
    ReadOnly,
    list_display=("producer", "external_id", "outcome", "received_at", "held", "note"),
    list_filter=("outcome", "format", ("held", admin.EmptyFieldListFilter)),
    exclude=("payload",),
)


@admin.register(models.Report)
class ReportAdmin(ReadOnly):
    """Releases held reports."""

    list_display = ("title", "state", "status", "reported_at", "held")
    list_filter = ("state", "verdict", ("held", admin.EmptyFieldListFilter))
    list_select_related = ("culprit",)
    search_fields = ("title", "culprit__sha")
    actions = ("release",)

    @admin.action(description="Lift the hold: its mail may be composed", permissions=["release"])
    def release(self, request: HttpRequest, rows: QuerySet[models.Report]) -> None:
        for row in rows:
            if corrections.release(row):
                self.log_change(request, row, f"released; was held: {row.held}")
            elif row.held:
                self.message_user(request, f"{row} is still held: set the metric direction", messages.WARNING)

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tracker.change_report")


@admin.register(models.Finding)
class FindingAdmin(ReadOnly):
    """Makes another finding the headline."""

    list_display = ("report", "metric", "machine", "verdict", "change_pct", "headline")
    search_fields = ("report__culprit__sha",)
    actions = ("set_headline",)

    @admin.action(description="Make it the headline of its report", permissions=["set_headline"])
    def set_headline(self, request: HttpRequest, rows: QuerySet[models.Finding]) -> None:
        for row in rows.select_related("report", "metric"):
            if corrections.set_headline(row):
                self.log_change(request, row, "made the headline")
            else:
                self.message_user(request, f"{row}: already reported by mail", messages.WARNING)

    def has_set_headline_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tracker.change_finding")


site.register(
    models.Event,
    ReadOnly,
    list_display=("report", "kind", "occurred_at", "message_id", "commit", "actor"),
    list_filter=("kind",),
)
site.register(models.RuleRecord, ReadOnly, list_display=("rule", "accepted", "changed", "rejected"))

# Pins signing keys: a key stored here is not looked up in DNS.
site.register(models.SigningKey, list_display=("name", "fetched_at"), search_fields=("name",))


@admin.register(models.Suggestion)
class SuggestionAdmin(ReadOnly):
    """Accepts or rejects suggestions; accepting one makes it an event by the signed-in user."""

    list_display = ("report", "kind", "quote", "role", "rule", "decision", "decided_by")
    list_filter = ("decision", "rule")
    actions = ("accept", "reject")

    @admin.action(description="Accept: make it an event", permissions=["decide"])
    def accept(self, request: HttpRequest, rows: QuerySet[models.Suggestion]) -> None:
        self._decide(request, rows, models.Decision.ACCEPTED)

    @admin.action(description="Reject", permissions=["decide"])
    def reject(self, request: HttpRequest, rows: QuerySet[models.Suggestion]) -> None:
        self._decide(request, rows, models.Decision.REJECTED)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tracker.change_suggestion")

    def _decide(self, request: HttpRequest, rows: QuerySet[models.Suggestion], decision: models.Decision) -> None:
        person = request.user.get_username()
        done = sum(
            report_actions.decide(row, decision, person, timezone.now()) for row in rows.select_related("report")
        )
        self.message_user(request, f"{decision.label}: {done} of {rows.count()}")


site.register(
    models.SecondOpinion,
    ReadOnly,
    list_display=("report", "kind", "sentence", "fault", "model", "asked_at"),
    list_filter=("model", "kind"),
)
site.register(
    models.RawMessage, ReadOnly, list_display=("digest", "archive", "position", "error"), exclude=("compressed",)
)
site.register(
    models.Message,
    ReadOnly,
    list_display=("subject", "author_email", "sent_at", "kind"),
    search_fields=("message_id", "subject"),
)
site.register(
    models.OutgoingMail,
    ReadOnly,
    list_display=("subject", "state", "composed_at", "sent_at", "reason"),
    list_filter=("state",),
    exclude=("raw",),
)
site.register(
    models.MailTransition,
    ReadOnly,
    list_display=("mail", "was", "became", "at", "by", "words"),
    list_filter=("became",),
)
site.register(
    models.DeliveryFailure,
    ReadOnly,
    list_display=("address", "words", "by", "dead", "at"),
    list_filter=("by", "dead"),
    search_fields=("address",),
)
site.register(models.SendingStop, ReadOnly, list_display=("at", "by", "reason", "ended_at", "ended_by"))
site.register(models.RateCalendar, ReadOnly, list_display=("key", "taken"))
site.register(
    models.LabJob,
    ReadOnly,
    list_display=("__str__", "report", "state", "runner", "outcome", "due_at"),
    list_filter=("state", "request", "outcome"),
    exclude=("lease_token",),
)


@admin.register(models.Correspondent)
class CorrespondentAdmin(admin.ModelAdmin):
    list_display = ("address", "mailing", "note", "since")
    list_filter = ("mailing",)
    search_fields = ("address",)
    fields = ("address", "mailing", "note")

    def save_model(self, request: HttpRequest, obj: models.Correspondent, form: ModelForm, change: bool) -> None:
        obj.address = obj.address.strip().lower()
        obj.since = timezone.now()
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: models.Correspondent) -> None:
        super().delete_model(request, obj)
        self._who_gets_mail_changed()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        super().delete_queryset(request, queryset)
        self._who_gets_mail_changed()

    def _who_gets_mail_changed(self) -> None:
        """Recompose waiting reports, so that an address that may get mail again is a recipient."""
        waiting = (models.OutgoingState.COMPOSED, models.OutgoingState.HELD)
        models.OutgoingMail.objects.filter(state__in=waiting, purpose=models.Purpose.REPORT).update(
            stale=True, looked_at=None
        )


site.register(models.Archive, ReadOnly, list_display=("path", "read_at", "error"))
