"""The pages of single reports."""

from django.urls import re_path

from tracker.reports import views

urlpatterns = [
    re_path(r"^(?P<ref>[0-9a-fA-F]{7,64})/$", views.report, name="report"),
    re_path(r"^(?P<ref>[0-9a-fA-F]{7,64})/tables/$", views.tables, name="report-tables"),
]
