"""Put bulletins into the outbox: each once, and composed again until it is approved."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from bot.compose.bulletin_mail import Bulletin, compose_bulletin
from bot.compose.lint import faults
from bot.compose.mail import ComposedMail
from bot.compose.policy.policy import Action, PolicyDecision
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.policy_context import unwelcome
from bot.outbox.writer import COMPOSER, OutboxWriter, Start
from tracker.documents import text
from tracker.documents.blocks import Document
from tracker.documents.digest import queries as digest
from tracker.documents.digest.compose import compose as compose_digest
from tracker.domain.errors import InvalidInput
from tracker.models import OutgoingMail, OutgoingState, Purpose, Study
from tracker.services import mail_transitions

AT_LEAST = "needs approval"
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BulletinConfig:
    """The bulletin config: who sends bulletins, and to which lists."""

    identity: BotIdentity
    house: ComposeConfig
    lists: tuple[str, ...]


def of_release(version: str, document: Document, press: BulletinConfig) -> Bulletin:
    """Return the report of a release as a bulletin."""
    told = text.render(document, press.identity.base_url)
    return Bulletin(f"{Purpose.BULLETIN}release {version}", document.title, told, f"/{version}/report/")


def of_study(study: Study, document: Document, press: BulletinConfig) -> Bulletin:
    """Return a study as a bulletin."""
    told = text.render(document, press.identity.base_url)
    return Bulletin(f"{Purpose.BULLETIN}study {study.slug}", document.title, told, f"/study/{study.slug}/")


def of_week(version: str, press: BulletinConfig, now: datetime) -> Bulletin | None:
    """Return the weekly digest; None if nothing is open and nothing was closed."""
    told = digest.of(version, now)
    if not told:
        return None
    document = compose_digest(version, told, now)
    words = text.render(document, press.identity.base_url)
    return Bulletin(_digest(version, now), document.title, words, f"/{version}/?state=open")


def _digest(version: str, now: datetime) -> str:
    """Return the purpose of a week's digest."""
    year, number, _ = now.isocalendar()
    return f"{Purpose.BULLETIN}digest {version} {year}-W{number:02}"


def hold(bulletin: Bulletin, press: BulletinConfig, now: datetime) -> OutgoingMail:
    """Put a bulletin into the outbox, held until approved. One that still waits is composed again under the same
    Message-ID. Raise InvalidInput if it was sent already, or if there is no list.
    """
    desk = OutboxWriter(press.identity, press.house, now)
    mail = _composed(bulletin, press, now)
    found = list(faults(mail, press.identity, press.house.conventions, now, foreign=[bulletin.text]))
    if urlsplit(press.identity.base_url).hostname in LOCAL:
        found.append("its links work only on this machine: set PERFWORK_BASE_URL")
    start = Start(OutgoingState.HELD, "; ".join([AT_LEAST, *found])[:1000])
    if desk.shelve(None, mail, bulletin.purpose, start):
        return OutgoingMail.objects.get(report=None, purpose=bulletin.purpose)
    row = OutgoingMail.objects.get(report=None, purpose=bulletin.purpose)
    columns = {**desk.columns(mail, row.message_id), "reason": start.reason, "by_hand": False}
    again = (OutgoingState.HELD, OutgoingState.COMPOSED, OutgoingState.CANCELLED)
    waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=again, attempts=0, sent_at=None)  # no server has seen it
    if not mail_transitions.transition(waiting, OutgoingState.HELD, COMPOSER, now, "composed again", **columns):
        raise InvalidInput(f"mail {row.pk} is already {row.state.replace('_', ' ')}: see `outbox show {row.pk}`")
    row.refresh_from_db()
    return row


def compose_week(press: BulletinConfig, now: datetime, *, approve_first: bool) -> bool:
    """Compose this week's digest, once, if lists are set; the usual rules apply. Return whether one was composed."""
    version = digest.current()
    known = OutgoingMail.objects.filter(report=None, purpose=_digest(version, now))
    if not (version and press.lists) or known.exists():
        return False
    bulletin = of_week(version, press, now)
    if bulletin is None:
        return False
    desk = OutboxWriter(press.identity, press.house, now)
    try:
        mail = _composed(bulletin, press, now)
    except InvalidInput as unfit:
        log.warning("no weekly digest: %s", unfit)
        return False
    action = Action.APPROVE if approve_first else Action.SEND
    start = desk.judge(mail, PolicyDecision(action), foreign=[bulletin.text])
    return desk.shelve(None, mail, bulletin.purpose, start)


def _composed(bulletin: Bulletin, press: BulletinConfig, now: datetime) -> ComposedMail:
    if not press.lists:
        raise InvalidInput("no list for bulletins: set PERFWORK_BULLETINS or PERFWORK_LIST_ADDRESS")
    mail = compose_bulletin(bulletin, press.lists, press.identity, now, unwelcome(press.identity.aliases))
    if not mail.to:
        raise InvalidInput("all lists have opted out or bounce")
    return mail
