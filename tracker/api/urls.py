"""URLs of `/api/v1/` for reading."""

from django.urls import path

from tracker.api import kernels, results
from tracker.api.tables import api

urlpatterns = [
    path("results/<int:pk>", results.result, name="api-result"),
    path("kernels/<path:handle>", kernels.kernel, name="api-kernel"),
    path("", api.urls),
]
