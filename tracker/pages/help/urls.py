"""URLs of the documentation."""

from django.urls import path

from tracker.pages.help import views

urlpatterns = [
    path("", views.page, name="help-index"),
    path("<slug:name>/", lambda request, name: views.page(request, f"{name}/"), name="help"),
    path("<path:name>", views.page, name="help-file"),
]
