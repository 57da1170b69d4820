"""URLs of the review queue."""

from django.urls import path

from tracker.pages.review import views

urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("<int:pk>/decide/", views.decide, name="decide"),
    path("<int:pk>/undo/", views.undo, name="undo-decision"),
]
