"""`erase ADDRESS`: erase a person's data on their request."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.core.validators import validate_email
from django.utils import timezone

from bot.config import bot_identity
from bot.management import data_error, usage_error
from bot.operations import erase
from tracker.domain.text import counted


class Command(BaseCommand):
    help = "Erase what a person wrote, and their account. What their mail did to reports stays, and they get no mail."
    requires_system_checks = []  # it uses the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("address")
        parser.add_argument("--yes", action="store_true", help="do it: only a backup can undo it")

    def handle(self, *, address: str, yes: bool, **options: Any) -> None:
        try:
            validate_email(address)
        except ValidationError:
            raise usage_error(f"expected a bare address such as dana@dev.example, found {address[:80]!r}") from None
        bot = bot_identity()
        if address.lower() in {bot.address, bot.list_address, bot.lkml, *bot.lists}:
            raise data_error(f"{address} is the bot's or a list's, not a person's")
        if not yes:
            raise usage_error("this can't be undone: add --yes")
        erased = erase(address, timezone.now())
        mails, accounts = counted(erased.mails, "mail"), counted(erased.accounts, "account")
        self.stdout.write(f"{address}: {mails} emptied, {accounts} closed; no mail is sent there any more")
        if not (erased.mails or erased.accounts):
            self.stdout.write("nothing of theirs was here: is the address right? To undo it: /admin/, Correspondents")
