"""The event that each command makes."""

from __future__ import annotations

import re

from bot.replies.commands.grammar import Command, Word
from bot.replies.effect import Effect, Mode
from tracker.domain.events import EventKind

COMMANDED: dict[Word, EventKind] = {
    Word.FIX: EventKind.FIX_PROPOSED,
    Word.DUP: EventKind.DUPLICATE,
    Word.INVALID: EventKind.INVALID,
    Word.EXPECTED: EventKind.EXPECTED,
    Word.NOTE: EventKind.NOTED,
    Word.TITLE: EventKind.RETITLED,
    Word.TEST: EventKind.TEST_ASKED,
    Word.UNFIX: EventKind.FIX_WITHDRAWN,
    Word.UNDUP: EventKind.UNDUPLICATED,
    Word.REOPEN: EventKind.REOPENED,
    Word.ASSIGN: EventKind.ASSIGNED,
    Word.REMIND_OFF: EventKind.REMINDERS_OFF,
}
COMMAND = "command_"  # what the rules of commands begin with
_IN_TITLE = frozenset({Word.FIX, Word.TITLE})
_IN_QUOTES = re.compile(r"""["“”„«»]\s?([^"“”„«»]{3,})\s?["“”„«»][.,]?|['‘‚](.{3,})['’‘][.,]?""")


def without_quotes(title: str) -> str:
    """Return a title that somebody put into quotes, typographic ones too, without them.

    >>> without_quotes("“mm: take the lock”")
    'mm: take the lock'
    """
    found = _IN_QUOTES.fullmatch(title)
    return (found[1] or found[2]).strip() if found else title


def effect_of(command: Command) -> Effect:
    """Return the effect of a command, assuming that its writer is verified."""
    text = command.argument
    return Effect(
        COMMANDED[command.word],
        Mode.AUTO,
        COMMAND + command.word.replace(" ", "_"),
        quote=f"{command.word} {text}".strip(),
        title=without_quotes(text) if command.word in _IN_TITLE else "",
        remark="" if command.word in _IN_TITLE else text,
    )
