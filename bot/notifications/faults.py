"""Mail to operators about what does not work: at most one a day for each, and none if all is well.

It does not go through the outbox, which may be what stalls.
"""

from __future__ import annotations

import hashlib
import logging
import textwrap
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse

from bot.compose.mail import POLICY
from bot.mail.message import for_header, one_line
from bot.mail.settings import BotSettings
from bot.outbox.transports import Envelope, SendStatus, Signing, Transport
from tracker.domain.text import counted
from tracker.models import FaultMail
from tracker.services import mail_transitions
from tracker.services.accounts import SEND
from tracker.services.faults import Fault, faults

MOST = 50  # operators, and problems in a mail
KEPT = timedelta(days=90)
_UNSENT = frozenset({SendStatus.NO_SERVER, SendStatus.LATER, SendStatus.NOT_NOW})
log = logging.getLogger(__name__)


def mail_operators(transport: Transport, settings: BotSettings, now: datetime, signing: Signing | None = None) -> int:
    """Send today's mail to each operator who has not got it. Return how many a server accepted.

    It does not go through the outbox, which may be what stalls. A mail is noted before it is sent: whoever got none
    because of a crash gets one tomorrow. If all sending is stopped, it waits, too.
    """
    if mail_transitions.stopped():
        return 0
    FaultMail.objects.filter(at__lt=now - KEPT).delete()
    problems = faults(now)
    accepted = 0
    for address in operators() if problems else ():
        note, is_new = FaultMail.objects.get_or_create(address=address, day=now.date(), defaults={"at": now})
        if not is_new:
            continue
        status = _send(address, problems, transport, settings, now, signing)
        accepted += status is SendStatus.SENT
        if status in _UNSENT:
            note.delete()  # nothing was sent: again in an hour
        if status in (SendStatus.NO_SERVER, SendStatus.NOT_NOW):
            break
    return accepted


def _send(
    address: str,
    problems: list[Fault],
    transport: Transport,
    settings: BotSettings,
    now: datetime,
    signing: Signing | None,
) -> SendStatus:
    try:
        raw = compose(address, problems, settings, now)
    except ValueError as error:  # an address that is invalid in a header
        log.error("no mail to operator %r: %s", address, error)
        return SendStatus.REFUSED
    signed = signing.sign(raw) if signing else raw
    envelope = Envelope(_id(address, settings, now), settings.address, [address], signed)
    outcome = transport.send(envelope, lambda: not mail_transitions.stopped())
    if outcome.status is not SendStatus.SENT:
        log.warning("the mail about problems was not sent: %s", outcome.reply)
    return outcome.status


def operators() -> list[str]:
    """Return the addresses of the accounts that may send mail."""
    users = User.objects.with_perm(SEND, backend="django.contrib.auth.backends.ModelBackend")
    return sorted({user.email for user in users.exclude(email="")})[:MOST]


def compose(address: str, problems: list[Fault], settings: BotSettings, now: datetime) -> bytes:
    """Return the mail's bytes. Raises ValueError for an address that is invalid in a header."""
    message = EmailMessage(policy=POLICY)
    message["Message-ID"] = f"<{_id(address, settings, now)}>"
    message["Date"] = format_datetime(now.replace(microsecond=0))
    message["From"] = f"{for_header(settings.name, 60)} <{settings.address}>"
    message["To"] = address
    message["Subject"] = f"{for_header(settings.name, 60)}: {counted(len(problems), 'problem')}"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_text(problems, settings), charset="utf-8", cte="8bit")
    return message.as_bytes()


def _text(faults: list[Fault], settings: BotSettings) -> str:
    context = {
        "faults": [_lines(fault) for fault in faults[:MOST]],
        "more": max(0, len(faults) - MOST),
        "site": f"{settings.base_url}{reverse('releases')}",
        "help": f"{settings.base_url}{reverse('help', args=['operating'])}#problems",
        "bot": settings.name,
    }
    return render_to_string("mail/faults.txt", context)


def _lines(fault: Fault) -> str:
    """Return a fault as a paragraph of 78 columns: errors quote servers and git, so control characters are dropped."""
    since = f" since {fault.since:%Y-%m-%d %H:%M} UTC" if fault.since else ""
    text = one_line(f"{fault.name}{since}: {fault.error}", 1000)
    return textwrap.fill(text, 78, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _id(address: str, settings: BotSettings, now: datetime) -> str:
    """Return the Message-ID of today's mail: the same if it is composed again."""
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    return f"problems-{now:%Y%m%d}-{key}@{settings.address.partition('@')[2]}"
