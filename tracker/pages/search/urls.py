"""URLs of the search."""

from django.urls import path

from tracker.pages.search import views

urlpatterns = [
    path("search/", views.search, name="search"),
    path("search/suggestions/", views.offered, name="search-suggestions"),
]
