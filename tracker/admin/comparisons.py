"""The admin of comparisons and release reports."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import CharField, ModelForm, Textarea
from django.http import HttpRequest

from tracker import models
from tracker.admin.read_only import ReadOnly


@admin.register(models.Kernel)
class KernelAdmin(ReadOnly):
    list_display = ("name", "variant", "describe", "measured_at")
    search_fields = ("name", "variant")


@admin.register(models.ReleaseResult)
class ReleaseResultAdmin(ReadOnly):
    list_display = ("producer", "external_id", "kernel", "created_at", "received_at")
    list_select_related = ("kernel",)
    search_fields = ("external_id",)


@admin.register(models.Measurement)
class MeasurementAdmin(ReadOnly):
    list_display = ("kernel", "metric", "scenario", "machine", "role", "mean", "runs")
    list_select_related = ("kernel", "metric", "scenario", "machine")
    show_full_result_count = False


class _Described(ModelForm):
    """Give the description a larger field."""

    description = CharField(widget=Textarea(attrs={"rows": 4, "cols": 100}), required=False)


@admin.register(models.Suite)
class SuiteAdmin(admin.ModelAdmin):
    form = _Described
    list_display = ("name", "position", "description")
    list_editable = ("position",)


@admin.register(models.Parameter)
class ParameterAdmin(admin.ModelAdmin):
    form = _Described
    list_display = ("name", "classification", "position", "description")
    list_editable = ("position",)


@admin.register(models.TextRevision)
class TextRevisionAdmin(ReadOnly):
    list_display = ("place", "name", "by", "at")
    search_fields = ("place",)


@admin.register(models.ReportHighlight)
class ReportHighlightAdmin(admin.ModelAdmin):
    list_display = ("release", "report", "heading")
    list_select_related = ("release", "report__culprit")
    list_editable = ("heading",)
    raw_id_fields = ("report",)


@admin.register(models.BasketEntry)
class BasketEntryAdmin(ReadOnly):
    list_display = ("metric", "params", "weight", "since", "until")
    list_select_related = ("metric",)


class StudyKernels(admin.TabularInline):
    model = models.StudyKernel
    extra = 0


@admin.register(models.Study)
class StudyAdmin(admin.ModelAdmin):
    list_display = ("slug", "title", "kind", "made_at")
    inlines = (StudyKernels,)


@admin.register(models.ToolOutput)
class ToolOutputAdmin(ReadOnly):
    list_display = ("name", "kind", "report", "kernel", "submitted_by", "at")
    list_select_related = ("report__culprit", "kernel")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.ToolOutput]:
        return super().get_queryset(request).defer("text")
