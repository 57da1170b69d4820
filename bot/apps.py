"""The bot as a Django app: commands and tasks, no models, and the check of its settings (bot/checks.py)."""

from django.apps import AppConfig
from django.core import checks


class BotConfig(AppConfig):
    name = "bot"

    def ready(self) -> None:
        """Have the settings checked before any command runs."""
        from bot.checks import check_settings, check_signatures

        checks.register(check_signatures, checks.Tags.database)
        checks.register(check_settings, "perfwork")  # the tag that our commands wait for
