"""URLs of the release report in its formats."""

from django.urls import path, re_path

from tracker.pages.release_report import views

_VERSION = r"(?P<version>v\d{1,3}\.\d{1,4}(?:\.\d{1,4})?)"

urlpatterns = [
    re_path(rf"^{_VERSION}/report/$", views.report, name="release-report"),
    re_path(rf"^{_VERSION}/report\.(?P<form>txt|md|json)$", views.as_form, name="release-report-as"),
    path("write/report/", views.edit, name="write-into-release-report"),
    path("write/detail/", views.choose_highlight, name="choose-detail"),
]
