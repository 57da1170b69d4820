"""The admin of reports, mail and people, and the actions of administrators on them."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from tracker import models
from tracker.admin.read_only import ReadOnly
from tracker.models.measurements import Direction, DirectionBy
from tracker.services.reports import regrading, suggestions
from tracker.services.reports.report_summary import refresh, refresh_since


@admin.register(models.Commit)
class CommitAdmin(admin.ModelAdmin):
    list_display = ("sha10", "title", "author_email")
    search_fields = ("sha", "title")


@admin.register(models.Tree)
class TreeAdmin(admin.ModelAdmin):
    list_display = ("name", "role", "path", "walked_at", "error")

    def save_model(self, request: HttpRequest, obj: models.Tree, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        refresh(obj.reports.values_list("pk", flat=True))  # the tree's role determines their section


@admin.register(models.Landing)
class LandingAdmin(ReadOnly):
    list_display = ("commit", "tree", "tag", "at", "merged_at", "gone_at")
    list_select_related = ("commit", "tree")


@admin.register(models.RelatedCommit)
class RelatedCommitAdmin(ReadOnly):
    list_display = ("commit", "part", "report", "rule", "quote")
    list_select_related = ("commit", "report__culprit")


@admin.register(models.StableSeries)
class StableSeriesAdmin(ReadOnly):
    list_display = ("report", "series", "newest", "fixed_in")
    list_select_related = ("report__culprit",)


@admin.register(models.Machine)
class MachineAdmin(admin.ModelAdmin):
    list_display = ("name", "description", "cpus")
    search_fields = ("name",)


@admin.register(models.Scenario)
class ScenarioAdmin(admin.ModelAdmin):
    list_display = ("suite", "key")
    search_fields = ("key",)


@admin.register(models.Metric)
class MetricAdmin(admin.ModelAdmin):
    """Sets directions: an operator overrides labs, and labs override the built-in table."""

    list_display = ("name", "unit", "direction", "direction_by")
    list_filter = ("direction", "direction_by")
    search_fields = ("name",)
    readonly_fields = ("direction_by",)

    def save_model(self, request: HttpRequest, obj: models.Metric, form: ModelForm, change: bool) -> None:
        if "direction" in form.changed_data:  # unknown hands the choice back to labs and the table
            obj.direction_by = DirectionBy.NOBODY if obj.direction == Direction.UNKNOWN else DirectionBy.OPERATOR
        super().save_model(request, obj, form, change)
        changed = regrading.regrade([obj])
        self.message_user(request, f"{changed} findings graded again")


@admin.register(models.Release)
class ReleaseAdmin(admin.ModelAdmin):
    list_display = ("version", "released_at")

    def save_model(self, request: HttpRequest, obj: models.Release, form: ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        refresh_since(None)  # the end of a cycle may have changed


@admin.register(models.ReleaseCandidate)
class ReleaseCandidateAdmin(ReadOnly):
    list_display = ("version", "tagged_at")


@admin.register(models.SavedView)
class SavedViewAdmin(admin.ModelAdmin):
    list_display = ("name", "owner", "query", "shared")
    list_filter = ("shared",)


@admin.register(models.SignIn)
class SignInAdmin(ReadOnly):
    list_display = ("address", "asked_at", "asked_from", "mailed_at", "used_at")
    search_fields = ("address",)


@admin.register(models.BisectResult)
class BisectResultAdmin(ReadOnly):
    list_display = ("producer", "external_id", "outcome", "received_at", "held", "note")
    list_filter = ("outcome", "format", ("held", admin.EmptyFieldListFilter))
    exclude = ("payload",)


@admin.register(models.Report)
class ReportAdmin(ReadOnly):
    """Releases held reports."""

    list_display = ("title", "state", "status", "reported_at", "held")
    list_filter = ("state", "verdict", ("held", admin.EmptyFieldListFilter))
    list_select_related = ("culprit",)
    search_fields = ("title", "culprit__sha")
    actions = ("release",)

    @admin.action(description="Release: its mail may be composed", permissions=["release"])
    def release(self, request: HttpRequest, rows: QuerySet[models.Report]) -> None:
        for row in rows:
            if regrading.release(row):
                self.log_change(request, row, f"released; was held: {row.held}")
            elif row.held:
                self.message_user(request, f"{row} is still held: set the metric direction", messages.WARNING)

    def has_release_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tracker.change_report")


@admin.register(models.Finding)
class FindingAdmin(ReadOnly):
    """Makes another finding the headline."""

    list_display = ("report", "metric", "machine", "verdict", "change_pct", "headline")
    list_select_related = ("report__culprit", "metric", "machine")
    search_fields = ("report__culprit__sha",)
    actions = ("set_headline",)

    @admin.action(description="Make it the headline of its report", permissions=["lead"])
    def set_headline(self, request: HttpRequest, rows: QuerySet[models.Finding]) -> None:
        for row in rows.select_related("report", "metric"):
            if regrading.set_headline(row):
                self.log_change(request, row, "made the headline")
            else:
                self.message_user(request, f"{row}: already reported by mail", messages.WARNING)

    def has_lead_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tracker.change_finding")


@admin.register(models.Event)
class EventAdmin(ReadOnly):
    list_display = ("report", "kind", "occurred_at", "message_id", "commit", "actor")
    list_filter = ("kind",)
    list_select_related = ("report__culprit",)


@admin.register(models.RuleRecord)
class RuleRecordAdmin(ReadOnly):
    list_display = ("rule", "accepted", "changed", "rejected")


@admin.register(models.SigningKey)
class SigningKeyAdmin(admin.ModelAdmin):
    """Pins signing keys: a key stored here is not looked up in DNS."""

    list_display = ("name", "fetched_at")
    search_fields = ("name",)


@admin.register(models.Suggestion)
class SuggestionAdmin(ReadOnly):
    """Accepts or rejects suggestions; accepting one makes it an event by the signed-in user."""

    list_display = ("report", "kind", "quote", "role", "rule", "decision", "decided_by")
    list_filter = ("decision", "rule")
    list_select_related = ("report__culprit",)
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
        done = sum(suggestions.decide(row, decision, person, timezone.now()) for row in rows.select_related("report"))
        self.message_user(request, f"{decision.label}: {done} of {rows.count()}")


@admin.register(models.SecondOpinion)
class SecondOpinionAdmin(ReadOnly):
    list_display = ("report", "kind", "sentence", "fault", "model", "asked_at")
    list_filter = ("model", "kind")
    list_select_related = ("report__culprit",)


@admin.register(models.RawMessage)
class RawMessageAdmin(ReadOnly):
    list_display = ("digest", "archive", "position", "error")
    exclude = ("compressed",)


@admin.register(models.Message)
class MessageAdmin(ReadOnly):
    list_display = ("subject", "author_email", "sent_at", "kind")
    search_fields = ("message_id", "subject")


@admin.register(models.OutgoingMail)
class OutgoingMailAdmin(ReadOnly):
    list_display = ("subject", "state", "composed_at", "sent_at", "reason")
    list_filter = ("state",)
    exclude = ("raw",)


@admin.register(models.MailTransition)
class MailTransitionAdmin(ReadOnly):
    list_display = ("mail", "was", "became", "at", "by", "words")
    list_filter = ("became",)
    list_select_related = ("mail",)


@admin.register(models.DeliveryFailure)
class DeliveryFailureAdmin(ReadOnly):
    list_display = ("address", "words", "by", "dead", "at")
    list_filter = ("by", "dead")
    search_fields = ("address",)


@admin.register(models.SendingStop)
class SendingStopAdmin(ReadOnly):
    list_display = ("at", "by", "reason", "ended_at", "ended_by")


@admin.register(models.RateCalendar)
class RateCalendarAdmin(ReadOnly):
    list_display = ("key", "taken")


@admin.register(models.LabJob)
class LabJobAdmin(ReadOnly):
    list_display = ("__str__", "report", "state", "runner", "outcome", "due_at")
    list_filter = ("state", "request", "outcome")
    exclude = ("lease_token",)


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


@admin.register(models.Archive)
class ArchiveAdmin(ReadOnly):
    list_display = ("path", "read_at", "error")
