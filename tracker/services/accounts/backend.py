"""An authentication backend that loads a user and their permissions in one query, since every page needs both."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db.models import F

from tracker.services.accounts.roles import granted


class Backend(ModelBackend):
    """Django's ModelBackend, with roles; `get_user` returns a user with their permissions loaded."""

    def get_user(self, user_id: Any) -> User | None:
        joined = User.objects.annotate(
            role=F("groups__name"),
            app=F("groups__permissions__content_type__app_label"),
            code=F("groups__permissions__codename"),
            own_app=F("user_permissions__content_type__app_label"),
            own_code=F("user_permissions__codename"),
        )
        rows = list(joined.filter(pk=user_id, is_active=True))
        if not rows:
            return None
        user = rows[0]
        user.granted = granted(rows)  # type: ignore[attr-defined]
        return user

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Return the permissions; a user that did not come from `get_user` takes a query."""
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        if not hasattr(user_obj, "granted"):
            found = self.get_user(user_obj.pk)
            user_obj.granted = found.granted if found else frozenset()  # type: ignore[attr-defined]
        return set(user_obj.granted)
