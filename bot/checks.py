"""System checks: what the settings name must be there before anything starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from bot.config import compose_config, configured_transport, identity_without_keys, send_config


def settings_can_be_meant(**options: Any) -> list[CheckMessage]:
    """The mailmap, the keyring, the names of rules, the policy, the keys and the way out; asks no database."""
    try:
        identity_without_keys()
        compose_config()
        send_config()
        if settings.EMAIL_URL:
            configured_transport()
    except (ImproperlyConfigured, ValueError) as mistake:
        return [Error(str(mistake), id="perfwork.E001")]
    return []
