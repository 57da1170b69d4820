"""The bot as a Django app: it brings the commands and the tasks, and no tables."""

from django.apps import AppConfig


class BotConfig(AppConfig):
    name = "bot"
