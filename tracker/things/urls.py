"""Subsystems, machines, metrics and authors; names may hold slashes."""

from django.urls import re_path

from tracker.things import views
from tracker.things.queries import KINDS

_KIND = f"(?P<kind>{'|'.join(KINDS)})"

urlpatterns = [
    re_path(rf"^{_KIND}/$", views.things, name="things"),
    re_path(rf"^{_KIND}/(?P<name>.+)/$", views.thing, name="thing"),
]
