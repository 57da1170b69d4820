"""Commands in a reply: `#lkp <word>[:] [argument]` at the start of an unquoted line.

The same words are understood after `#regzbot` and `#syz`, in those bots' spelling; their other words
are theirs and pass without a word. The argument is the rest of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_COMMANDS = 20


class Word(StrEnum):
    """The words we act upon."""

    FIX = "fix"
    DUP = "dup"
    INVALID = "invalid"
    EXPECTED = "expected"
    NOTE = "note"
    TITLE = "title"
    TEST = "test"
    UNFIX = "unfix"
    UNDUP = "undup"
    REOPEN = "reopen"
    ASSIGN = "assign"
    REMIND_OFF = "remind off"


# regzbot: docs/regzbot commands; syzbot: docs/syzbot.md. Spelled otherwise, meant the same.
_FOREIGN = {"dup-of": Word.DUP, "duplicate": Word.DUP}
# Full-width forms, as Chinese and Japanese keyboards write them.
_WIDE = {0xFF01 + number: 0x21 + number for number in range(94)} | {0x3000: 0x20}
_NEEDS_ARGUMENT = frozenset({Word.FIX, Word.DUP, Word.NOTE, Word.TITLE, Word.ASSIGN})


@dataclass(frozen=True, slots=True)
class Command:
    """One command as written. `line` counts from 1 in the own text, so that an answer can quote it."""

    word: Word
    argument: str
    line: int


@dataclass(frozen=True, slots=True)
class BadCommand:
    """A line that was meant for us and can't be obeyed; `why` is a sentence for its writer."""

    text: str
    why: str
    line: int


@dataclass(frozen=True, slots=True)
class Commands:
    """What a mail commands. A flood is refused as one: no commands, and `too_many`."""

    good: tuple[Command, ...] = ()
    bad: tuple[BadCommand, ...] = ()
    too_many: bool = False


def find_commands(own_text: str, prefix: str = "#lkp") -> Commands:
    """The commands of an own text, in order. `prefix` is ours; `#regzbot` and `#syz` are always read."""
    ours = re.compile(rf"({re.escape(prefix)}|#regzbot|#syz)(?::?(?=\s|\Z)|:)[ \t]*(.*)", re.I)
    good: list[Command] = []
    bad: list[BadCommand] = []
    for number, line in enumerate(own_text.split("\n"), start=1):
        plain = line.translate(_WIDE) if line[:1] in "#＃" else ""
        found = ours.match(plain.rstrip())
        if not found:
            continue
        foreign = found[1].lower() != prefix.lower()
        # One letter became one: what follows the word stands as it was written.
        outcome = _read(found[2].strip(), number, foreign, line[found.start(2) :].strip())
        if isinstance(outcome, Command):
            good.append(outcome)
        elif outcome:
            bad.append(outcome)
    if len(good) + len(bad) > MAX_COMMANDS:
        return Commands(too_many=True)
    return Commands(tuple(good), tuple(bad))


def _read(text: str, line: int, foreign: bool, written: str) -> Command | BadCommand | None:
    if not text:
        return None if foreign else BadCommand("", "no word follows the prefix", line)
    if re.match(r"remind[-:\s]+off\W*\Z", text, re.I):
        return Command(Word.REMIND_OFF, "", line)
    if not foreign and re.match(r"(?:un-?)?subscribe\b", text, re.I):
        return None  # a wish about our mail, and no command about a report (leaving.py)
    found = re.match(r"([A-Za-z-]{1,30})(?:\s*:|\s|[.,;!?。、]|\Z)\s*(.*)", text)
    name = found[1].lower() if found else ""
    if not found or name not in {word.value for word in Word} | _FOREIGN.keys():
        return None if foreign else BadCommand(text[:200], f"there is no command {(name or text[:30])!r}", line)
    word = _FOREIGN.get(name) or Word(name)
    argument = written[found.start(2) :].strip()
    if word in _NEEDS_ARGUMENT and not argument:
        return BadCommand(text, f"{word.value} needs an argument", line)
    return Command(word, argument, line)
