"""`check`: Django's, and with `--connect` also whether the servers answer that the settings name."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.commands import check

from bot.checks import check_connections
from bot.management import config_error, unavailable
from tracker.domain.text import counted


class Command(check.Command):
    help = "Check the settings; with --connect also whether database, broker, mail server and archives answer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)  # type: ignore[arg-type]
        connect = "also connect to every server that the settings name"
        parser.add_argument("--connect", action="store_true", help=connect)

    def handle(self, *labels: Any, **options: Any) -> None:
        super().handle(*labels, **options)
        if not options["connect"]:
            return
        try:
            messages = check_connections()
        except ImproperlyConfigured as error:
            raise config_error(str(error)) from None
        for message in messages:
            self.stderr.write(str(message.msg))
        if messages:
            raise unavailable(f"{counted(len(messages), 'problem')}, see above")
        self.stdout.write("All servers answer.")
