"""URL of the escalations."""

from django.urls import path

from tracker.pages.escalations import views

urlpatterns = [path("escalations/", views.escalations, name="escalations")]
