"""`/api/v1/`: what may be read there."""

from django.urls import path

from tracker.api import results

urlpatterns = [path("results/<int:pk>", results.result, name="api-result")]
