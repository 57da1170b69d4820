"""A rule: which words in an own sentence mean what, and what follows from it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from bot.replies.intents import Intent
from bot.replies.prose.sentences import Sentence
from bot.replies.rules.phrases import compiled
from tracker.domain.events import EventKind


class By(StrEnum):
    """Whose words a rule reads."""

    DEVELOPER = "developer"  # whoever is not of the lab
    OPERATOR = "operator"  # of the lab
    ANYONE = "anyone"


class Mode(StrEnum):
    """How far an effect goes."""

    AUTO = "auto"
    SUGGEST = "suggest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Words:
    """Phrases in the notation of phrases.py, and the pattern that they make."""

    phrases: tuple[str, ...]
    pattern: re.Pattern[str] = field(compare=False, repr=False)

    def in_(self, text: str) -> bool:
        return self.pattern.search(text) is not None


def words(*phrases: str) -> Words:
    """The words of these phrases."""
    return Words(phrases, compiled(phrases))


_EDGE = re.compile(r"[,;:()] | (?:but|and|so|because|since|although|though|while|which) |\Z")


def _clause(text: str, cue: re.Match[str]) -> str:
    """The clause around a cue."""
    before = max((edge.end() for edge in _EDGE.finditer(text, 0, cue.start()) if edge[0]), default=0)
    after = _EDGE.search(text, cue.end())
    return text[before : after.start() if after else len(text)]


@dataclass(frozen=True, slots=True)
class Trap:
    """Words that spoil a cue: in its clause (`near`), or in all its sentence. `says`: "not in a sentence that …"."""

    says: str
    words: Words
    near: bool = False

    def spoils(self, text: str, cue: re.Match[str]) -> bool:
        return self.words.in_(_clause(text, cue) if self.near else text)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of docs/reading.md.

    `does` None: the intent is shown, and nothing follows. `aside`: it only ever suggests, beside what the mail does
    otherwise. `alone`: it counts only where no rule above it does. How each fares is in measured.json.
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
    to_reporter: bool = False  # counts only in a mail to the reporter, or where it names him
    question: bool | None = None  # True: only questions, False: never a question
    improvement: bool | None = None  # True: only of an improvement, False: never of one

    def reads(self, sentence: Sentence) -> bool:
        """Whether the sentence says it."""
        if self.question is not None and self.question is not sentence.asks:
            return False
        cues = self.cue.pattern.finditer(sentence.text)
        return any(not any(trap.spoils(sentence.text, cue) for trap in self.unless) for cue in cues)
