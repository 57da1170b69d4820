"""The root of all URLs: the tracker's pages, and where data comes in from outside."""

from django.urls import include, path

import bot.celery  # noqa: F401  # the pages enqueue tasks through Celery's current app
from bot.web import lab, operators
from bot.web.metrics import metrics
from bot.web.operators import settings_page

urlpatterns = [
    path("", include("tracker.urls")),
    path("api/v1/results", lab.take_results, name="take-results"),
    path("api/v1/files", lab.take_files, name="take-files"),
    path("api/v1/tool-output", lab.take_tool_output, name="take-tool-output"),
    path("api/v1/evidence", lab.take_tool_output, name="take-evidence"),  # as scripts of before 2.0 call it
    path("api/v1/jobs/claim", lab.claim, name="claim-job"),
    path("api/v1/jobs/<int:pk>/extend", lab.extend, name="extend-job"),
    path("api/v1/jobs/<int:pk>/release", lab.release, name="release-job"),
    path("api/v1/jobs/<int:pk>/result", lab.take_result, name="take-job-result"),
    path("operating/dismiss/", operators.dismiss_rejected, name="dismiss-rejected"),
    path("operating/policy/", operators.policy_page, name="policy"),
    path("operating/settings/", settings_page, name="settings"),
    path("outbox/<int:pk>/edit/", operators.edit, name="edit-mail"),
    path("lab/patch/<int:pk>", lab.requested_patch, name="requested-patch"),
    path("metrics", metrics, name="metrics"),
]

handler500 = "tracker.middleware.failed"
handler404 = "tracker.api.requests.not_found"
