"""Put bulletins into the outbox: each once, and composed again until it is approved."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from bot.compose.bulletin_mail import Bulletin, compose_bulletin
from bot.compose.lint import faults
from bot.compose.mail import ComposedMail
from bot.compose.policy.action import Action
from bot.compose.policy.policy import PolicyDecision
from bot.mail.identity import BotIdentity
from bot.outbox.context.compose_config import ComposeConfig
from bot.outbox.context.policy_context import excluded_addresses
from bot.outbox.writer import COMPOSER, OutboxWriter, Start
from tracker.documents import text
from tracker.documents.blocks import Document
from tracker.documents.digest import queries as digest
from tracker.documents.digest.compose import compose as compose_digest
from tracker.domain.errors import InvalidInput
from tracker.models import OutgoingMail, OutgoingState, Purpose, Study
from tracker.services import mail_transitions

NEEDS_APPROVAL = "needs approval"
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BulletinConfig:
    """The bulletin config: who sends bulletins, and to which lists."""

    identity: BotIdentity
    compose_config: ComposeConfig
    lists: tuple[str, ...]


def of_release(version: str, document: Document, config: BulletinConfig) -> Bulletin:
    """Return the report of a release as a bulletin."""
    body = text.render(document, config.identity.base_url)
    return Bulletin(f"{Purpose.BULLETIN}release {version}", document.title, body, f"/{version}/report/")


def of_study(study: Study, document: Document, config: BulletinConfig) -> Bulletin:
    """Return a study as a bulletin."""
    body = text.render(document, config.identity.base_url)
    return Bulletin(f"{Purpose.BULLETIN}study {study.slug}", document.title, body, f"/study/{study.slug}/")


def of_week(version: str, config: BulletinConfig, now: datetime) -> Bulletin | None:
    """Return the weekly digest; None if nothing is open and nothing was closed."""
    content = digest.of(version, now)
    if not content:
        return None
    document = compose_digest(version, content, now)
    body = text.render(document, config.identity.base_url)
    return Bulletin(_digest(version, now), document.title, body, f"/{version}/?state=open")


def _digest(version: str, now: datetime) -> str:
    """Return the purpose of a week's digest."""
    year, number, _ = now.isocalendar()
    return f"{Purpose.BULLETIN}digest {version} {year}-W{number:02}"


def hold(bulletin: Bulletin, config: BulletinConfig, now: datetime) -> OutgoingMail:
    """Put a bulletin into the outbox, held until approved. One that still waits is composed again under the same
    Message-ID. Raise InvalidInput if it was sent already, or if there is no list.
    """
    writer = OutboxWriter(config.identity, config.compose_config, now)
    mail = _composed(bulletin, config, now)
    found = list(faults(mail, config.identity, config.compose_config.conventions, now, foreign=[bulletin.text]))
    if urlsplit(config.identity.base_url).hostname in LOCAL:
        found.append("its links work only on this machine: set PERFWORK_BASE_URL")
    start = Start(OutgoingState.HELD, "; ".join([NEEDS_APPROVAL, *found])[:1000])
    if writer.insert(None, mail, bulletin.purpose, start):
        return OutgoingMail.objects.get(report=None, purpose=bulletin.purpose)
    row = OutgoingMail.objects.get(report=None, purpose=bulletin.purpose)
    columns = {**writer.columns(mail, row.message_id), "reason": start.reason, "decided_by_person": False}
    states = (OutgoingState.HELD, OutgoingState.COMPOSED, OutgoingState.CANCELLED)
    waiting = OutgoingMail.objects.filter(pk=row.pk, state__in=states, attempts=0, sent_at=None)  # never sent
    if not mail_transitions.transition(waiting, OutgoingState.HELD, COMPOSER, now, "composed again", **columns):
        raise InvalidInput(f"mail {row.pk} is already {row.state.replace('_', ' ')}: see `outbox show {row.pk}`")
    row.refresh_from_db()
    return row


def compose_week(config: BulletinConfig, now: datetime, *, approve_first: bool) -> bool:
    """Compose this week's digest, once, if lists are set; the usual rules apply. Return whether one was composed."""
    version = digest.current()
    known = OutgoingMail.objects.filter(report=None, purpose=_digest(version, now))
    if not (version and config.lists) or known.exists():
        return False
    bulletin = of_week(version, config, now)
    if bulletin is None:
        return False
    writer = OutboxWriter(config.identity, config.compose_config, now)
    try:
        mail = _composed(bulletin, config, now)
    except InvalidInput as error:
        log.warning("no weekly digest: %s", error)
        return False
    action = Action.APPROVE if approve_first else Action.SEND
    start = writer.decide_start(mail, PolicyDecision(action), foreign=[bulletin.text])
    return writer.insert(None, mail, bulletin.purpose, start)


def _composed(bulletin: Bulletin, config: BulletinConfig, now: datetime) -> ComposedMail:
    if not config.lists:
        raise InvalidInput("no list for bulletins: set PERFWORK_BULLETINS or PERFWORK_LIST_ADDRESS")
    mail = compose_bulletin(bulletin, config.lists, config.identity, now, excluded_addresses(config.identity.aliases))
    if not mail.to:
        raise InvalidInput("all lists have opted out or bounce")
    return mail
