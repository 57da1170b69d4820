"""URLs of curves and their changes."""

from django.urls import path, re_path

from tracker.pages.measurements import views

urlpatterns = [
    path("curve/<int:pk>/", views.curve, name="curve"),
    path("curves/", views.curves, name="curves"),
    path("changes/", views.changes, name="changes"),
    re_path(r"^changes/(?P<pk>\d{1,18})/bisect\.(?P<form>json|sh)$", views.bisect, name="bisect-request"),
]
