"""Ask for second opinions on replies that were only recorded as responses, and suggest what the answers say.

Each mail of a report is asked about once: the answer is stored, so that a replay needs no second question.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from bot.errors import Unreadable
from bot.mail.identity import BotIdentity
from bot.replies.reading import understand
from bot.second_opinion.endpoint import Endpoint
from bot.second_opinion.question import messages, parse_answer
from tracker.domain.events import EventKind, Role
from tracker.models import Event, Message, SecondOpinion, Suggestion
from tracker.services.reports.suggestions import SECOND_OPINION

DAY = timedelta(days=1)
AT_ONCE = 20  # questions of one run
_OLDEST = timedelta(days=60)  # nobody waits for the meaning of older mail
log = logging.getLogger(__name__)


def ask_about_replies(endpoint: Endpoint, identity: BotIdentity, now: datetime, most_a_day: int) -> int:
    """Ask about the newest replies that nothing sure is known of; return how many were asked.

    The first failure of the server ends the run: the next one goes on.
    """
    suggest_stored()
    left = most_a_day - SecondOpinion.objects.filter(asked_at__gt=now - DAY).count()
    unsure = _unsure().filter(occurred_at__gt=now - _OLDEST).order_by("-occurred_at", "-pk")
    asked = 0
    for event in list(unsure[: max(0, min(left, AT_ONCE))]):
        try:
            _ask(endpoint, identity, event, now)
        except OSError as failure:  # requests' errors are, too
            log.error("second opinion: %s", " ".join(str(failure).split()))
            break
        asked += 1
    if asked:
        suggest_stored()
    return asked


def _unsure() -> QuerySet[Event]:
    """Return the events of responses that were never asked about."""
    known = SecondOpinion.objects.filter(report=OuterRef("report"), message_id=OuterRef("message_id"))
    return _responses().exclude(Exists(known))


def _responses() -> QuerySet[Event]:
    """Return the events of mails of which nothing is recorded but that they are a response."""
    others = Event.objects.filter(report=OuterRef("report"), message_id=OuterRef("message_id"), actor="")
    found = Event.objects.filter(kind=EventKind.RESPONDED, actor="").exclude(message_id="")
    return found.exclude(Exists(others.exclude(kind=EventKind.RESPONDED)))


def _ask(endpoint: Endpoint, identity: BotIdentity, event: Event, now: datetime) -> None:
    """Ask about one reply, and store the answer, or why it does not count."""
    mail = Message.objects.select_related("source").filter(message_id=event.message_id).first()
    if mail is None:
        return
    reading = understand(mail.source.raw, identity)
    kind, sentence, fault, answer = None, "", "", ""
    try:
        answer = endpoint.ask(messages(reading, Role(event.role)))
        found = parse_answer(answer, reading.own_text)
        kind, sentence = found.kind, found.sentence
    except Unreadable as unusable:
        fault = str(unusable)
    row = SecondOpinion(
        report_id=event.report_id,
        message_id=event.message_id,
        model=endpoint.model,
        answer=_stored(answer, 5000),
        kind=kind or "",
        sentence=_stored(sentence, 2000),
        fault=_stored(fault, 500),
        asked_at=now,
    )
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        pass  # another worker has asked meanwhile


def _stored(text: str, most: int) -> str:
    """Return a text as every database takes it: without NULs and lone surrogates."""
    return text[:most].replace("\0", "").encode("utf-8", "replace").decode()


def suggest_stored() -> int:
    """Suggest what stored answers say, where it is not suggested: also again, after mail was read again."""
    same = Suggestion.objects.filter(
        report=OuterRef("report"), message_id=OuterRef("message_id"), kind=OuterRef("kind")
    )
    missing = SecondOpinion.objects.exclude(kind__in=("", EventKind.RESPONDED)).exclude(Exists(same))
    missing = missing.filter(Exists(_responses().filter(report=OuterRef("report"), message_id=OuterRef("message_id"))))
    made = 0
    for opinion in missing:
        event = _responses().filter(report=opinion.report_id, message_id=opinion.message_id).order_by("pk")[0]
        _, new = Suggestion.objects.get_or_create(
            report_id=opinion.report_id,
            key=f"{opinion.kind}:{opinion.message_id}#{SECOND_OPINION}",
            defaults={
                "kind": opinion.kind,
                "occurred_at": event.occurred_at,
                "role": event.role,
                "message_id": opinion.message_id,
                "in_reply_to": event.in_reply_to,
                "quote": opinion.sentence,
                "rule": SECOND_OPINION,
                "why": f"by {opinion.model[:80]}",
            },
        )
        made += new
    return made
