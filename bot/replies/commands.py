"""Commands in a reply: `#lkp <word>[:] [argument]` at the start of an unquoted line.

The same commands are understood after `#regzbot` and `#syz`, in those bots' spelling (`#syz-fix`, too); their other
commands are ignored without an answer. The argument is the rest of the line, or the next line if that is empty; a
title or a note may go on below, where a mail program has wrapped it. Commands are obeyed only where the line is the
writer's own, not part of a diff, a forwarded mail or a code block: a patch to this file, or a mail that is passed on,
may hold any line. What a command does to a report is in effects.py.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

# --- Grammar ---

MAX_COMMANDS = 20


class Word(StrEnum):
    """The commands that we act on.

    To add one: its row in COMMANDED of effects.py, in the table of docs/answering.md and in SECURITY.md.
    """

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
    RESOLVE = "resolve"
    REMIND_OFF = "remind off"
    REPORT = "report"
    INTRODUCED = "introduced"
    BACKBURNER = "backburner"


# regzbot: docs/regzbot commands; syzbot: docs/syzbot.md. Other spellings of our commands.
_SPELLINGS = {
    **dict.fromkeys(("dup-of", "dupof", "duplicate", "duplicate-of", "duplicateof"), Word.DUP),
    **dict.fromkeys(("fixed-by", "fixedby", "fixed", "fixes"), Word.FIX),
    **dict.fromkeys(("summary", "subject"), Word.TITLE),
    **dict.fromkeys(("resolved", "inconclusive"), Word.RESOLVE),
    "monitor": Word.INTRODUCED,
    "introduced-by": Word.INTRODUCED,
}
# Full-width forms, as Chinese and Japanese input methods produce them.
_WIDE = {0xFF01 + number: 0x21 + number for number in range(94)} | {0x3000: 0x20}
_MARKS = frozenset({"#", "\uff03"})
_NEEDS_ARGUMENT = frozenset({Word.FIX, Word.DUP, Word.NOTE, Word.TITLE, Word.ASSIGN})


@dataclass(frozen=True, slots=True)
class Command:
    """One command as written. `line`: its line number in the own text, from 1. `of_parent`: whether it speaks of the
    mail that this one answers ("#regzbot ^introduced"). `foreign`: whether it has the prefix of another bot.
    """

    word: Word
    argument: str
    line: int
    of_parent: bool = False
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class BadCommand:
    """A line with our prefix that is not a valid command; `why` is the error message for its writer."""

    text: str
    why: str
    line: int


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a mail. More than MAX_COMMANDS are rejected together: none is returned, `too_many` is set."""

    good: tuple[Command, ...] = ()
    bad: tuple[BadCommand, ...] = ()
    too_many: bool = False


def find_commands(own_text: str, prefix: str = "#lkp") -> Commands:
    """Return the commands in an own text, in order. `prefix` is ours; `#regzbot` and `#syz` are always read."""
    ours = re.compile(rf"({re.escape(prefix)}|#regzbot|#syz)(?::?(?=\s|\Z)|:|-(?=[a-z]))[ \t]*(.*)", re.I)
    lines = own_text.split("\n")
    firsts = {*_MARKS, prefix[:1].lower(), prefix[:1].upper()}
    good: list[Command] = []
    bad: list[BadCommand] = []
    for number, line in enumerate(lines, start=1):
        plain = line.translate(_WIDE) if line[:1] in firsts else ""
        match = ours.match(plain.rstrip())
        if not match:
            continue
        foreign = match[1].lower() != prefix.lower()
        # Translation keeps offsets, so the argument can be taken from the line as written.
        below = list(
            takewhile(
                lambda other: other[:1] not in _MARKS and not ours.match(other), lines[number : number + _MOST_BELOW]
            )
        )
        outcome = _read(match[2].strip(), number, foreign, line, line[match.start(2) :].strip(), below)
        if isinstance(outcome, Command):
            good.append(outcome)
        elif outcome:
            bad.append(outcome)
        if len(good) + len(bad) > MAX_COMMANDS:
            return Commands(too_many=True)
    return Commands(tuple(good), tuple(bad))


_WIDTH, _MOST_BELOW = 70, 6  # columns, the least at which mail programs wrap; lines
_CONTINUED = re.compile(r"\s*[(\"'`]?[a-z\d][^\s,]*(?:\s|\Z)")
_COMPLETE = re.compile(r"://|>\Z|\A[`'\"<\[(]*[0-9a-f]{7,40}\b.*\)\Z")
_TITLES = frozenset({Word.FIX, Word.DUP, Word.TITLE, Word.NOTE})


def _with_wrapped(argument: str, line: str, below: Sequence[str]) -> str:
    """Return an argument with the lines that a mail program wrapped: those below an unfinished title, or whose first
    word had no room. If more follows in the same paragraph, that is prose, and so may be what had no room.
    """
    if _COMPLETE.search(argument):
        return argument
    whole, certain = argument, argument
    for following in below:
        if not following.strip() or following.startswith(">"):
            return whole
        is_unfinished = _is_unfinished(whole)
        has_no_room = len(line.rstrip()) + 1 + len(following.split()[0]) > _WIDTH and _CONTINUED.match(following)
        if not (is_unfinished or has_no_room):
            return certain
        whole, line = f"{whole} {following.strip()}", following
        certain = whole if is_unfinished else certain
    return whole


def _is_unfinished(text: str) -> bool:
    """Whether a title ends with its subsystem's colon, or within quotation marks."""
    last = text.rfind('"')
    is_open = text.count('"') % 2 == 1 and (last == 0 or text[last - 1] in " (:")
    return text.endswith(":") or is_open or text.rfind("“") > text.rfind("”")


def refused(commands: Commands, why: str, words: Collection[Word] = tuple(Word)) -> Commands:
    """Return the commands with none of these words valid, each with the same error message for the writer."""
    good = tuple(command for command in commands.good if command.word not in words)
    bad = tuple(
        BadCommand(f"{command.word.value} {command.argument}".strip(), why, command.line)
        for command in commands.good
        if command.word in words
    )
    return Commands(good, (*bad, *commands.bad), commands.too_many)


def _read(
    text: str, number: int, foreign: bool, line: str, written: str, below: Sequence[str]
) -> Command | BadCommand | None:
    """Read a command after the prefix: `text`, and as `written`, in its line, with the lines below it."""
    if not text:
        return None if foreign else BadCommand("", "no command after the prefix", number)
    if re.match(r"remind[-:\s]+off\W*\Z", text, re.I):
        return Command(Word.REMIND_OFF, "", number, foreign=foreign)
    if not foreign and re.match(r"(?:un-?)?subscribe\b", text, re.I):
        return None  # about our mail, not about a report (reading.py)
    match = re.match(r"(?:\^\s?)?([A-Za-z-]{1,30})(?:\s*:|\s|[.,;!?。、]|\Z)\s*(.*)", text)
    name = match[1].lower() if match else ""
    if not match or name not in {word.value for word in Word} | _SPELLINGS.keys():
        return None if foreign else BadCommand(text[:200], f"unknown command {(name or text[:30])!r}", number)
    word = _SPELLINGS.get(name) or Word(name)
    argument = written[match.start(2) :].strip()
    is_question = match[0][match.end(1) :].lstrip().startswith("?")
    if is_question or (word not in _NEEDS_ARGUMENT and text.rstrip().endswith("?")):
        return BadCommand(text, f'"{text[:30]}" is a question, and no command', number)
    if word is Word.DUP:
        argument = _OF.sub("", argument, count=1)
    elif word is Word.FIX and name.startswith("fixed"):
        argument = _BY.sub("", argument, count=1)
    if word in _NEEDS_ARGUMENT and not argument and below:
        line, below = below[0], below[1:]
        argument = line.strip()
    if word in _NEEDS_ARGUMENT and not argument:
        return BadCommand(text, f"{word.value} needs an argument", number)
    if word in _TITLES:
        argument = _with_wrapped(argument, line, below)
    return Command(word, argument, number, text.startswith("^"), foreign)


_OF = re.compile(r"\Aof\b\s*:?\s*", re.I)  # "dup of <sha>"
_BY = re.compile(r"\A(?:by|in)\b\s*:?\s*", re.I)


# --- The writer's own lines ---

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
# As `git mailinfo --scissors` knows it: what is below is a patch, up to a second line of this kind.
_SCISSORS = re.compile(r"(?=[^-]*-)(?=\W*(?:8<|>8|cut here))(?:[-\s8<>]|cut here)++\Z", re.I)
_DIFF = re.compile(r"diff -|Index: \S")
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,6}))? \+\d+(?:,(\d{1,6}))? @@")
_DIFF_HEADER = re.compile(
    r"diff |index |Index: |={20,}|(?:new|deleted|old) (?:file )?mode |similarity |dissimilarity |rename |copy |Binary "
    r"|--- |\+\+\+ |\\ "
)
_HEAD = re.compile(r"[\s*]{0,4}(from|to|cc|subject|date|sent|reply-to|message-id|in-reply-to)\s?\*?:\s", re.I)
_HEAD_LINES = 3  # that make a forwarded mail, if From and Subject are among them


def without_foreign_lines(own_text: str) -> str:
    """Return the text with all lines that are not the writer's own words emptied, so that line numbers stay."""
    lines = own_text.split("\n")
    own = lines[: _forwarded_at(lines)]
    kept = [""] * len(lines)
    closing = ""  # the fence or the scissors that end the block
    in_diff = False
    old = new = 0  # lines that the diff's hunk still has
    for number, (line, following) in enumerate(zip(own, (*own[1:], ""), strict=False)):
        fence = _FENCE.match(line)
        mark = fence[1] if fence else "8<" if _SCISSORS.match(line) else ""
        if closing:
            closing = "" if mark == closing else closing
        elif mark:
            closing = mark
        elif old > 0 or new > 0:
            old -= line[:1] not in ("+", "\\")
            new -= line[:1] not in ("-", "\\")
        elif hunk := _HUNK.match(line):
            in_diff = True
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        else:
            begins = _DIFF.match(line) or (line.startswith("--- ") and following.startswith("+++ "))
            in_diff = bool(_DIFF_HEADER.match(line) if in_diff else begins)
            kept[number] = "" if in_diff else line
    return "\n".join(kept)


def _forwarded_at(lines: Sequence[str]) -> int:
    """Return the line at which the header of a forwarded mail begins; the number of lines if there is none."""
    start, names = 0, set[str]()
    for number, line in enumerate(lines):
        match = _HEAD.match(line[:40])
        if not match:
            start, names = number + 1, set()
            continue
        names.add(match[1].lower())
        if len(names) >= _HEAD_LINES and {"from", "subject"} <= names:
            return start
    return len(lines)
