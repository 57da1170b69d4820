"""What became of our mail: mails in doubt, copies in archives, bounces, and who wants no more.

A mail is in doubt if its worker died after the last step of sending began: it may or may not have been sent (DESIGN
rule 5). A copy in an archive settles that; without one a person decides, or the policy sends it once more under the
same Message-ID. A copy is told from another mail with that Message-ID by its date and our text.

People's mail says whether they want ours: opt-outs and opt-ins take effect at once if the sender is proven (DESIGN
rule 8), a recent unproven opt-out is confirmed by a mailed link, and an address that writes to us works again. A
bounce is matched to a mail only by the secret return path.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.replies import gate
from bot.replies.reading import MailWish, Reading, wish_of
from tracker.domain.text import is_a_list
from tracker.models import Correspondent, FailureSource, Mailing, MailTransition, OutgoingMail, OutgoingState
from tracker.models.mail import WAITING
from tracker.services import accounts, mail_transitions
from tracker.services.accounts import is_of_a_person
from tracker.services.mail_transitions import archives_with_copies

# --- Mails in doubt ---

S = OutgoingState
THE_POLICY = "the policy"


@dataclass(frozen=True, slots=True)
class RecoveryPolicy:
    """What happens to a mail in doubt without delivery evidence: after `wait`, a person decides, or with `resend` it is
    sent once more under the same Message-ID, which archives and mail clients treat as a duplicate.
    """

    wait: timedelta = timedelta(hours=6)
    resend: bool = False
    sent_folder: str = ""  # its archive path: a missing copy there proves nothing


def sweep(now: datetime) -> tuple[int, int]:
    """Recover mails whose worker died: before the last step they return to the queue, after it they are in doubt.

    Return how many went back to the queue, and how many are now in doubt.
    """
    expired = OutgoingMail.objects.filter(state=S.SENDING, lease_until__lt=now)
    died = "its worker died"
    freed = {"lease_until": None}
    requeued = mail_transitions.transition(
        expired.filter(handed_over_at=None), S.APPROVED, "sweep", now, f"{died} before sending began", **freed
    )
    reason = f"{died} while sending; it counts as sent if a copy is found in an archive"
    in_doubt = mail_transitions.transition(
        expired.filter(handed_over_at__isnull=False), S.IN_DOUBT, "sweep", now, reason, reason=reason, **freed
    )
    return len(requeued), len(in_doubt)


def resolve(policy: RecoveryPolicy, now: datetime) -> int:
    """Queue mails in doubt again where the policy allows it: once, if archives that were read since have no copy after
    `wait`. Return how many.
    """
    if not policy.resend:
        return 0
    waiting = OutgoingMail.objects.filter(state=S.IN_DOUBT, handed_over_at__lt=now - policy.wait)
    archives = (
        [archive for archive in archives_with_copies() if archive.path != policy.sent_folder]
        if waiting.exists()
        else []
    )
    read_at = min((archive.read_at for archive in archives if archive.read_at), default=None)
    if read_at is None:  # no archive could have shown a copy
        return 0
    rows = waiting.filter(handed_over_at__lt=read_at - policy.wait)
    rows = rows.exclude(pk__in=MailTransition.objects.filter(by=THE_POLICY, was=S.IN_DOUBT).values("mail"))
    # Only of a mail that a list has not got yet can an archive have a copy.
    listed = rows.only("recipients", "settled", "lists")
    rows = rows.filter(pk__in=[mail.pk for mail in listed if set(mail.lists) - set(mail.settled)])
    reason = f"no copy found within {policy.wait}: sent again with the same Message-ID"
    columns = {"reason": reason, "not_before": None, "handed_over_at": None, "lease_until": None}
    return len(mail_transitions.transition(rows, S.APPROVED, THE_POLICY, now, reason, **columns))


# --- Copies in archives ---

BY = "archive"
MAY_HAVE_LEFT = frozenset({S.SENDING, S.IN_DOUBT})


def evaluate(mail: OutgoingMail, reading: Reading, settings: BotSettings, now: datetime) -> bool:
    """Evaluate an archived mail as evidence for a mail that is not known to be sent; return False if it is not a copy.

    If our mail may have been sent, a copy is proof. If it still waits, as after a restored backup, the copy must be
    authenticated as ours (DESIGN rule 8); else the mail is held, so that a person checks before it is sent twice.
    """
    ours = parse(bytes(mail.raw))
    # A copy has the same date, and our text inside whatever a list added.
    is_ours = " ".join(ours.text.split()) in " ".join(reading.mail.text.split())
    if ours.date != reading.mail.date or not is_ours:
        mail_transitions.add_note(mail, BY, now, "an archived mail has the same Message-ID, but it is not a copy")
        return False
    proven = gate.permitted(gate.Caused.SENT, gate.Standing(reading.trust), settings.trust_policy)
    if mail.state in MAY_HAVE_LEFT or (proven and settings.is_own(reading.mail.author.email)):
        mail_transitions.mark_sent(mail.message_id, reading.mail.date or now, now, BY, "a copy was found")
    elif mail.state in WAITING and not mail.settled:
        reason = "an archive has a copy that is not proven to be ours, though this was not sent: check before sending"
        waiting = OutgoingMail.objects.filter(pk=mail.pk, state__in=WAITING)
        mail_transitions.transition(
            waiting, S.HELD, BY, now, reason, reason=reason, decided_by_person=True, not_before=None
        )
    return True


# --- Opt-outs, opt-ins and bounces ---

NOT_PROVEN = "not proven"
LATELY = 1000  # mails
MOST_OF_A_REPORT = 100  # mails that a bounce may be of
FRESH = timedelta(days=3)  # nobody is asked about older mail


def process_wish(reading: Reading, settings: BotSettings, now: datetime, *, recent: bool = True) -> None:
    """Process a person's mail. An opt-out or opt-in takes effect at once if the gate permits it (DESIGN rule 8). An
    unproven opt-out is confirmed by a link that is mailed to the address, if it is fresh. `recent`: see gate.py.
    """
    author, at = reading.mail.author.email.lower(), min(reading.mail.date or now, now)
    wish, certain = wish_of(reading, settings), reading.certain_with_any_blanks
    # Nobody may have made this wish of a signed mail by changing how its body is read.
    same = certain is not None and all(wish_of(one, settings) is wish for one in certain)
    standing = gate.Standing(reading.trust, for_us=reading.signed_for_us, recent=recent, same_words=same)

    def may(effect: gate.Caused) -> bool:
        return gate.permitted(effect, standing, settings.trust_policy)

    if wish and _is_list(author, settings):  # a list can't opt in or out
        return
    if wish is MailWish.LEAVE and not may(gate.Caused.OPT_OUT):
        asks = now - at < FRESH and may(gate.Caused.OPT_OUT_LINK)
        if asks and is_of_a_person(author) and _got_mail_lately(author):
            accounts.request_opt_out_link(author, now)
        return
    if wish is None or (wish is MailWish.COME_BACK and not may(gate.Caused.OPT_IN)):
        if may(gate.Caused.REACHABLE):
            mail_transitions.clear_bounce(author, at)
            if wish:  # an opt-out that nobody proved
                rows = Correspondent.objects.filter(address=author, since__lt=at)
                rows.filter(mailing=Mailing.OPTED_OUT, note__endswith=NOT_PROVEN).delete()
        return
    proof = f"proven by {reading.trust.by}" if reading.trust.proven else NOT_PROVEN
    mailing = Mailing.OPTED_OUT if wish is MailWish.LEAVE else Mailing.OPTED_IN
    values = {"mailing": mailing, "note": f"<{reading.mail.message_id}>, {proof}"[:500], "since": at}
    row, new = Correspondent.objects.get_or_create(address=author, defaults=values)
    if not new:  # an older mail that is read late changes nothing, and an operator's stop is final
        older = Correspondent.objects.filter(pk=row.pk, since__lt=at).exclude(mailing=Mailing.STOPPED)
        older.exclude(mailing=mailing).update(**values)


def _is_list(address: str, settings: BotSettings) -> bool:
    """Return whether an address is a list by its host or by the settings, or one that got our mail lately."""
    own = settings.trust_anchors.lists.union(settings.lists, [settings.list_address])
    if is_a_list(address) or address in own:
        return True
    recent = OutgoingMail.objects.order_by("-pk").values_list("lists", flat=True)[:LATELY]
    return any(address in lists for lists in recent)


def _got_mail_lately(address: str) -> bool:
    """Return whether an address got mail of ours lately: nobody else is asked, whoever writes in their name."""
    recent = OutgoingMail.objects.filter(attempts__gt=0).order_by("-pk").values_list("recipients", flat=True)[:LATELY]
    return any(address == recipient.lower() for recipients in recent for recipient in recipients)


def process_bounce(reading: Reading, settings: BotSettings, now: datetime) -> bool:
    """Process a bounce: mark the mail as sent and record the failed recipients. Return whether it is about our mail.

    The mail is identified only by its secret return path; everything else in a mail is public and can be forged. All
    who got the mail know its path, and archives may show it. So what it says of one of several recipients is recorded
    and no more: the next mail goes to that one in an envelope with a return path of its own (sender.py), and only a
    bounce to that path marks the address as bouncing.
    """
    addressed = [address.email for address in (*reading.mail.recipients, *reading.mail.delivered_to)]
    paths = [email.lower() for email in addressed if settings.mark_in(email)]
    at = min(reading.mail.date or now, now)
    for mail, own in _returned(paths, settings):
        note = f"bounced with <{reading.mail.message_id}>"
        mail_transitions.mark_sent(mail.message_id, at, now, by="bounce", note=note)
        ours = {recipient.lower() for recipient in mail.recipients}
        failed = {recipient: reply for recipient, reply in reading.bounce.failed.items() if recipient in ours}
        for recipient, reply in failed.items():
            standing = gate.Standing(secret=recipient == own or ours == {recipient})
            counts = gate.permitted(gate.Caused.BOUNCE, standing, settings.trust_policy)
            mail_transitions.record_failures(mail, {recipient: reply}, FailureSource.BOUNCE, at, counts=bool(counts))
        return True
    return False


def _returned(paths: Sequence[str], settings: BotSettings) -> Iterator[tuple[OutgoingMail, str]]:
    """Yield the mail that one of these return paths is of, and the recipient whose own it is, "" if it is of all."""
    sent = OutgoingMail.objects.filter(attempts__gt=0)
    for mail in sent.filter(sender__in=paths).order_by("pk")[:1]:
        yield mail, ""
    tags = [settings.tag_in(path) for path in paths]
    for mail in sent.filter(report__tag__in=tags).order_by("-pk")[:MOST_OF_A_REPORT]:
        for recipient in mail.recipients:
            if settings.return_path(settings.tag_in(mail.sender), mail.message_id, recipient) in paths:
                yield mail, recipient.lower()
