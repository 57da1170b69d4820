"""System checks of the settings that refer to files, keys, rules and URLs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured


def check_settings(**options: Any) -> list[CheckMessage]:
    """Check the mailmap, keyring, rule names, policy, keys and transport, without using the database."""
    # Imported here: a command that needs none of it starts in half the time.
    from bot.config import compose_config, configured_transport, identity_without_keys, send_config

    try:
        identity_without_keys()
        compose_config()
        send_config()
        if settings.EMAIL_URL:
            configured_transport()
    except (ImproperlyConfigured, ValueError) as error:
        return [Error(str(error), id="perfwork.E001")]
    return []
