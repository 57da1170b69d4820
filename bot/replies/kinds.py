"""Who or what wrote a mail: a person, we ourselves, an operator of the lab, a robot, a bounce, an auto-reply."""

from __future__ import annotations

import re
from enum import StrEnum

from bot.identity import Identity
from bot.replies.mail import Mail


class Kind(StrEnum):
    """The kinds of DESIGN section 5."""

    PERSON = "person"
    SELF = "self"
    BOT_OPERATOR = "bot_operator"
    ROBOT = "robot"
    BOUNCE = "bounce"
    AUTO_REPLY = "auto_reply"
    UNREADABLE = "unreadable"


_ROBOT_ADDRESS = re.compile(
    r"(?:patchwork-bot|syzbot|tip-bot\d?|kernelci|regzbot|.*-bot|bot|no-?reply)(?:[+@]|-bot@)|.*\btest.robot\b", re.I
)
_ROBOT_NAME = re.compile(r"\b(?:test robot|tip-bot\d?|patchwork-bot|syzbot|0day robot|kernelci)\b", re.I)
# RFC 3834, and what mail programs wrote before it.
_AWAY = re.compile(r"\s*(?:automatic reply|auto(?:matic)?[- ]?(?:response|reply)|out of (?:the )?office|abwesen)", re.I)
_DAEMON = re.compile(r"(?:mailer-daemon|postmaster)@", re.I)


def kind_of(mail: Mail, identity: Identity) -> Kind:
    """What wrote the mail. A lab's people often share the robot's address: the shown name tells them apart."""
    if not mail.author.email and not mail.message_id and not mail.text.strip():
        return Kind.UNREADABLE
    if identity.is_own(mail.author.email) or mail.mark("x-perfwork-report"):
        return Kind.SELF
    if _is_bounce(mail):
        return Kind.BOUNCE
    if _is_auto_reply(mail):
        return Kind.AUTO_REPLY
    if _ROBOT_NAME.search(mail.author.name) or mail.mark("x-patchwork-bot"):
        return Kind.ROBOT
    if mail.author.email in identity.operators:
        return Kind.BOT_OPERATOR
    if mail.author.email in identity.robots or _ROBOT_ADDRESS.match(mail.author.email):
        return Kind.ROBOT
    return Kind.PERSON


def _is_bounce(mail: Mail) -> bool:
    """RFC 3464: a multipart/report, or a mail of the mail system itself with an empty return path."""
    report = mail.mark("content-type").lower().startswith("multipart/report")
    return (report and "delivery-status" in mail.mark("content-type").lower()) or bool(_DAEMON.match(mail.author.email))


def _is_auto_reply(mail: Mail) -> bool:
    submitted = mail.mark("auto-submitted").lower()
    if submitted.startswith("auto-replied") or mail.mark("precedence").lower() == "auto_reply":
        return True
    return bool(_AWAY.match(mail.subject)) and submitted != "no"
