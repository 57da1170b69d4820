"""People with an account and a role."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User


def person(role: str, name: str, email: str = "", password: str | None = None, **fields: Any) -> User:
    """Make an account with a role: triager or operator."""
    user = User.objects.create_user(name, email, password, **fields)
    user.groups.add(Group.objects.get(name=role))
    return user
