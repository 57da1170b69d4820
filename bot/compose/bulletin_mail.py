"""Mail about no single report: a release report, the weekly digest, a study. Its text is made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.template.loader import render_to_string

from bot.compose.mail import ComposedMail
from bot.compose.message_id import message_id
from bot.compose.recipients import Recipient, Recipients, exclusion_reason
from bot.compose.report.report_mail import finished
from bot.mail.addresses import Address
from bot.mail.identity import BotIdentity
from bot.mail.sanitising import one_line
from tracker.domain.keys import tag_of

_MARK = re.compile(r"^-- ?$", re.M)


@dataclass(frozen=True, slots=True)
class Bulletin:
    """`purpose` identifies it permanently; `page`: the path of its web page."""

    purpose: str
    subject: str
    text: str
    page: str


def compose_bulletin(
    bulletin: Bulletin, lists: Iterable[str], identity: BotIdentity, now: datetime, excluded: Mapping[str, str]
) -> ComposedMail:
    """Return the mail to these lists; those in `excluded` are left out."""
    tag = tag_of(bulletin.purpose)
    recipients = [Recipient(Address("", each), "gets release mail", is_list=True) for each in dict.fromkeys(lists)]
    reasons = {each.email: why for each in recipients if (why := exclusion_reason(each.email, identity, excluded))}
    kept = tuple(each for each in recipients if each.email not in reasons)
    left_out = tuple(Recipient(Address("", email), why, is_list=True) for email, why in reasons.items())
    page = f"{identity.base_url}{bulletin.page}"
    context = {"text": guarded_signature(bulletin.text), "page": page, "bot": one_line(identity.name, 60)}
    return ComposedMail(
        message_id=message_id(now, tag, identity, bulletin.purpose),
        sender=Address(identity.name, identity.address),
        reply_to=Address(identity.name, identity.tagged(tag)),
        recipients=Recipients(kept[:1], kept[1:], left_out),
        subject=one_line(bulletin.subject, 200),
        date=now.replace(microsecond=0),
        body=finished(render_to_string("mail/bulletin.txt", context), ()),
        report_tag=tag,
        page=page,
    )


def guarded_signature(text: str) -> str:
    """Return a text of ours without lines that programs take for the start of the signature."""
    return _MARK.sub(r" \g<0>", text.strip("\n"))
