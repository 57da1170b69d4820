"""The front page."""

from django.urls import path

from tracker.releases import views

urlpatterns = [path("", views.releases, name="releases")]
