"""URLs of single reports."""

from django.urls import re_path

from tracker.pages.reports import views

_REF = r"^(?P<ref>[0-9a-fA-F]{7,64})"

urlpatterns = [
    re_path(rf"{_REF}/$", views.report, name="report"),
    re_path(rf"{_REF}\.json$", views.as_json, name="report-json"),
    re_path(rf"{_REF}\.mbox$", views.as_mbox, name="report-mbox"),
    re_path(rf"{_REF}\.mbox\.gz$", views.as_packed_mbox, name="report-mbox-gz"),
    re_path(rf"{_REF}/brief/$", views.brief, name="report-brief"),
    re_path(rf"{_REF}/tables/$", views.tables, name="report-tables"),
    re_path(rf"{_REF}/take-back/$", views.take_back, name="take-back"),
]
