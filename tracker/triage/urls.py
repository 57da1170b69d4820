"""The triage tables, one a release."""

from django.urls import re_path

from tracker.triage import views

urlpatterns = [re_path(r"^(?P<version>v\d{1,3}\.\d{1,4})/$", views.triage, name="triage")]
