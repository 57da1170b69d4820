"""The mail of a subscription: what has changed, to the one person who asked for it. Its text is made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.bulletin_mail import guarded_signature
from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.recipients import Recipient, Recipients, exclusion_reason
from bot.compose.report.report_mail import finished
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.keys import tag_of


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
    news: SubscriptionNews, identity: BotIdentity, now: datetime, excluded: Mapping[str, str]
) -> ComposedMail:
    """Return the mail; without recipients if the person gets no mail any more."""
    tag = tag_of(news.purpose)
    recipient = Recipient(news.person, "subscribed")
    reason = exclusion_reason(recipient.email, identity, excluded)
    ends = f"{identity.base_url}{news.ends}"
    context = {
        "text": guarded_signature(news.text),
        "page": f"{identity.base_url}{news.page}",
        "bot": one_line(identity.name, 60),
        "what": one_line(news.what, 60),
        "ends": ends,
    }
    return ComposedMail(
        message_id=message_id(now, tag, identity, news.purpose),
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(tag)),
        recipients=Recipients(() if reason else (recipient,), (), (recipient,) if reason else ()),
        subject=one_line(news.subject, 200),
        date=now.replace(microsecond=0),
        body=finished(render_to_string("mail/subscription.txt", context), ()),
        report_tag=tag,
        page=str(context["page"]),
        unsubscribe=ends,
    )
