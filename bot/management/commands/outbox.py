"""`outbox list·show·approve·send·hold·go·cancel`: manage outgoing mail.

`hold` without ids stops all sending at once, and `go` resumes it; `send` with ids also resends failed or in-doubt
mails. Whoever runs the command is recorded with the reason. Before mails are approved or sent, waiting mail that
newer events have made outdated is recomposed or cancelled; a mail that the person can't have seen as it is now is not
approved.
"""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from email import message_from_bytes, policy
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError
from django.utils import timezone

from bot.config import bot_identity, compose_config, configured_transport, send_config
from bot.mail.addresses import Address
from bot.management import config_error, data_error, no_input, try_again, user_at_terminal
from bot.notifications import report
from bot.notifications.follow_ups import compose_follow_ups
from bot.outbox.sender import send_due
from bot.outbox.transports import SendStatus
from tracker.domain.text import counted
from tracker.models import BisectResult, OutgoingMail, OutgoingState
from tracker.models.mail import WAITING
from tracker.services import mail_transitions

ALL_DAY = 86_400.0


class Command(BaseCommand):
    help = "Manage outgoing mail: list, show, approve, hold or cancel mails, and send those approved and due."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        subparsers = parser.add_subparsers(
            dest="action", required=True, metavar="list|show|approve|send|hold|go|cancel"
        )
        listing = subparsers.add_parser("list", help="list mails, newest first")
        listing.add_argument("--state", choices=OutgoingState.values)
        show = subparsers.add_parser("show", help="show one mail as its recipients see it")
        show.add_argument("id")
        show.add_argument("--raw", action="store_true", help="print the raw mail")
        for action, what in (("approve", "approve mails for sending"), ("cancel", "cancel mails: never send them")):
            subparser = subparsers.add_parser(action, help=what)
            subparser.add_argument("ids", nargs="+", metavar="id", help="a mail's number, or all")
            subparser.add_argument("--reason", default="", help="the reason, for the record")
        hold = subparsers.add_parser("hold", help="hold mails; without ids: stop all sending at once")
        hold.add_argument("ids", nargs="*", metavar="id", help="a mail's number, or all")
        hold.add_argument("--reason", default="", help="the reason, for the record")
        subparsers.add_parser("go", help="resume after all sending was stopped")
        send = subparsers.add_parser(
            "send", help="send mails that are approved and due; with ids: also resend these failed or in-doubt mails"
        )
        send.add_argument("ids", nargs="*", metavar="id")

    def handle(self, *, action: str, **options: Any) -> None:
        getattr(self, f"_{action}")(options)

    def _list(self, options: dict[str, Any]) -> None:
        rows = OutgoingMail.objects.order_by("-pk").defer("raw")
        if options["state"]:
            rows = rows.filter(state=options["state"])
        shown = list(rows[:500])
        for row in shown:
            why = f"  ({row.reason})" if row.reason else ""
            self.stdout.write(f"{row.pk:5}  {row.state:9}  {row.composed_at:%Y-%m-%d %H:%M}  {row.subject}{why}")
        if not shown:
            self.stdout.write("no mails")
        held = BisectResult.objects.exclude(held="").exclude(report=None).filter(report__reported_at=None).count()
        if held and not options["state"]:
            self.stdout.write(f"{counted(held, 'result')} held until an operator has looked: /results/?held=1")

    def _show(self, options: dict[str, Any]) -> None:
        row = self._one(options["id"])
        raw = bytes(row.raw)
        if options["raw"]:
            self.stdout.write(raw.decode("utf-8", "replace"), ending="")
            return
        message = message_from_bytes(raw, policy=policy.default)
        for name, value in message.items():
            if name not in ("Content-Type", "Content-Transfer-Encoding", "MIME-Version"):
                self.stdout.write(f"{name}: {value}")
        body = message.get_body()
        self.stdout.write("\n" + (body.get_content() if body else ""), ending="")
        if row.reason:
            self.stdout.write(f"\n{row.state}: {row.reason}")
        if record := list(row.transitions.all()):
            self.stdout.write("\nHistory:")
        for transition in record:
            reason = f": {transition.words}" if transition.words else ""
            self.stdout.write(f"{transition.at:%Y-%m-%d %H:%M:%S}  {transition.became:9}  by {transition.by}{reason}")
        if row.people:
            self.stdout.write("\nRecipients:")
        for email, name, header, why in row.people:
            self.stdout.write(f"{header or 'out':<6}{Address(name, email)}  {why}")

    def _approve(self, options: dict[str, Any]) -> None:
        seen = dict(OutgoingMail.objects.filter(state__in=WAITING).values_list("pk", "composed_at"))
        self._refresh()
        self._apply("approve", options, seen)

    def _hold(self, options: dict[str, Any]) -> None:
        if options["ids"]:
            self._apply("hold", options)
        elif mail_transitions.stop_sending(user_at_terminal(), timezone.now(), options["reason"]):
            self.stdout.write("all sending is stopped; `outbox go` resumes it")
        else:
            stop = mail_transitions.stopped()
            lost = "; the reason given now is not kept" if options["reason"] else ""
            self.stdout.write(
                f"all sending was already {stop}{f', {stop.reason!r}' if stop and stop.reason else ''}{lost}"
            )

    def _go(self, options: dict[str, Any]) -> None:
        if not mail_transitions.resume_sending(user_at_terminal(), timezone.now()):
            stop = mail_transitions.stopped()
            raise try_again(f"sending stays stopped: {stop.reason}" if stop else "sending is not stopped")
        self.stdout.write("sending resumed")

    def _cancel(self, options: dict[str, Any]) -> None:
        self._apply("cancel", options)

    def _send(self, options: dict[str, Any]) -> None:
        if options["ids"]:
            self._apply("resend", {**options, "reason": ""})
        if not settings.PERFWORK_SENDING:
            raise config_error("PERFWORK_SENDING is off: mail stays in the outbox")
        try:
            transport = configured_transport()
        except ValueError as invalid:
            raise config_error(str(invalid)) from None
        if stop := mail_transitions.stopped():
            raise try_again(f"all sending was {stop} on {stop.at:%Y-%m-%d %H:%M}: `outbox go` resumes it")
        self._refresh()
        try:
            statuses = send_due(transport, send_config(run=ALL_DAY))
        except DatabaseError as error:
            raise try_again(f"sending stopped: an outcome could not be recorded: {error}") from None
        self.stdout.write(", ".join(f"{count} {status}" for status, count in statuses.items()) or "nothing is due")
        if set(statuses) - {SendStatus.SENT}:
            raise try_again("not all were sent; `outbox list` says why")

    def _refresh(self) -> None:
        """Recompose or cancel waiting mail that newer events have made outdated."""
        approve_first, now = settings.PERFWORK_APPROVE_FIRST, timezone.now()
        report.refresh_unsent(bot_identity(), now, approve_first=approve_first, config=compose_config())
        compose_follow_ups(bot_identity(), now, approve_first=approve_first, config=compose_config())

    def _apply(self, action: str, options: dict[str, Any], seen: Mapping[int, datetime] | None = None) -> None:
        """Carry out an action. `seen`: when each mail was composed that the person may have looked at."""
        ids, within = options["ids"], mail_transitions.ACTIONS[action][1]
        if ids == ["all"]:
            ids = [str(pk) for pk in OutgoingMail.objects.filter(state__in=within).values_list("pk", flat=True)]
        seen, stuck, new = seen or {}, [], []
        for number in ids:
            pk, reason = self._one(number).pk, options["reason"]
            if not mail_transitions.apply_action(pk, action, user_at_terminal(), timezone.now(), reason, seen.get(pk)):
                stuck.append(number)
        self.stdout.write(f"{action}: {counted(len(ids) - len(stuck), 'mail')}")
        for number in stuck:
            mail = self._one(number)
            if mail.state in WAITING and mail.composed_at != seen.get(mail.pk, mail.composed_at):
                new.append(number)
        if new:
            raise try_again(f"{', '.join(new)}: recomposed, since more is known now: `outbox show`, then approve")
        if stuck:
            raise data_error(f"{', '.join(stuck)}: can't {action}: must be {' or '.join(sorted(within))}")

    def _one(self, pk: str) -> OutgoingMail:
        row = OutgoingMail.objects.filter(pk=int(pk)).first() if pk.isdecimal() else None
        if row is None:
            raise no_input(f"{pk}: no such mail; see `outbox list`")
        return row
