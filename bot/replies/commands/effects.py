"""What a command does to a report."""

from __future__ import annotations

from bot.replies.commands.grammar import Command, Word
from bot.replies.effect import Effect, Mode
from tracker.domain.events import Happening

COMMANDED: dict[Word, Happening] = {
    Word.FIX: Happening.FIX_PROPOSED,
    Word.DUP: Happening.DUPLICATE,
    Word.INVALID: Happening.INVALID,
    Word.EXPECTED: Happening.EXPECTED,
    Word.NOTE: Happening.NOTED,
    Word.TITLE: Happening.RETITLED,
    Word.TEST: Happening.TEST_ASKED,
    Word.UNFIX: Happening.FIX_WITHDRAWN,
    Word.UNDUP: Happening.UNDUPLICATED,
    Word.REOPEN: Happening.REOPENED,
    Word.ASSIGN: Happening.ASSIGNED,
    Word.REMIND_OFF: Happening.REMINDERS_OFF,
}
_IN_TITLE = frozenset({Word.FIX, Word.TITLE})


def effect_of(command: Command) -> Effect:
    """The effect of one command, as if its writer were proven."""
    text = command.argument
    return Effect(
        COMMANDED[command.word],
        Mode.AUTO,
        f"command_{command.word.replace(' ', '_')}",
        quote=f"{command.word} {text}".strip(),
        title=text if command.word in _IN_TITLE else "",
        remark="" if command.word in _IN_TITLE else text,
    )
