"""The addresses that take something in."""

from django.urls import path

from bot.web import evidence, results

urlpatterns = [
    path("results", results.take_results, name="take-results"),
    path("evidence", evidence.take_evidence, name="take-evidence"),
]
