"""URL of the lab's work list."""

from django.urls import path

from tracker.pages.lab import views

urlpatterns = [path("lab/", views.lab, name="lab")]
