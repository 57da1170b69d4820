"""One short mail to the person who reported a regression: it is tracked, where, and the two commands of use.

Nobody gets one unless the operator names the list it was sent to (PERFWORK_ANSWER_REPORTERS). It goes to the writer
alone, once a thread, and only if the writer is proven, wrote in the last three days, and wants our mail.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from django.template.loader import render_to_string

from bot.compose.conventions import message_id, reply_position
from bot.compose.mail import ComposedMail, mail_of
from bot.compose.recipients import Recipient, Recipients
from bot.mail.message import is_message_id, one_line
from bot.mail.settings import BotSettings
from bot.notifications.command_answer import FRESH, queue_answer
from bot.outbox.drafts import excluded_addresses
from bot.replies.reading import Reading
from tracker.models import OutgoingMail, Purpose, Report
from tracker.services.accounts import is_of_a_person

MOST_A_DAY = 20
_TRACKED = "tracked "  # in the purpose, after the address


def answer_reporter(reading: Reading, report: Report, settings: BotSettings, now: datetime) -> bool:
    """Compose the mail into the outbox; return False if the writer gets none."""
    mail = reading.mail
    author = mail.author.email
    lists = {address.email for address in mail.recipients} & settings.answer_on
    fresh = mail.date is not None and now - FRESH < mail.date
    if not (
        lists and fresh and reading.trust.proven and is_of_a_person(author.lower()) and is_message_id(mail.message_id)
    ):
        return False
    if author in excluded_addresses(settings.aliases):
        return False
    purpose = f"{Purpose.ANSWER}{author} {_TRACKED}{mail.message_id}"
    lately = OutgoingMail.objects.filter(purpose__startswith=Purpose.ANSWER, composed_at__gt=now - timedelta(days=1))
    if lately.filter(purpose__contains=f" {_TRACKED}").count() >= MOST_A_DAY:
        return False
    composed = compose_answer(reading, report.tag, report.culprit.sha, settings, now)
    return queue_answer(composed, report, purpose, settings, now)


def compose_answer(reading: Reading, tag: str, sha: str, settings: BotSettings, now: datetime) -> ComposedMail:
    """Return the mail. Of the reporter's, only ids, subject and name are copied, where that is safe."""
    mail = reading.mail
    name = one_line(mail.author.name, 80)
    context = {
        "author_name": one_line(name, 60),
        "bot": one_line(settings.name, 60),
        "prefix": settings.prefix,
        "help": settings.help("answering"),
        "page": settings.page(sha),
    }
    lines = (line.rstrip() for line in render_to_string("mail/reporter_answer.txt", context).splitlines())
    composed = mail_of(
        message_id(now, tag, settings, f"tracked {mail.message_id}"),
        tag,
        Recipients((Recipient(replace(mail.author, name=name), "reported it"),), ()),
        f"Re: {one_line(mail.subject, 200)}",
        "\n".join("-- " if line == "--" else line for line in lines) + "\n",
        settings,
        now,
        reply_position(mail.message_id, ()),
    )
    return replace(composed, submitted="auto-replied")
