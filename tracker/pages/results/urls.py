"""URLs of bisect results."""

from django.urls import path

from tracker.pages.results import views

urlpatterns = [
    path("", views.results, name="results"),
    path("<int:pk>/", views.result, name="result"),
    path("<int:pk>.json", views.payload, name="result-payload"),
]
