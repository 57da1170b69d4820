"""Mail to those who triage: what is newly suggested, each with its sentence and two links, right and wrong.

At most once a day, and none without news. Each suggestion is mailed once; the review queue keeps what nobody decided.
The mail does not go through the outbox: it is to the lab's own people, and whoever gets none because of a crash finds
the same in the queue.
"""

import hashlib
import textwrap
from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models.functions import Coalesce
from django.template.loader import render_to_string
from django.urls import reverse

from bot.mail.message import for_header, one_line
from bot.mail.settings import BotSettings
from bot.outbox.sender import send_unstored
from bot.outbox.transports import SendStatus, Signing, Transport
from tracker.domain.text import counted
from tracker.models import Correspondent, Decision, Mailing, Suggestion
from tracker.services import mail_transitions
from tracker.services.accounts import DECIDE, decision_token
from tracker.services.report_actions import IfAccepted, outcomes

MOST = 20  # suggestions in a mail: those that are likeliest
MOST_PEOPLE = 50
AT_ONCE = 500  # of those that came in meanwhile
_QUOTED = 400  # characters


def mail_suggestions(transport: Transport, settings: BotSettings, now: datetime, signing: Signing | None = None) -> int:
    """Mail what was suggested since the last mail to all who may decide on it. Return how many a server accepted."""
    if mail_transitions.stopped():
        return 0
    waiting = Suggestion.objects.filter(decision=Decision.OPEN, mailed_at=None).select_related("report__culprit")
    new = list(waiting.annotate(rank=Coalesce("certainty", 0)).order_by("-rank", "-pk")[:AT_ONCE])
    accepted_as = outcomes(new)
    telling = [suggestion for suggestion in new if accepted_as[suggestion.pk].changes]
    Suggestion.objects.filter(pk__in=[suggestion.pk for suggestion in new]).update(mailed_at=now)
    if not telling:
        return 0
    accepted = 0
    for user in _triagers():
        own_id = f"suggestions-{now:%Y%m%d}-{hashlib.sha256(user.email.encode()).hexdigest()[:16]}"
        subject = f"{for_header(settings.name, 60)}: {counted(len(telling), 'suggestion')} to review"
        text = _text(telling, accepted_as, user, settings)
        status = send_unstored(own_id, user.email, subject, text, transport, settings, now, signing)
        accepted += status is SendStatus.SENT
        if status in (SendStatus.NO_SERVER, SendStatus.NOT_NOW):
            break
    if not accepted:  # tomorrow's mail has them, too
        Suggestion.objects.filter(mailed_at=now, decision=Decision.OPEN).update(mailed_at=None)
    return accepted


def _triagers() -> list[User]:
    """Return the users who may decide on suggestions and want mail, one for each address."""
    users = User.objects.with_perm(DECIDE, backend="django.contrib.auth.backends.ModelBackend").exclude(email="")
    by_address = {user.email.lower(): user for user in users.filter(is_active=True).order_by("-pk")}
    unwanted = Correspondent.objects.filter(address__in=by_address).exclude(mailing=Mailing.OPTED_IN)
    for address in unwanted.values_list("address", flat=True):
        del by_address[address]
    return sorted(by_address.values(), key=lambda user: user.email)[:MOST_PEOPLE]


def _text(
    suggestions: Sequence[Suggestion], accepted_as: dict[int, IfAccepted], user: User, settings: BotSettings
) -> str:
    rows = [
        _row(number, suggestion, accepted_as[suggestion.pk], user, settings)
        for number, suggestion in enumerate(suggestions[:MOST], 1)
    ]
    context = {
        "rows": rows,
        "more": max(0, len(suggestions) - MOST),
        "queue": f"{settings.base_url}{reverse('review')}",
        "bot": settings.name,
    }
    return render_to_string("mail/suggestions.txt", context)


def _row(number: int, suggestion: Suggestion, outcome: IfAccepted, user: User, settings: BotSettings) -> dict[str, str]:
    """Return one suggestion as the mail has it: paragraphs of at most 78 columns, and two links. Whatever others wrote
    is on lines of its own, without controls.
    """
    report, sha = suggestion.report, suggestion.report.culprit.sha10
    title = one_line(str(report), 160)
    kind = suggestion.kind.replace("_", " ").capitalize()
    likely = f" {suggestion.certainty} % likely." if suggestion.certainty is not None else ""
    return {
        "heading": _filled(title if sha in title else f"{sha} {title}", f"{number}. "),
        "quote": _filled(f'"{one_line(suggestion.quote, _QUOTED)}"') if suggestion.quote else "",
        "outcome": _filled(f"{kind}?{likely} Now: {report.status}. If it is right: {outcome.status}."),
        "right": _link(suggestion, Decision.ACCEPTED, user, settings),
        "wrong": _link(suggestion, Decision.REJECTED, user, settings),
    }


def _filled(text: str, begin: str = "   ") -> str:
    return textwrap.fill(text, 78, initial_indent=begin, subsequent_indent="   ", break_on_hyphens=False)


def _link(suggestion: Suggestion, decision: Decision, user: User, settings: BotSettings) -> str:
    return f"{settings.base_url}{reverse('decide-by-link', args=[decision_token(suggestion, decision, user)])}"
