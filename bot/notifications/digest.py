"""Bulletins, the mails about no single report: a release report, a study, the weekly digest.

The text is made elsewhere (tracker/documents); here it becomes a mail to the lists that are set for bulletins. The
purpose identifies a bulletin permanently, so that each is sent once. Release reports and studies are held until a
person approves them; one that still waits is composed again under the same Message-ID. The digest is composed once a
week, if lists are set and anything is open or was closed; the usual rules of the outbox apply to it.
"""

import logging
import re
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from django.template.loader import render_to_string

from bot.compose.conventions import message_id
from bot.compose.lint import faults
from bot.compose.mail import ComposedMail, Recipient, Recipients, exclusion_reason, mail_of
from bot.compose.policy import Action, PolicyDecision
from bot.compose.report_mail import finished
from bot.mail.addresses import Address
from bot.mail.message import one_line
from bot.mail.settings import BotSettings
from bot.outbox.drafts import COMPOSER, ComposeConfig, OutboxWriter, Start, excluded_addresses
from tracker.documents import blocks
from tracker.documents.blocks import Document
from tracker.documents.digest import compose as compose_digest
from tracker.domain.events import InvalidInput
from tracker.domain.text import THIS_MACHINE, tag_of
from tracker.models import OutgoingMail, OutgoingState, Purpose, Study
from tracker.pages.release_report import current_cycle, week_of
from tracker.services import mail_transitions

log = logging.getLogger(__name__)

# --- The mail ---

_MARK = re.compile(r"^-- ?$", re.M)


@dataclass(frozen=True, slots=True)
class Bulletin:
    """`purpose` identifies it permanently; `page`: the path of its web page."""

    purpose: str
    subject: str
    text: str
    page: str


@dataclass(frozen=True, slots=True)
class BulletinConfig:
    """Who sends bulletins, and to which lists."""

    settings: BotSettings
    compose_config: ComposeConfig
    lists: tuple[str, ...]


def compose_bulletin(bulletin: Bulletin, config: BulletinConfig, now: datetime) -> ComposedMail:
    """Return the mail to the lists; InvalidInput if none is set, or all have opted out or bounce."""
    if not config.lists:
        raise InvalidInput("no list for bulletins: set PERFWORK_BULLETINS or PERFWORK_LIST_ADDRESS")
    settings, tag = config.settings, tag_of(bulletin.purpose)
    excluded = excluded_addresses(settings.aliases, config.compose_config.policy.never)
    kept: list[Recipient] = []
    left_out: list[Recipient] = []
    for address in dict.fromkeys(config.lists):
        why = exclusion_reason(address, settings, excluded)
        recipient = Recipient(Address("", address), why or "gets release mail", is_list=True)
        (left_out if why else kept).append(recipient)
    if not kept:
        raise InvalidInput("all lists have opted out or bounce")
    page = f"{settings.base_url}{bulletin.page}"
    context = {"text": escape_signature(bulletin.text), "page": page, "bot": one_line(settings.name, 60)}
    body = finished(render_to_string("mail/bulletin.txt", context), ())
    own_id = message_id(now, tag, settings, bulletin.purpose)
    recipients = Recipients(tuple(kept[:1]), tuple(kept[1:]), tuple(left_out))
    mail = mail_of(own_id, tag, recipients, one_line(bulletin.subject, 200), body, settings, now)
    return replace(mail, page=page)


def escape_signature(text: str) -> str:
    """Return a text of ours without lines that programs take for the start of the signature."""
    return _MARK.sub(r" \g<0>", text.strip("\n"))


# --- Into the outbox ---

NEEDS_APPROVAL = "needs approval"


def of_release(version: str, document: Document, config: BulletinConfig) -> Bulletin:
    """Return the report of a release as a bulletin."""
    body = blocks.render(document, config.settings.base_url)
    return Bulletin(f"{Purpose.BULLETIN}release {version}", document.title, body, f"/{version}/report/")


def of_study(study: Study, document: Document, config: BulletinConfig) -> Bulletin:
    """Return a study as a bulletin."""
    body = blocks.render(document, config.settings.base_url)
    return Bulletin(f"{Purpose.BULLETIN}study {study.slug}", document.title, body, f"/study/{study.slug}/")


def of_week(version: str, config: BulletinConfig, now: datetime) -> Bulletin | None:
    """Return the weekly digest; None if nothing is open and nothing was closed."""
    content = week_of(version, now)
    if not content:
        return None
    document = compose_digest(version, content, now)
    body = blocks.render(document, config.settings.base_url)
    return Bulletin(_digest(version, now), document.title, body, f"/{version}/?state=open")


def _digest(version: str, now: datetime) -> str:
    """Return the purpose of a week's digest."""
    year, number, _ = now.isocalendar()
    return f"{Purpose.BULLETIN}digest {version} {year}-W{number:02}"


def hold(bulletin: Bulletin, config: BulletinConfig, now: datetime) -> OutgoingMail:
    """Put a bulletin into the outbox, held until approved. One that still waits is composed again under the same
    Message-ID. Raise InvalidInput if it was sent already, or if there is no list.
    """
    writer = OutboxWriter(config.settings, config.compose_config, now)
    mail = compose_bulletin(bulletin, config, now)
    problems = list(faults(mail, config.settings, config.compose_config.conventions, now, foreign=[bulletin.text]))
    if urlsplit(config.settings.base_url).hostname in THIS_MACHINE:
        problems.append("its links work only on this machine: set PERFWORK_BASE_URL")
    start = Start(OutgoingState.HELD, "; ".join([NEEDS_APPROVAL, *problems])[:1000])
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
    version = current_cycle()
    mails = OutgoingMail.objects.filter(report=None, purpose=_digest(version, now))
    if not (version and config.lists) or mails.exists():
        return False
    bulletin = of_week(version, config, now)
    if bulletin is None:
        return False
    writer = OutboxWriter(config.settings, config.compose_config, now)
    try:
        mail = compose_bulletin(bulletin, config, now)
    except InvalidInput as error:
        log.warning("no weekly digest: %s", error)
        return False
    action = Action.APPROVE if approve_first else Action.SEND
    start = writer.decide_start(mail, PolicyDecision(action), foreign=[bulletin.text])
    return writer.insert(None, mail, bulletin.purpose, start)
