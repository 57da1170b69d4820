"""What a mail does to a report: by itself, as a suggestion, or nothing (DESIGN rules 4 and 8).

The plain effects only: commands, patches, notices of merges, and the answer that ends the silence.
Each is a rule with a name; the first that fits, decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.replies.commands import Command, Word
from bot.replies.kinds import Kind
from bot.replies.reading import Reading
from tracker.status import Happening, Role


class Relation(StrEnum):
    """How a mail came to be about a report."""

    CLOSES = "closes"
    THREAD = "thread"
    TAG = "tag"
    LINK = "link"
    CULPRIT = "culprit"  # a patch elsewhere that says to fix or revert it


class Mode(StrEnum):
    """How far an effect goes."""

    AUTO = "auto"
    SUGGEST = "suggest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Effect:
    """What follows from a mail for one report. `happening` None: nothing. `quote` is the evidence."""

    happening: Happening | None
    mode: Mode
    rule: str
    quote: str = ""
    title: str = ""
    commit: str = ""
    tree: str = ""
    remark: str = ""


NOTHING = Effect(None, Mode.NONE, "")
Rule = Callable[[Reading, "Role | None", Relation], Effect]

# The names that `explain` uses for effects (its state is the taxonomy's status_effect).
EFFECT_NAMES: dict[Happening | None, str] = {
    None: "none",
    Happening.RESPONDED: "responded",
    Happening.FIX_PROPOSED: "fix_proposed",
    Happening.FIX_QUEUED: "fix_queued",
    Happening.EXPECTED: "wontfix",
    Happening.INVALID: "invalid",
    Happening.DUPLICATE: "duplicate",
    Happening.FIX_WITHDRAWN: "fix_failed",
}

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

_PATCH_RULES = {Relation.CLOSES: "patch_closes_report", Relation.CULPRIT: "patch_names_culprit"}

_COURTESY = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|thx|cheers|ok|okay|ack|fyi|best|regards|sincerely|a lot|very much|so much|for"
    r"|the|this|your|report|reporting|information|it|all|many|much|you|and|br|kind)\b|[\W\d_]+",
    re.I,
)
_APPLIED = re.compile(
    r"^[ \t]*(?:(?:i(?:'ve| have)?|now|patch(?:es)?|both|all|series|thanks?,?)\s+){0,3}"
    r"(?:applied|queued|picked up|merged)\b[^\n?]{0,200}",
    re.I | re.M,
)


def effects_of(reading: Reading, role: Role | None, relation: Relation, policy: str = "verified") -> tuple[Effect, ...]:
    """What the mail does to one report, most telling effect first; never empty.

    `role` is the writer's to this report, None where its people are unknown. A report that is merely
    linked to is not changed. Under the policies `verified` and `maintainers` what needs proof becomes
    a suggestion.
    """
    if relation is Relation.LINK:
        return (NOTHING,)
    if relation is Relation.CULPRIT:
        return (replace(_patch(reading, role, relation), mode=Mode.SUGGEST),)
    if reading.kind is Kind.ROBOT:
        return (_bounded(_merge_notice(reading), policy, is_command=False),)
    if reading.kind not in (Kind.PERSON, Kind.BOT_OPERATOR):
        return (NOTHING,)
    commanded = tuple(_bounded(_commanded(each), policy, is_command=True) for each in reading.commands.good)
    rules: tuple[Rule, ...] = (_patch, _says_applied, _answer)
    for rule in rules:
        effect = rule(reading, role, relation)
        if effect.happening:
            return (*commanded, _bounded(effect, policy, is_command=False))
    return commanded or (NOTHING,)


def _bounded(effect: Effect, policy: str, *, is_command: bool) -> Effect:
    """Without proof of who wrote, a command only suggests; strict installations let nothing act."""
    if policy == "open" or (policy == "verified" and not is_command):
        return effect
    return replace(effect, mode=Mode.SUGGEST)


def _commanded(command: Command) -> Effect:
    text = command.argument
    return Effect(
        COMMANDED[command.word],
        Mode.AUTO,
        f"command_{command.word.replace(' ', '_')}",
        quote=f"{command.word} {text}".strip(),
        title=text if command.word in _IN_TITLE else "",
        remark="" if command.word in _IN_TITLE else text,
    )


def _merge_notice(reading: Reading) -> Effect:
    """A robot says that the patch of this thread entered a tree."""
    if not reading.notice:
        return NOTHING
    note = reading.notice
    where = f"{note.tree} ({note.branch})"
    return Effect(Happening.FIX_QUEUED, Mode.AUTO, "merge_notice", quote=note.quote, commit=note.sha, tree=where)


def _patch(reading: Reading, role: Role | None, relation: Relation) -> Effect:
    """A person answers with a patch, or posts one elsewhere that closes the report."""
    if reading.kind is not Kind.PERSON or not reading.patches:
        return NOTHING
    patch = reading.patches[0]
    rule = _PATCH_RULES.get(relation, "patch_in_reply")
    quote = patch.title or (patch.files[0] if patch.files else "a patch")
    return Effect(Happening.FIX_PROPOSED, Mode.AUTO, rule, quote=quote, title=patch.title)


def _says_applied(reading: Reading, role: Role | None, relation: Relation) -> Effect:
    """Prose that says "applied": a weak hint, never a state by itself."""
    found = _APPLIED.search(reading.own_text)
    if not found:
        return NOTHING
    return Effect(Happening.FIX_QUEUED, Mode.SUGGEST, "says_applied", quote=found[0].strip())


def _answer(reading: Reading, role: Role | None, relation: Relation) -> Effect:
    """Author or maintainer says something of substance; a mere thanks is not an answer."""
    if role not in (Role.AUTHOR, Role.MAINTAINER, None) or reading.kind is not Kind.PERSON:
        return NOTHING
    commanded = {command.line for command in reading.commands.good}
    lines = reading.own_text.split("\n")
    text = "\n".join(line for number, line in enumerate(lines, start=1) if number not in commanded)
    names = "|".join(re.escape(word) for word in reading.mail.author.name.split()[:6])
    rest = _COURTESY.sub("", re.sub(rf"\b(?:{names})\b", "", text, flags=re.I) if names else text)
    if not rest.strip() and not commanded:
        return NOTHING
    return Effect(
        Happening.RESPONDED,
        Mode.AUTO,
        "reply_of_author",
        quote=first_sentence(text) or first_sentence(reading.own_text),
    )


def first_sentence(text: str) -> str:
    """The first sentence that says something, on one line, for people to see what was relied on."""
    for paragraph in re.split(r"\n\s*\n", text[:20_000]):
        line = " ".join(paragraph.split())
        if len(_COURTESY.sub("", line).strip()) > 2:
            found = re.match(r".{10,300}?[.!?](?=\s|\Z)", line)
            return found[0] if found else line[:300]
    return ""
