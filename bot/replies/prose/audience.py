"""Whom a sentence addresses: the reporter, or someone else on the thread.

The To: of a reply names whom it answers; others are addressed by name: "Oliver, can you rerun this?".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.mail.identity import BotIdentity
from bot.mail.message import ParsedMail
from bot.replies.prose.sentences import Sentence

_CALLED = re.compile(r"(?:(?:hi|hello|hey|dear|so|and|but|also)[ ,]+)?([A-Z][\w'-]{1,30})\s?(?:,|:| -)\s")


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom a mail addresses by default, and the first names on both sides, in lower case."""

    to_reporter: bool
    reporters: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def is_reporter(self, sentence: Sentence) -> bool:
        """Whether the sentence addresses the reporter: by name, otherwise by the To: of the mail."""
        found = _CALLED.match(sentence.text)
        name = found[1].lower() if found else ""
        if name in self.reporters:
            return True
        return self.to_reporter and name not in self.others


def audience_of(mail: ParsedMail, identity: BotIdentity) -> Audience:
    """Return whom the mail addresses."""
    ours = {each for each in mail.recipients if identity.speaks_for_lab(each.email)}
    return Audience(
        to_reporter=any(each in ours for each in mail.to),
        reporters=frozenset(_first_name(each.name) for each in ours) - {""},
        others=frozenset(_first_name(each.name) for each in mail.recipients if each not in ours) - {""},
    )


def _first_name(name: str) -> str:
    """Return the first name in lower case; in "Brook, Dana" it follows the comma."""
    last, comma, first = name.partition(",")
    names = (first if comma else last).split()
    return names[0].lower() if names else ""
