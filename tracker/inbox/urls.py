"""The inbox."""

from django.urls import path

from tracker.inbox import views

urlpatterns = [path("", views.inbox, name="inbox")]
