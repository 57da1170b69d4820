"""Who or what wrote a mail: a person, we ourselves, an operator of the lab, a robot, a bounce, an auto-reply."""

from __future__ import annotations

import re
from enum import StrEnum

from bot.identity import Identity
from bot.replies.languages import AWAY, any_of
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
    r"(?:[\w.+-]*-bot|patchwork-bot|syzbot|tip-bot\d?|kernelci|regzbot|bugbot|bot|bugzilla-daemon"
    r"|no[-_]?reply|do[-_]?not[-_]?reply)(?:\+[^@]*)?@",
    re.I,
)
_ROBOT_NAME = re.compile(r"\b(?:test robot|tip-bot\d?|patchwork-bot|syzbot|regzbot|0day robot|kernelci|lkft)\b", re.I)
# RFC 3834, and what mail programs wrote before it: the phrase alone, or with the subject that it answers.
_AWAY = re.compile(rf"[\s\[(]*{any_of(AWAY)}[\])]*\s*(?:[:：]|\Z)|[\s]*\[{any_of(AWAY)}\]", re.I)
_DAEMON = re.compile(r"(?:mailer-daemon|postmaster|mail-daemon)(?:\+[^@]*)?@", re.I)


def kind_of(mail: Mail, identity: Identity) -> Kind:
    """What wrote the mail. A lab's people often share the robot's address: the shown name tells them apart."""
    if not mail.author.email and not mail.message_id and not mail.text.strip():
        return Kind.UNREADABLE
    if identity.is_own(mail.author.email) or mail.mark("x-perfwork-report"):
        return Kind.SELF
    if _is_auto_reply(mail):
        return Kind.AUTO_REPLY
    if _is_bounce(mail):
        return Kind.BOUNCE
    if _ROBOT_NAME.search(mail.author.name) or mail.mark("x-patchwork-bot") or _by_machine(mail):
        return Kind.ROBOT
    if mail.author.email in identity.operators:
        return Kind.BOT_OPERATOR
    if mail.author.email in identity.robots or _ROBOT_ADDRESS.match(mail.author.email):
        return Kind.ROBOT
    return Kind.PERSON


def _is_bounce(mail: Mail) -> bool:
    """RFC 3464 and its kin: a multipart/report, a delivery status, or a mail of the mail system itself."""
    reports = mail.mark("content-type").lower().startswith("multipart/report")
    status = any(part.content_type == "message/delivery-status" for part in mail.attachments)
    failed = mail.mark("x-failed-recipients") or mail.mark("return-path") == "<>"
    return bool(reports or status or failed or _DAEMON.match(mail.author.email))


def _is_auto_reply(mail: Mail) -> bool:
    if _submitted(mail).startswith("auto-replied") or mail.mark("precedence").lower() == "auto_reply":
        return True
    if mail.mark("x-autoreply") or mail.mark("x-autorespond"):
        return True
    return bool(_AWAY.match(mail.subject)) and _submitted(mail) != "no"


def _by_machine(mail: Mail) -> bool:
    """RFC 3834 section 5: whatever is not "no" was not written by a person."""
    return _submitted(mail) not in ("", "no")


def _submitted(mail: Mail) -> str:
    return mail.mark("auto-submitted").partition(";")[0].strip().lower()
