"""The root of all URLs: the tracker's pages, and where data comes in from outside."""

from django.urls import include, path

import bot.celery  # noqa: F401  # the pages enqueue tasks through Celery's current app
from bot.web import lab_jobs, outbox, policy, results
from bot.web.metrics import metrics
from bot.web.policy import settings_page

urlpatterns = [
    path("", include("tracker.urls")),
    path("api/v1/results", results.take_results, name="take-results"),
    path("api/v1/files", results.take_files, name="take-files"),
    path("api/v1/tool-output", results.take_tool_output, name="take-tool-output"),
    path("api/v1/evidence", results.take_tool_output, name="take-evidence"),  # as scripts of before 2.0 call it
    path("api/v1/jobs/claim", lab_jobs.claim, name="claim-job"),
    path("api/v1/jobs/<int:pk>/extend", lab_jobs.extend, name="extend-job"),
    path("api/v1/jobs/<int:pk>/release", lab_jobs.release, name="release-job"),
    path("api/v1/jobs/<int:pk>/result", lab_jobs.take_result, name="take-job-result"),
    path("operating/dismiss/", results.dismiss_rejected, name="dismiss-rejected"),
    path("operating/policy/", policy.policy_page, name="policy"),
    path("operating/settings/", settings_page, name="settings"),
    path("outbox/<int:pk>/edit/", outbox.edit, name="edit-mail"),
    path("lab/patch/<int:pk>", lab_jobs.requested_patch, name="requested-patch"),
    path("metrics", metrics, name="metrics"),
]

handler500 = "tracker.middleware.failed"
handler404 = "tracker.api.requests.not_found"
