"""The root of all URLs: the tracker's pages, and where data comes in from outside."""

from django.urls import include, path

import bot.celery  # noqa: F401  # the pages enqueue tasks through Celery's current app

urlpatterns = [
    path("", include("tracker.urls")),
    path("api/v1/", include("bot.web.urls")),
]
