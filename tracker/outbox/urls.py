"""Outgoing mail."""

from django.urls import path

from tracker.outbox import views

urlpatterns = [
    path("", views.outbox, name="outbox"),
    path("<int:pk>/", views.mail, name="outgoing-mail"),
    path("<int:pk>/raw/", views.raw, name="outgoing-mail-raw"),
]
