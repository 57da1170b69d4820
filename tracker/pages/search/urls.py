"""URLs of the search."""

from django.urls import path, re_path

from tracker.pages.search import views

urlpatterns = [
    path("search/", views.search, name="search"),
    re_path(r"^search/?\.(?P<form>json|csv|txt|md|atom|regzbot)$", views.search_as, name="search-as"),
    path("search/suggestions/", views.offered, name="search-suggestions"),
]
