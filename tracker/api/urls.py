"""URLs of `/api/v1/` for reading."""

from django.urls import path

from tracker.api import kernels, results, triage
from tracker.api.tables import api

urlpatterns = [
    path("results/<int:pk>", results.result, name="api-result"),
    path("kernels/<path:handle>", kernels.kernel, name="api-kernel"),
    path("reports/<str:culprit>/actions", triage.act, name="act-on-report"),
    path("suggestions/<int:pk>/decision", triage.decide, name="decide-suggestion"),
    path("", api.urls),
]
