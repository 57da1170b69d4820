"""URLs of the lab's work list and its jobs."""

from django.urls import path

from tracker.pages.lab import views

urlpatterns = [
    path("lab/", views.lab, name="lab"),
    path("lab/job/<int:pk>/", views.job, name="lab-job"),
]
