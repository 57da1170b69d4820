"""To whom a sentence is addressed: the reporter, or somebody else on the thread.

A reply goes To: whom it answers, and others are called by name: "Oliver, can you rerun this?".
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
    """Who is asked by default, and the first names of both sides, in lower case."""

    to_reporter: bool
    reporters: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def is_reporter(self, sentence: Sentence) -> bool:
        """Whether the sentence is addressed to the reporter: by name, else as the mail is."""
        found = _CALLED.match(sentence.text)
        called = found[1].lower() if found else ""
        if called in self.reporters:
            return True
        return self.to_reporter and called not in self.others


def audience_of(mail: ParsedMail, identity: BotIdentity) -> Audience:
    """Who the mail talks to."""
    ours = {each for each in mail.recipients if identity.speaks_for_lab(each.email)}
    return Audience(
        to_reporter=any(each in ours for each in mail.to),
        reporters=frozenset(_first_name(each.name) for each in ours) - {""},
        others=frozenset(_first_name(each.name) for each in mail.recipients if each not in ours) - {""},
    )


def _first_name(name: str) -> str:
    """The first name as people call it; "Brook, Dana" has it last."""
    last, comma, first = name.partition(",")
    words = (first if comma else last).split()
    return words[0].lower() if words else ""
