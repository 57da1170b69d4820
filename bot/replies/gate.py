"""What a mail may cause, and on what proof: one table, and the one function that reads it (DESIGN rules 8 and 13).

Three answers are found once for each mail. *Who*: whether its writer is proven (bot/mail/authentication.py), and is
somebody of the report. *For whom*: whether our own address stands in a To or Cc that the writer signed; Delivered-To,
X-Original-To and the envelope say only who sent it on. *About what*: whether what is signed leads to the report: our
address with its tag, the thread, a Closes: line, the subject. `Standing` holds them, with two more: whether everybody
reads the body in the same way, and whether the mail came when it was written.

To add an effect: its row in NEEDS; docs/answering.md prints the table, and a test tries every row on forged mail.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Flag, StrEnum, auto

from bot.mail.authentication import UNPROVEN, AuthVerdict, Trust
from tracker.domain.events import Role

STALE = timedelta(days=14)  # a mail that was delivered later than that after its date may be an old one, sent again


class Caused(StrEnum):
    """What a mail can cause."""

    COMMAND = "a command takes effect"
    CLOSE = "plain words close the report"
    MOVE = "plain words move an open report"
    SUGGEST = "a suggestion in the review queue"
    REPORT = "a robot's report counts as reported"
    OPEN = "a command makes a person's mail a report"
    OPT_OUT = "an opt-out takes effect"
    OPT_OUT_LINK = "an opt-out is asked about by a link"
    OPT_IN = "an opt-in takes effect"
    REACHABLE = "a bouncing address counts as reachable again"
    BOUNCE = "an address counts as bouncing"
    SENT = "a waiting mail of ours counts as sent"
    ANSWER = "a failed command is answered"
    JOB = "a runner of the lab tests a patch"
    PUBLISH = "it is shown to everybody"


class Need(Flag):
    """What an effect requires. The words for each are in REASONS."""

    NOTHING = 0
    HONEST = auto()  # nothing disproves the writer, and what they signed doesn't lead elsewhere
    PROVEN = auto()
    OF_REPORT = auto()
    OWNER = auto()
    ABOUT = auto()
    FOR_US = auto()
    RECENT = auto()
    SAME_WORDS = auto()
    KNOWN_TO_US = auto()
    SECRET = auto()
    PUBLIC = auto()


REASONS: Mapping[Need, str] = {
    Need.HONEST: "not disproven, nor signed for another report",
    Need.PROVEN: "proven",
    Need.OF_REPORT: "from somebody involved in the report, known by address",
    Need.OWNER: "by author or maintainer",
    Need.ABOUT: "what is signed leads to the report",
    Need.FOR_US: "our address is in a signed To or Cc",
    Need.RECENT: "delivered within 14 days, or read from an archive",
    Need.SAME_WORDS: "its body can be read in one way only",
    Need.KNOWN_TO_US: "proven, and what is signed leads to the report; or not proven, but has got our mail about it",
    Need.SECRET: "sent to that recipient's own return path",
    Need.PUBLIC: "from a public archive, or to a list of the report",
}

_ACT = Need.PROVEN | Need.OF_REPORT | Need.ABOUT | Need.SAME_WORDS | Need.RECENT
_OPEN = Need.PROVEN | Need.SAME_WORDS | Need.RECENT | Need.PUBLIC
_WISH = Need.PROVEN | Need.FOR_US | Need.SAME_WORDS | Need.RECENT
POLICIES = ("open", "verified", "maintainers")
# What each effect needs, by policy: open, verified, maintainers.
NEEDS: Mapping[Caused, tuple[Need, Need, Need]] = {
    Caused.COMMAND: (Need.NOTHING, _ACT, _ACT | Need.OWNER),
    Caused.CLOSE: (Need.NOTHING, _ACT, _ACT | Need.OWNER),
    Caused.MOVE: (Need.NOTHING, Need.HONEST | Need.SAME_WORDS, _ACT & ~Need.RECENT | Need.OWNER),
    Caused.SUGGEST: (Need.NOTHING, Need.NOTHING, Need.NOTHING),
    Caused.REPORT: (Need.NOTHING, Need.PROVEN | Need.SAME_WORDS, Need.PROVEN | Need.SAME_WORDS),
    Caused.OPEN: (Need.NOTHING, _OPEN, _OPEN | Need.OWNER),
    Caused.OPT_OUT: (Need.HONEST, _WISH, _WISH),
    Caused.OPT_OUT_LINK: (Need.HONEST, Need.HONEST, Need.HONEST),
    Caused.OPT_IN: (Need.HONEST, _WISH, _WISH),
    Caused.REACHABLE: (Need.HONEST, Need.HONEST, Need.HONEST),
    Caused.BOUNCE: (Need.SECRET, Need.SECRET, Need.SECRET),
    Caused.SENT: (Need.NOTHING, Need.PROVEN, Need.PROVEN),
    Caused.ANSWER: (Need.HONEST, Need.HONEST | Need.KNOWN_TO_US, Need.HONEST | Need.KNOWN_TO_US),
    Caused.JOB: (Need.OF_REPORT, Need.PROVEN | Need.OF_REPORT, Need.PROVEN | Need.OF_REPORT),
    Caused.PUBLISH: (Need.PUBLIC, Need.PUBLIC, Need.PUBLIC),
}


class About(StrEnum):
    """Where what the writer signed leads."""

    HERE = "to this report"
    UNSIGNED = "nowhere: only unsigned headers name a report"
    ELSEWHERE = "to another report, or to none"


@dataclass(frozen=True, slots=True)
class Standing:
    """The answers for one mail and one report. `same_words`: that the effect is the same however the body is read."""

    trust: Trust = UNPROVEN
    role: Role | None = None
    by_address: bool = True
    about: About = About.HERE
    for_us: bool = False
    recent: bool = True
    same_words: bool = True
    has_got_mail: bool = False
    secret: bool = False
    public: bool = False

    def meets(self, need: Need) -> bool:
        """Whether the mail has one of the things that an effect may need."""
        proven = self.trust.proven
        misled = proven and self.about is About.ELSEWHERE
        return {
            Need.HONEST: self.trust.verdict is not AuthVerdict.FAIL and not misled,
            Need.PROVEN: proven,
            Need.OF_REPORT: self.by_address and self.role is not Role.THIRD_PARTY,
            Need.OWNER: self.by_address and self.role in (Role.AUTHOR, Role.MAINTAINER),
            Need.ABOUT: self.about is About.HERE,
            Need.FOR_US: self.for_us,
            Need.RECENT: self.recent,
            Need.SAME_WORDS: self.same_words or not proven,  # what nobody signed can't be misread, either
            Need.KNOWN_TO_US: self.about is About.HERE if proven else self.has_got_mail,
            Need.SECRET: self.secret,
            Need.PUBLIC: self.public,
        }[need]


def permitted(effect: Caused, standing: Standing, policy: str) -> bool:
    """Whether a mail may cause an effect under a policy (PERFWORK_TRUST): the only way to any of them."""
    return not lacks(effect, standing, policy)


def lacks(effect: Caused, standing: Standing, policy: str) -> list[Need]:
    """Return what a mail would need to cause an effect, and does not have."""
    return [need for need in NEEDS[effect][POLICIES.index(policy)] if not standing.meets(need)]


def is_recent(trust: Trust, date: datetime | None, delivered: datetime | None) -> bool:
    """Whether a mail came when it was written. `delivered`: None for mail of an archive, which is read in its order.

    Somebody may send on an old mail with a good signature, which its writer meant for somebody else. A date that is
    not signed tells nothing.
    """
    if delivered is None:
        return True
    return date is not None and trust.covers("date") and delivered - date <= STALE
