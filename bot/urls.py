"""The root of all URLs: the tracker's pages, and where data comes in from outside."""

from django.urls import include, path

import bot.celery  # noqa: F401  # the pages enqueue tasks through Celery's current app
from bot.web.metrics import metrics
from bot.web.requested_patch import requested_patch

urlpatterns = [
    path("", include("tracker.urls")),
    path("api/v1/", include("bot.web.urls")),
    path("metrics", metrics, name="metrics"),
    path("lab/patch/<int:pk>", requested_patch, name="requested-patch"),
]

handler500 = "tracker.unavailable.failed"
handler404 = "tracker.api.missing.not_found"
