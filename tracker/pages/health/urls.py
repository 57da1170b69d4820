"""URLs of the probes."""

from django.urls import path

from tracker.pages.health import views

urlpatterns = [path("healthz", views.alive, name="alive"), path("readyz", views.ready, name="ready")]
