"""Mailed links, to sign in and to confirm an opt-out: each is sent at most once and not stored."""

from datetime import datetime, timedelta

from django.template.loader import render_to_string
from django.urls import reverse

from bot.mail.message import for_header
from bot.mail.settings import BotSettings
from bot.outbox.sender import send_unstored
from bot.outbox.transports import SendStatus, Signing, Transport
from tracker.models import SignIn
from tracker.services import accounts, mail_transitions

AT_ONCE = 50
FRESH = timedelta(minutes=10)  # older requests are not mailed


def mail_links(transport: Transport, settings: BotSettings, now: datetime, signing: Signing | None = None) -> int:
    """Send the requested links that are not mailed yet. Return how many a server accepted."""
    if mail_transitions.stopped():
        return 0
    accepted = 0
    waiting = SignIn.objects.filter(mailed_at__isnull=True, used_at__isnull=True, asked_at__gt=now - FRESH)
    for link in waiting.order_by("pk")[:AT_ONCE]:
        if not SignIn.objects.filter(pk=link.pk, mailed_at__isnull=True).update(mailed_at=now):
            continue  # another worker has it
        if not (link.for_opt_out or accounts.is_known(link.address)):
            continue
        subject = f"{'No more mail from' if link.for_opt_out else 'Sign in to'} {for_header(settings.name, 60)}"
        own_id = f"link-{link.pk}-{link.asked_at:%Y%m%d%H%M%S}"
        status = send_unstored(own_id, link.address, subject, _text(link, settings), transport, settings, now, signing)
        accepted += status is SendStatus.SENT
        if status is SendStatus.NO_SERVER:
            SignIn.objects.filter(pk=link.pk).update(mailed_at=None)  # nothing was sent
            break
    return accepted


def _text(link: SignIn, settings: BotSettings) -> str:
    if link.for_opt_out:
        path = reverse("confirm-opt-out", args=[accounts.opt_out_token(link)])
        days = accounts.OPT_OUT_LINKS_GOOD_FOR.days
        context = {"bot": settings.name, "link": f"{settings.base_url}{path}", "days": days}
        return render_to_string("mail/opt_out.txt", context)
    path = reverse("sign-in-by-link", args=[accounts.sign_in_token(link)])
    minutes = int(accounts.GOOD_FOR.total_seconds() // 60)
    context = {"bot": settings.name, "link": f"{settings.base_url}{path}", "minutes": minutes}
    return render_to_string("mail/sign_in.txt", context)
