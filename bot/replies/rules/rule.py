"""A rule: which phrases in a sentence mean which intent, and what effect that has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from bot.replies.intents import Intent
from bot.replies.prose.sentences import Sentence
from bot.replies.rules.phrases import expression
from tracker.domain.events import EventKind


class By(StrEnum):
    """Whose sentences a rule reads."""

    DEVELOPER = "developer"  # anyone outside the lab
    OPERATOR = "operator"  # the lab's own people
    ANYONE = "anyone"


class Mode(StrEnum):
    """Whether an effect is automatic, suggested, or neither."""

    AUTO = "auto"
    SUGGEST = "suggest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Words:
    """Phrases in the notation of phrases.py, and the regular expression that they mean."""

    phrases: tuple[str, ...]
    expression: str = field(compare=False, repr=False)

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when it is used first: compiling all rules takes longer than most commands."""
        return _compiled(self.expression)

    def occur_in(self, text: str) -> bool:
        return self.pattern.search(text) is not None


def words(*phrases: str) -> Words:
    """Return phrases to look for; raises ValueError for one that is not in the notation."""
    return Words(phrases, expression(phrases))


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.I)


_EDGE = re.compile(r"[,;:()] | (?:but|and|so|because|since|although|though|while|which) |\Z")


def _clause(text: str, cue: re.Match[str]) -> str:
    """Return the clause around a cue."""
    before = max((edge.end() for edge in _EDGE.finditer(text, 0, cue.start()) if edge[0]), default=0)
    after = _EDGE.search(text, cue.end())
    return text[before : after.start() if after else len(text)]


@dataclass(frozen=True, slots=True)
class Trap:
    """Words that rule out a cue: in its clause (`near`), or in its whole sentence. `says`: what the sentence does."""

    says: str
    words: Words
    near: bool = False

    def rules_out(self, text: str, cue: re.Match[str]) -> bool:
        return self.words.occur_in(_clause(text, cue) if self.near else text)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of docs/reading.md.

    `does` None: the intent is only shown. `aside`: it never decides, and only adds a suggestion to the mail's other
    effects. `alone`: it counts only if no rule above it decides. measured.json holds the accuracy of each.
    """

    name: str
    intent: Intent
    says: str
    cue: Words
    by: By = By.DEVELOPER
    unless: tuple[Trap, ...] = ()
    does: EventKind | None = None
    mode: Mode = Mode.NONE
    aside: bool = False
    alone: bool = False
    to_reporter: bool = False  # counts only in a mail to the reporter, or if it names them
    question: bool | None = None  # True: only questions, False: no questions
    improvement: bool | None = None  # True: only on improvements, False: never on one

    def matches(self, sentence: Sentence) -> bool:
        """Whether the rule matches the sentence."""
        if self.question is not None and self.question is not sentence.asks:
            return False
        cues = self.cue.pattern.finditer(sentence.text)
        return any(not any(trap.rules_out(sentence.text, cue) for trap in self.unless) for cue in cues)
