"""URLs of profiles and counters."""

from django.urls import path

from tracker.pages.tool_output import views

urlpatterns = [
    path("evidence/beside/", views.beside, name="evidence-beside"),
    path("evidence/<int:pk>/", views.evidence, name="evidence"),
    path("evidence/<int:pk>/raw/", views.raw, name="evidence-raw"),
]
