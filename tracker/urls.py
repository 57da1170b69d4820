"""The addresses of the pages (DESIGN section 5)."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("tracker.releases.urls")),
    path("", include("tracker.triage.urls")),
    path("", include("tracker.release_report.urls")),
    path("report/", include("tracker.reports.urls")),
    path("", include("tracker.studies.urls")),
    path("", include("tracker.comparison.urls")),
    path("", include("tracker.index.urls")),
    path("", include("tracker.evidence.urls")),
    path("", include("tracker.people.urls")),
    path("", include("tracker.things.urls")),
    path("results/", include("tracker.results.urls")),
    path("inbox/", include("tracker.inbox.urls")),
    path("outbox/", include("tracker.outbox.urls")),
    path("api/v1/", include("tracker.api.urls")),
    path("api/v1/", include("bot.web.urls")),  # by its name only: nothing here imports the bot
    path("help/", include("tracker.help.urls")),
    path("admin/", admin.site.urls),
]
