"""URLs of the review queue."""

from django.urls import path

from tracker.pages.review import views

urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("<int:pk>/decide/", views.decide, name="decide"),
    path("decide/", views.decide_many, name="decide-many"),
    path("<int:pk>/undo/", views.undo, name="undo-decision"),
    path("undo/", views.undo_last, name="undo-decisions"),
]
