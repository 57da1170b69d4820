"""System checks: what the settings name must be there before anything starts."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from bot.config import house, identity_without_keys


def settings_can_be_meant(**options: Any) -> list[CheckMessage]:
    """The mailmap, the keyring, the names of rules and the policy; asks no database."""
    try:
        identity_without_keys()
        house()
    except ImproperlyConfigured as mistake:
        return [Error(str(mistake), id="perfwork.E001")]
    return []
