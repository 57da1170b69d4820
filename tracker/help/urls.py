"""The pages of help."""

from django.urls import path

from tracker.help import views

urlpatterns = [path("<slug:name>/", views.page, name="help")]
