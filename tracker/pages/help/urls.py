"""URLs of the help pages."""

from django.urls import path

from tracker.pages.help import views

urlpatterns = [path("", views.index, name="help-index"), path("<slug:name>/", views.page, name="help")]
