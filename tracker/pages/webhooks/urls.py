"""URLs of webhooks."""

from django.urls import path

from tracker.pages.webhooks import views

urlpatterns = [
    path("webhooks/", views.mine, name="webhooks"),
    path("webhooks/add/", views.add, name="add-webhook"),
    path("webhooks/<int:pk>/", views.webhook, name="webhook"),
    path("webhooks/<int:pk>/change/", views.change, name="change-webhook"),
]
