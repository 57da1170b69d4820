"""URLs that take data from outside."""

from django.urls import path

from bot.web import results, tool_output

urlpatterns = [
    path("results", results.take_results, name="take-results"),
    path("evidence", tool_output.take_evidence, name="take-evidence"),
]
