"""A subscription's mail: what has changed since the last one, only to the person who asked for it.

A subscription is a search, or the list of regressions that need attention; its text is the one that the pages export.
The time until which changes are mailed is stored with it, so that one worker composes the mail, and a report is not
mailed again in the same revision. The daily limits of the outbox do not apply. Every mail has a link that ends the
subscription.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.template.loader import render_to_string
from django.urls import reverse

from bot.compose.conventions import message_id
from bot.compose.mail import Recipient, Recipients, exclusion_reason, mail_of
from bot.compose.policy import Action, PolicyDecision
from bot.compose.report_mail import finished
from bot.mail.addresses import Address
from bot.mail.message import one_line
from bot.mail.settings import BotSettings
from bot.notifications.digest import escape_signature
from bot.outbox.drafts import ComposeConfig, OutboxWriter, excluded_addresses
from tracker.domain.search import parse
from tracker.domain.text import counted, tag_of
from tracker.models import Often, Purpose, Subscription
from tracker.pages import subscriptions
from tracker.pages.browse import load_escalations
from tracker.pages.report_json import directions, report_json
from tracker.pages.search import matching
from tracker.pages.triage.exports import reports_text
from tracker.services import event_log

log = logging.getLogger(__name__)

AT_ONCE = 200  # subscriptions in a round
MOST = 50  # reports in one mail; the page has all


@dataclass(frozen=True, slots=True)
class SubscriptionNews:
    """What a subscription's mail says. `page`: the path of the page that shows it."""

    subject: str
    text: str
    page: str


def compose_subscriptions(settings: BotSettings, now: datetime, config: ComposeConfig, *, approve_first: bool) -> int:
    """Compose the mails that are due. Return how many. An error keeps no other from being composed."""
    writer = OutboxWriter(settings, config, now)
    decision = PolicyDecision(Action.APPROVE if approve_first else Action.SEND)
    excluded = excluded_addresses(settings.aliases, config.policy.never)
    composed = 0
    for row in subscriptions.due(now)[:AT_ONCE]:
        try:
            composed += _compose(row, writer, decision, excluded)
        except Exception:  # a query that is no longer understood, or bad data of a report
            log.exception("the mail of subscription %s could not be composed", row.pk)
    return composed


@transaction.atomic
def _compose(row: Subscription, writer: OutboxWriter, decision: PolicyDecision, excluded: dict[str, str]) -> bool:
    """Compose one mail, and note until when changes are mailed: by whichever worker is first."""
    same = Subscription.objects.filter(pk=row.pk, mailed_until=row.mailed_until)
    if not same.update(mailed_until=writer.now):
        return False
    news = _changed(row, writer) if row.query else _escalated(writer.now)
    if news is None:
        return False
    settings, owner, what = writer.settings, row.owner, row.query or "escalations"
    assert isinstance(owner, User)
    purpose = f"{Purpose.SUBSCRIPTION}{row.pk} {writer.now:%Y-%m-%dT%H:%M:%S}"  # identifies the mail permanently
    subject = f"{'' if row.often == Often.AT_ONCE else f'{row.often.capitalize()}: '}{news.subject}"
    person = Address(owner.get_full_name(), owner.email)
    if exclusion_reason(person.email, settings, excluded):
        return False  # bounces, or wants no mail
    page = f"{settings.base_url}{news.page}"
    ends = f"{settings.base_url}{reverse('unsubscribe', args=[subscriptions.token(row)])}"
    context = {
        "text": escape_signature(news.text),
        "page": page,
        "bot": one_line(settings.name, 60),
        "what": one_line(what, 60),
        "ends": ends,
    }
    tag, recipients = tag_of(purpose), Recipients((Recipient(person, "subscribed"),), ())
    body = finished(render_to_string("mail/subscription.txt", context), ())
    own_id = message_id(writer.now, tag, settings, purpose)
    mail = mail_of(own_id, tag, recipients, one_line(subject, 200), body, settings, writer.now)
    mail = replace(mail, page=page, unsubscribe=ends)
    foreign = [news.text, subject, what, person.name]
    start = writer.decide_start(mail, decision, foreign=foreign, counts=False)
    return writer.insert(None, mail, purpose, start)


def _changed(row: Subscription, writer: OutboxWriter) -> SubscriptionNews | None:
    """Return the reports of a search that have changed; None if none has."""
    recorded = event_log.recorded_between(row.created_at, row.mailed_until, writer.now)
    news = recorded.filter(report=OuterRef("pk"))
    reports = matching(parse(row.query)).filter(Exists(news)).select_related("culprit", "tree")
    recent = list(reports.order_by("-changed_at", "-pk")[: MOST * 4])
    rows = [report for report in recent if f"{report.pk}:{report.revision}" not in row.mailed][: MOST + 1]
    if not rows:
        return None
    Subscription.objects.filter(pk=row.pk).update(mailed=[f"{report.pk}:{report.revision}" for report in recent])
    by_metric, base = directions(), writer.settings.base_url
    shown = [report_json(report, by_metric, lambda path: f"{base}{path}") for report in rows[:MOST]]
    more = "\n\nMore have changed; the page has all." if len(rows) > MOST else ""
    number = f"{MOST}+ reports" if more else counted(len(rows), "report")
    page = f"{reverse('search')}?{urlencode({'q': row.query})}"
    return SubscriptionNews(f"{number} changed: {row.query}", reports_text(shown) + more, page)


def _escalated(now: datetime) -> SubscriptionNews | None:
    """Return what needs attention; None if nothing does."""
    escalations = load_escalations(now)
    if not escalations:
        return None
    parts = []
    for escalation in escalations:
        lines = [
            f"- {line.change} {line.sha[:10]} {line.subsystem}: {line.title}"[:76] for line in escalation.section.rows
        ]
        parts.append("\n".join([f"{escalation.section.heading} ({len(lines)})", escalation.reason, "", *lines]))
    number = sum(len(escalation.section.rows) for escalation in escalations)
    subject = f"{counted(number, 'regression')} that need attention"
    return SubscriptionNews(subject, "\n\n".join(parts), reverse("escalations"))
