"""The URLs of the pages (DESIGN section 5). bot/urls.py, the root, includes them."""

from django.contrib import admin
from django.urls import include, path

admin.autodiscover()  # here and not in the settings, so that commands need not import it

urlpatterns = [
    path("", include("tracker.pages.home.urls")),
    path("", include("tracker.pages.triage.urls")),
    path("", include("tracker.pages.release_report.urls")),
    path("report/", include("tracker.pages.reports.urls")),
    path("", include("tracker.pages.studies.urls")),
    path("", include("tracker.pages.kernels.urls")),
    path("", include("tracker.pages.index.urls")),
    path("", include("tracker.pages.tool_output.urls")),
    path("", include("tracker.pages.accounts.urls")),
    path("", include("tracker.pages.browse.urls")),
    path("", include("tracker.pages.measurements.urls")),
    path("", include("tracker.pages.search.urls")),
    path("", include("tracker.pages.mine.urls")),
    path("", include("tracker.pages.escalations.urls")),
    path("", include("tracker.pages.statistics.urls")),
    path("", include("tracker.pages.lab.urls")),
    path("", include("tracker.pages.subscriptions.urls")),
    path("", include("tracker.pages.webhooks.urls")),
    path("results/", include("tracker.pages.results.urls")),
    path("inbox/", include("tracker.pages.review.urls")),
    path("outbox/", include("tracker.pages.outbox.urls")),
    path("api/v1/", include("tracker.api.urls")),
    path("", include("tracker.pages.health.urls")),
    path("help/", include("tracker.pages.help.urls")),
    path("admin/", admin.site.urls),
]
