"""A subscription's mail: what has changed since the last one, only to the person who asked for it.

A subscription is a search, or the list of regressions that need attention; its text is the one that the pages export.
The time until which changes are mailed is stored with it, so that one worker composes the mail, and a report is not
mailed again in the same revision. The daily limits of the outbox do not apply. Every mail has a link that ends the
subscription.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.template.loader import render_to_string
from django.urls import reverse

from bot.compose.conventions import message_id
from bot.compose.mail import ComposedMail, mail_of
from bot.compose.policy import Action, PolicyDecision
from bot.compose.recipients import Recipient, Recipients, exclusion_reason
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
from tracker.pages.escalations import load_escalations
from tracker.pages.report_json import directions, report_json
from tracker.pages.search import matching
from tracker.pages.triage.exports import reports_text
from tracker.services import event_log

# --- The mail ---


@dataclass(frozen=True, slots=True)
class SubscriptionNews:
    """`purpose` identifies the mail permanently; `what`: what was subscribed to; `page`, `ends`: paths on our site, of
    the page that shows it and of the one that ends the subscription.
    """

    purpose: str
    subject: str
    text: str
    what: str
    page: str
    ends: str
    person: Address


def compose_subscription(
    news: SubscriptionNews, settings: BotSettings, now: datetime, excluded: Mapping[str, str]
) -> ComposedMail:
    """Return the mail; without recipients if the person gets no mail any more."""
    tag = tag_of(news.purpose)
    recipient = Recipient(news.person, "subscribed")
    reason = exclusion_reason(recipient.email, settings, excluded)
    ends = f"{settings.base_url}{news.ends}"
    context = {
        "text": escape_signature(news.text),
        "page": f"{settings.base_url}{news.page}",
        "bot": one_line(settings.name, 60),
        "what": one_line(news.what, 60),
        "ends": ends,
    }
    recipients = Recipients(() if reason else (recipient,), (), (recipient,) if reason else ())
    body = finished(render_to_string("mail/subscription.txt", context), ())
    own_id = message_id(now, tag, settings, news.purpose)
    mail = mail_of(own_id, tag, recipients, one_line(news.subject, 200), body, settings, now)
    return replace(mail, page=context["page"], unsubscribe=ends)


# --- Composing ---

AT_ONCE = 200  # subscriptions in a round
MOST = 50  # reports in one mail; the page has all
log = logging.getLogger(__name__)


def compose_subscriptions(settings: BotSettings, now: datetime, config: ComposeConfig, *, approve_first: bool) -> int:
    """Compose the mails that are due. Return how many. An error keeps no other from being composed."""
    writer = OutboxWriter(settings, config, now)
    decision = PolicyDecision(Action.APPROVE if approve_first else Action.SEND)
    excluded = excluded_addresses(settings.aliases)
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
    news = _escalated(row, writer.now) if not row.query else _changed(row, writer)
    if news is None:
        return False
    mail = compose_subscription(news, writer.settings, writer.now, excluded)
    if not mail.to:
        return False  # bounces, or wants no mail
    foreign = [news.text, news.subject, news.what, news.person.name]
    start = writer.decide_start(mail, decision, foreign=foreign, counts=False)
    return writer.insert(None, mail, news.purpose, start)


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
    return _news(row, writer.now, f"{number} changed: {row.query}", reports_text(shown) + more, row.query, page)


def _escalated(row: Subscription, now: datetime) -> SubscriptionNews | None:
    """Return what needs attention; None if nothing does."""
    escalations = load_escalations(now).escalations
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
    return _news(row, now, subject, "\n\n".join(parts), "escalations", reverse("escalations"))


def _news(row: Subscription, now: datetime, subject: str, text: str, what: str, page: str) -> SubscriptionNews:
    owner = row.owner
    assert isinstance(owner, User)
    ends = reverse("unsubscribe", args=[subscriptions.token(row)])
    purpose = f"{Purpose.SUBSCRIPTION}{row.pk} {now:%Y-%m-%dT%H:%M:%S}"
    often = "" if row.often == Often.AT_ONCE else f"{row.often.capitalize()}: "
    return SubscriptionNews(
        purpose, f"{often}{subject}", text, what, page, ends, Address(owner.get_full_name(), owner.email)
    )
