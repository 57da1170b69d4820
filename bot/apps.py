"""The bot as a Django app: it brings commands and tasks, and no models."""

from django.apps import AppConfig
from django.core import checks


class BotConfig(AppConfig):
    name = "bot"

    def ready(self) -> None:
        """Have the settings checked before any command runs, and tasks enqueued with our queues, by pages too."""
        from bot import celery
        from bot.checks import check_settings

        celery.app.set_default()

        checks.register(check_settings, "perfwork")  # the tag that our commands wait for
