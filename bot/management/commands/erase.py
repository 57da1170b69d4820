"""`erase ADDRESS`: erase a person's data on their request."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from bot.operations import erase
from tracker.domain.text import counted


class Command(BaseCommand):
    help = "Erase what a person wrote, and their account. What their mail did to reports stays, and they get no mail."
    requires_system_checks = []  # it uses the database only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("address")
        parser.add_argument("--yes", action="store_true", help="do it: only a backup can undo it")

    def handle(self, *, address: str, yes: bool, **options: Any) -> None:
        if "@" not in address:
            raise CommandError(
                f"expected an address such as dana@dev.example, found {address!r}", returncode=os.EX_USAGE
            )
        if not yes:
            raise CommandError("this can't be undone: add --yes", returncode=os.EX_USAGE)
        erased = erase(address, timezone.now())
        mails, accounts = counted(erased.mails, "mail"), counted(erased.accounts, "account")
        self.stdout.write(f"{address}: {mails} emptied, {accounts} closed; no mail is sent there any more")
