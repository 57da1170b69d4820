"""URLs of subscriptions by mail."""

from django.urls import path

from tracker.pages.subscriptions import views

urlpatterns = [
    path("subscriptions/", views.mine, name="subscriptions"),
    path("subscriptions/add/", views.subscribe, name="subscribe"),
    path("subscriptions/<int:pk>/end/", views.end, name="end-subscription"),
    path("unsubscribe/<str:token>/", views.unsubscribe, name="unsubscribe"),
]
