"""A read-only ModelAdmin."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest


class ReadOnly(admin.ModelAdmin):
    """For records that never change, such as raw mail, results and events (DESIGN rules 1 and 2)."""

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the listed filters: a query on a hidden column would tell it letter by letter."""
        names = [each[0] if isinstance(each, tuple) else each for each in self.list_filter]
        return any(lookup == name or lookup.startswith(f"{name}__") for name in names)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
