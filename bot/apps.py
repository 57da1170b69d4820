"""The bot as a Django app: it brings commands and tasks, and no models."""

from django.apps import AppConfig
from django.core import checks


class BotConfig(AppConfig):
    name = "bot"

    def ready(self) -> None:
        """Have the settings checked before any command runs."""
        from bot.checks import settings_can_be_meant

        checks.register(settings_can_be_meant)
