"""The bot as a Django app: commands and tasks, no models, and the check of its settings.

The system check covers the settings that refer to files, keys, rules and URLs.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
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


class BotConfig(AppConfig):
    name = "bot"

    def ready(self) -> None:
        """Have the settings checked before any command runs."""

        checks.register(check_settings, "perfwork")  # the tag that our commands wait for
