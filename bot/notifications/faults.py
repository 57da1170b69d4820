"""Mail to operators about what does not work: at most one a day for each, and none if all is well.

It does not go through the outbox, which may be what stalls. What stays broken is said again each day; that no runner
takes a job of the lab, only on the first.
"""

import hashlib
import textwrap
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Max
from django.template.loader import render_to_string
from django.urls import reverse

from bot.mail.message import for_header, one_line
from bot.mail.settings import BotSettings
from bot.outbox.sender import send_unstored
from bot.outbox.transports import SendStatus, Signing, Transport
from tracker.domain.text import counted
from tracker.models import FaultMail
from tracker.services import mail_transitions
from tracker.services.accounts import SEND
from tracker.services.faults import Fault, FaultKind, faults

MOST = 50  # operators, and problems in a mail
KEPT = timedelta(days=90)
_UNSENT = frozenset({SendStatus.NO_SERVER, SendStatus.LATER, SendStatus.NOT_NOW})


def mail_operators(transport: Transport, settings: BotSettings, now: datetime, signing: Signing | None = None) -> int:
    """Send today's mail to each operator who has not got it. Return how many a server accepted.

    A mail is noted before it is sent: whoever got none because of a crash gets one tomorrow. If all sending is
    stopped, it waits, too.
    """
    if mail_transitions.stopped():
        return 0
    FaultMail.objects.filter(at__lt=now - KEPT).delete()
    problems = faults(now)
    if not problems:
        return 0
    name = for_header(settings.name, 60)
    told = FaultMail.objects.filter(day__lt=now.date()).values_list("address")
    last_told = dict(told.annotate(last=Max("at")))
    users = User.objects.with_perm(SEND, backend="django.contrib.auth.backends.ModelBackend").exclude(email="")
    accepted = 0
    for address in sorted({user.email for user in users})[:MOST]:
        untold = [fault for fault in problems if not _is_old_news(fault, last_told.get(address))]
        if not untold:
            continue
        note, is_new = FaultMail.objects.get_or_create(address=address, day=now.date(), defaults={"at": now})
        if not is_new:
            continue
        # Today's mail has the same Message-ID if it is composed again.
        own_id = f"problems-{now:%Y%m%d}-{hashlib.sha256(address.encode()).hexdigest()[:16]}"
        subject = f"{name}: {counted(len(untold), 'problem')}"
        status = send_unstored(own_id, address, subject, _text(untold, settings), transport, settings, now, signing)
        accepted += status is SendStatus.SENT
        if status in _UNSENT:
            note.delete()  # nothing was sent: again in an hour
        if status in (SendStatus.NO_SERVER, SendStatus.NOT_NOW):
            break
    return accepted


def _is_old_news(fault: Fault, last_told: datetime | None) -> bool:
    """Whether a problem that is said once was there when somebody got their last mail."""
    said_once = fault.kind is FaultKind.JOB and fault.since is not None
    return bool(said_once and last_told and fault.since and fault.since <= last_told)


def _text(faults: list[Fault], settings: BotSettings) -> str:
    paragraphs = []
    for fault in faults[:MOST]:
        since = f" since {fault.since:%Y-%m-%d %H:%M} UTC" if fault.since else ""
        # Errors quote servers and git, so that control characters are dropped.
        text = one_line(f"{fault.name}{since}: {fault.error}", 1000)
        paragraphs.append(textwrap.fill(text, 78, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
    context = {
        "faults": paragraphs,
        "more": max(0, len(faults) - MOST),
        "site": f"{settings.base_url}{reverse('releases')}",
        "help": f"{settings.base_url}{reverse('help', args=['operating'])}#problems",
        "bot": settings.name,
    }
    return render_to_string("mail/faults.txt", context)
