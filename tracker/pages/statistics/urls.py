"""URLs of the statistics."""

from django.urls import path

from tracker.pages.statistics import views

urlpatterns = [
    path("statistics/", views.statistics, name="statistics"),
    path("statistics.csv", views.statistics_csv, name="statistics-csv"),
]
