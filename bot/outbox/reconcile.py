"""Learn from people's mail whether they want ours: opt-outs, opt-ins, and addresses that work again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from bot.mail.auth.verdict import AuthVerdict
from bot.mail.identity import BotIdentity
from bot.replies.opt_out import MailWish, wish_of
from bot.replies.reading import Reading
from tracker.models import Correspondent, FailureSource, Mailing, OutgoingMail
from tracker.services import mail_transitions
from tracker.services.accounts import opt_out_links
from tracker.services.accounts.addresses import is_of_a_person
from tracker.services.outgoing import delivery_failures

UNPROVEN = "not proven"
LATELY = 1000  # mails
FRESH = timedelta(days=3)  # nobody is asked about older mail


def process_wish(reading: Reading, identity: BotIdentity, now: datetime) -> None:
    """Process a person's mail. An opt-out or opt-in takes effect at once if its sender is proven (DESIGN rule 8). An
    unproven opt-out is confirmed by a link that is mailed to the address, if it is recent.
    """
    author, at = reading.mail.author.email.lower(), min(reading.mail.date or now, now)
    wish = wish_of(reading, identity) if reading.trust.verdict is not AuthVerdict.FAIL else None
    if wish and _is_list(author, identity):  # a list can't opt in or out
        return
    if wish is None:
        delivery_failures.clear_bounce(author, at)
        return
    proven = reading.trust.proven and _is_wished_in_every_reading(wish, reading, identity)
    if wish is MailWish.COME_BACK and not (proven or identity.trust_policy == "open"):
        rows = Correspondent.objects.filter(address=author, since__lt=at)
        rows.filter(Q(mailing=Mailing.BOUNCING) | Q(mailing=Mailing.OPTED_OUT, note__endswith=UNPROVEN)).delete()
        return
    if wish is MailWish.LEAVE and not (proven or identity.trust_policy == "open"):
        if now - at < FRESH and is_of_a_person(author) and _got_mail_lately(author):
            opt_out_links.request_link(author, now)
        return
    proof = f"proven by {reading.trust.by}" if proven else UNPROVEN
    mailing = Mailing.OPTED_OUT if wish is MailWish.LEAVE else Mailing.OPTED_IN
    values = {"mailing": mailing, "note": f"<{reading.mail.message_id}>, {proof}"[:500], "since": at}
    row, new = Correspondent.objects.get_or_create(address=author, defaults=values)
    if not new:  # an older mail that is read late changes nothing, and an operator's stop is final
        older = Correspondent.objects.filter(pk=row.pk, since__lt=at).exclude(mailing=Mailing.STOPPED)
        older.exclude(mailing=mailing).update(**values)


def _is_wished_in_every_reading(wish: MailWish, reading: Reading, identity: BotIdentity) -> bool:
    """Return whether nobody can have made this wish of a signed mail by changing how its body is read."""
    return reading.others is not None and all(wish_of(each, identity) is wish for each in reading.others)


def _is_list(address: str, identity: BotIdentity) -> bool:
    """Return whether an address is one of our own lists, or a list that got our mail lately."""
    if address in (identity.list_address, *identity.lists):
        return True
    recent = OutgoingMail.objects.order_by("-pk").values_list("lists", flat=True)[:LATELY]
    return any(address in lists for lists in recent)


def _got_mail_lately(address: str) -> bool:
    """Return whether an address got mail of ours lately: nobody else is asked, whoever writes in their name."""
    recent = OutgoingMail.objects.filter(attempts__gt=0).order_by("-pk").values_list("recipients", flat=True)[:LATELY]
    return any(address == each.lower() for recipients in recent for each in recipients)


def process_bounce(reading: Reading, identity: BotIdentity, now: datetime) -> bool:
    """Process a bounce: mark the mail as sent and record the failed recipients. Return whether it is about our mail.

    The mail is identified only by its secret return path; everything else in a mail is public and can be forged.
    """
    addressed = [each.email for each in (*reading.mail.recipients, *reading.mail.delivered_to)]
    paths = [each for each in addressed if identity.mark_in(each)]
    for mail in OutgoingMail.objects.filter(sender__in=paths, attempts__gt=0).order_by("pk")[:1]:
        at = min(reading.mail.date or now, now)
        mail_transitions.mark_sent(
            mail.message_id, at, now, by="bounce", note=f"bounced with <{reading.mail.message_id}>"
        )
        ours = {each.lower() for each in mail.recipients}
        failed = {each: reply for each, reply in reading.bounce.failed.items() if each in ours}
        delivery_failures.record(mail, failed, FailureSource.BOUNCE, at)
        return True
    return False
