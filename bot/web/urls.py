"""The addresses that take something in."""

from django.urls import path

from bot.web import results

urlpatterns = [path("results", results.take_results, name="take-results")]
