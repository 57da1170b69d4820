"""`apikey create|list|revoke`: the keys of programs that send results and files over the network."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.management import no_input, usage_error
from tracker.domain.events import InvalidInput
from tracker.models import ApiKey
from tracker.services import accounts
from tracker.services.accounts import Scope


class Command(BaseCommand):
    help = "Create, list and revoke the API keys of programs."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="create a key; its token is printed once")
        create.add_argument("name")
        create.add_argument("--producer", default="", help="the producer.name of its results; * for any")
        create.add_argument("--user", default="", help="whom it acts for, with the scope triage")
        create.add_argument("--days", type=int, default=0, help="days until it expires; default: never")
        create.add_argument("--scope", action="append", choices=[*map(str, Scope)], help="default: results")
        actions.add_parser("list", help="list the keys, without tokens")
        actions.add_parser("revoke", help="revoke a key").add_argument("name")

    def handle(self, *, action: str, **options: Any) -> None:
        match action:
            case "create":
                self._create(**options)
            case "list":
                self._list()
            case "revoke":
                if not accounts.revoke(options["name"], timezone.now()):
                    raise no_input(f"no valid key is named {options['name']!r}; `apikey list` lists them")
                self.stdout.write(f"{options['name']}: revoked")

    def _create(self, name: str, producer: str, user: str, days: int, scope: list[str] | None, **options: Any) -> None:
        scopes = [Scope(value) for value in scope or ["results"]]
        person = User.objects.filter(username=user).first() if user else None
        if user and person is None:
            raise no_input(f"no user is named {user!r}; the admin lists them")
        now = timezone.now()
        try:
            ends = accounts.key_ends(days, now)
        except InvalidInput as error:
            raise usage_error(f"--{error}") from None
        try:
            _, token = accounts.create_api_key(name, scopes, producer, now, person, ends)
        except InvalidInput as error:
            raise usage_error(str(error)) from None
        self.stderr.write("This token is shown once, and stored only as a hash:")
        self.stdout.write(token)

    def _list(self) -> None:
        keys = list(ApiKey.objects.select_related("acts_for"))
        if not keys:
            self.stdout.write("no keys; `apikey create NAME --producer …` makes one")
        for key in keys:
            used = f"last used {key.used_at:%Y-%m-%d %H:%M}" if key.used_at else "never used"
            used += f", expires {key.expires_at:%Y-%m-%d}" if key.expires_at else ""
            state = f"revoked {key.revoked_at:%Y-%m-%d}" if key.revoked_at else used
            producer = f" as {key.producer}" if key.producer else ""
            producer += f" for {key.acts_for}" if key.acts_for else ""
            self.stdout.write(f"{key.name}: {key.beginning}…, {', '.join(key.scopes)}{producer}, {state}")
