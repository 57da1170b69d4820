"""URLs that take data from outside."""

from django.urls import path

from bot.web import lab_jobs, results, tool_output

urlpatterns = [
    path("results", results.take_results, name="take-results"),
    path("evidence", tool_output.take_evidence, name="take-evidence"),
    path("jobs/claim", lab_jobs.claim, name="claim-job"),
    path("jobs/<int:pk>/extend", lab_jobs.extend, name="extend-job"),
    path("jobs/<int:pk>/release", lab_jobs.release, name="release-job"),
    path("jobs/<int:pk>/result", lab_jobs.take_result, name="take-job-result"),
]
