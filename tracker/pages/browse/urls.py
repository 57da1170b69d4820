"""URLs of subsystems, machines, metrics and authors; names may contain slashes."""

from django.urls import re_path

from tracker.pages.browse import views
from tracker.pages.browse.queries import KINDS

_KIND = f"(?P<kind>{'|'.join(KINDS)})"

urlpatterns = [
    re_path(rf"^{_KIND}/$", views.catalog, name="things"),
    re_path(
        rf"^{_KIND}/(?P<name>.+)/\.(?P<form>json|csv|txt|md|atom|regzbot)$", views.catalog_page_as, name="thing-as"
    ),
    re_path(rf"^{_KIND}/(?P<name>.+)/$", views.catalog_page, name="thing"),
]
