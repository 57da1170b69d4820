"""URL of the front page."""

from django.urls import path

from tracker.pages.home import views

urlpatterns = [path("", views.releases, name="releases")]
