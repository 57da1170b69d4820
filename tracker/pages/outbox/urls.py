"""URLs of outgoing mail."""

from django.urls import path

from tracker.pages.outbox import views

urlpatterns = [
    path("", views.outbox, name="outbox"),
    path("act/", views.act, name="act-on-mail"),
    path("stop/", views.stop, name="stop-sending"),
    path("<int:pk>/", views.mail, name="outgoing-mail"),
    path("<int:pk>/raw/", views.raw, name="outgoing-mail-raw"),
]
