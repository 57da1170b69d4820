"""Who or what wrote a mail: a person, the bot, an operator, a robot, a mail server, an auto-responder."""

import re
from enum import StrEnum

from bot.mail.message import AUTO_REPLY_MARKS, ParsedMail
from bot.mail.patches import is_answer
from bot.mail.quoting import AWAY, any_of
from bot.mail.settings import BotSettings


class SenderKind(StrEnum):
    """The kinds of DESIGN section 5."""

    PERSON = "person"
    SELF = "self"
    BOT_OPERATOR = "bot_operator"
    ROBOT = "robot"
    BOUNCE = "bounce"
    AUTO_REPLY = "auto_reply"
    UNREADABLE = "unreadable"


_ROBOT_ADDRESS = re.compile(
    r"(?:[\w.+-]*-bot|patchwork-bot|patchwork|syzbot|tip-bot\d?|kernelci|regzbot|bugbot|buildbot|bot|bugzilla-daemon|lkft"
    r"|majordomo|mlmmj|notifications?|no[-_]?reply|do[-_]?not[-_]?reply)(?:\+[^@]*)?@",
    re.I,
)
_ROBOT_NAME = re.compile(
    r"\b(?:test robot|tip-bot\d?|patchwork-bot|syzbot|regzbot|0day robot|kernelci|lkft|build ?bot"
    r"|functional testing)\b",
    re.I,
)
# Subjects of auto-replies: the phrase alone, or with the subject that it answers.
_AWAY = re.compile(
    rf"[\s\[(]*{any_of(AWAY)}[\])]*\s*(?:[:：]|\Z|\b(?:until|from|autoreply|re:))|[\s]*\[{any_of(AWAY)}\]", re.I
)
_DAEMON = re.compile(
    r"(?:mailer-daemon|postmaster|mail-daemon|microsoftexchange[0-9a-f]{8,40})(?:\+[^@]*)?(?:@|\Z)", re.I
)
# First words of bounces without a delivery status: qmail, Exim, sendmail, Exchange.
_UNDELIVERED = re.compile(
    r"\s*(?:hi\. this is the qmail-send program|this is the mail (?:system|delivery)|this message was created"
    r" automatically by mail|delivery has failed to these recipients|your message (?:could not|wasn't able to) be"
    r"|the original message was received at)",
    re.I,
)
_STATUS = frozenset({"message/delivery-status", "message/disposition-notification", "message/global-delivery-status"})


def kind_of(mail: ParsedMail, settings: BotSettings) -> SenderKind:
    """Return what wrote the mail.

    Operators often share the robot's address, and the display name tells them apart; or they answer under its name from
    an address of their own (seen in 2019-2020 reports).
    """
    author = mail.author
    if not author.email and not mail.message_id and not mail.text.strip():
        return SenderKind.UNREADABLE
    if settings.is_own(author.email) or mail.mark("x-perfwork-report"):
        return SenderKind.SELF
    if _is_bounce(mail):
        return SenderKind.BOUNCE
    # RFC 3834 section 5; whatever is not "no" was written by no person.
    submitted = re.split(r"[;\s(]", mail.mark("auto-submitted").strip(), maxsplit=1)[0].lower()
    by_machine = submitted not in ("", "no")
    if (
        submitted.startswith("auto-replied")
        or "auto_reply" in (mail.mark("precedence").lower(), mail.mark("preference").lower())
        or any(mail.mark(name) for name in AUTO_REPLY_MARKS)
        or (submitted != "no" and _AWAY.match(mail.subject))
    ):
        return SenderKind.AUTO_REPLY
    if mail.mark("return-path") == "<>":  # vacation replies have it too
        return SenderKind.BOUNCE
    if author.email in settings.operators and is_answer(mail.subject) and not by_machine:
        return SenderKind.BOT_OPERATOR
    if _ROBOT_NAME.search(author.name) or mail.mark("x-patchwork-bot") or by_machine:
        return SenderKind.ROBOT
    shared = author.email in settings.robots and author.name.lower() in settings.operators
    if author.email in settings.operators or shared:
        return SenderKind.BOT_OPERATOR
    if author.email in settings.robots or _ROBOT_ADDRESS.match(author.email):
        return SenderKind.ROBOT
    return SenderKind.PERSON


def _is_bounce(mail: ParsedMail) -> bool:
    """Whether it is a multipart/report, a delivery status (RFC 3464), or a mail from the mail system itself."""
    return bool(
        mail.mark("content-type").lower().startswith("multipart/report")
        or any(part.content_type in _STATUS for part in mail.attachments)
        or _DAEMON.match(mail.author.email or mail.mark("from").strip("<> "))
        or mail.mark("from").strip() == "<>"
        or mail.mark("x-failed-recipients")
        or _UNDELIVERED.match(mail.text[:300])
    )
