"""URL of the search."""

from django.urls import path

from tracker.pages.search import views

urlpatterns = [path("search/", views.search, name="search")]
