"""`people list|invite|role|revoke`: who may do what; the page /operating/people/ does the same."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from bot.management import data_error
from tracker.domain.events import InvalidInput
from tracker.services import accounts
from tracker.services.accounts import UserRole

MOST = 10_000


class Command(BaseCommand):
    help = "List people with an account, invite some, give them a role or shut them out."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list the accounts, those with a role first")
        invite = actions.add_parser("invite", help="make an account; a link to sign in is mailed to the address")
        invite.add_argument("address")
        invite.add_argument("--role", choices=[*map(str, UserRole)], default=str(UserRole.TRIAGER))
        role = actions.add_parser("role", help="give an account another role, or none")
        role.add_argument("name")
        role.add_argument("role", choices=[*map(str, UserRole), "none"])
        revoke = actions.add_parser("revoke", help="close an account and revoke its keys")
        revoke.add_argument("name")

    def handle(self, *, action: str, **options: Any) -> None:
        now = timezone.now()
        try:
            match action:
                case "list":
                    self._list()
                case "invite":
                    address = accounts.invite(options["address"], UserRole(options["role"])).email
                    mailed = accounts.request_link(address, "", now) is not None
                    then = "gets a link by mail from the next worker" if mailed else "can ask for a link at /sign-in/"
                    self.stdout.write(f"{address}: {options['role']}; {then}")
                case "role":
                    role = None if options["role"] == "none" else UserRole(options["role"])
                    accounts.give_role(options["name"], role)
                    self.stdout.write(f"{options['name']}: {options['role']}")
                case "revoke":
                    keys = accounts.shut_out(options["name"], now)
                    self.stdout.write(f"{options['name']}: revoked, with {keys} key{'s' * (keys != 1)}")
        except InvalidInput as mistake:
            raise data_error(str(mistake)) from None

    def _list(self) -> None:
        people = accounts.people(MOST)
        if not people:
            self.stdout.write("no accounts; `people invite ADDRESS --role operator` makes one")
        for person in people:
            seen = f"last signed in {person.last_seen:%Y-%m-%d %H:%M}" if person.last_seen else "never signed in"
            role = (person.role or "reader") if person.active else "closed"
            address = f" <{person.address}>" if person.address != person.name else ""
            self.stdout.write(f"{person.name}{address}: {role}, {seen}")
