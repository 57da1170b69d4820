"""URLs of the triage tables, one per release, and of report actions."""

from django.urls import path, re_path

from tracker.pages.triage import views

urlpatterns = [
    re_path(r"^(?P<version>v\d{1,3}\.\d{1,4}(?:\.\d{1,4})?)/$", views.triage, name="triage"),
    re_path(
        r"^(?P<version>v\d{1,3}\.\d{1,4}(?:\.\d{1,4})?)/?\.(?P<form>json|csv|txt|md|atom|regzbot)$",
        views.triage_as,
        name="triage-as",
    ),
    path("triage/news/", views.news, name="triage-news"),
    path("triage/change/", views.change, name="change-reports"),
    path("triage/undo/", views.undo, name="undo-change"),
]
