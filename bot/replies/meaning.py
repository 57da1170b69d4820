"""What the sentences of a mail mean: every rule asked of every sentence, in the order of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.replies.intent import Intent
from bot.replies.kinds import Kind
from bot.replies.reading import Reading
from bot.replies.rules import RULES, By, Rule
from bot.replies.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Found:
    """An intent, the words that it was read from, and the rule; None for what needs no sentence, such as a patch."""

    intent: Intent
    evidence: str
    rule: Rule | None = None


def found_in(reading: Reading, *, improvement: bool = False) -> tuple[Found, ...]:
    """Everything that the mail means, in the order of the rules; each rule once, with its first sentence."""
    return (*_facts(reading), *_read(reading, improvement))


def _facts(reading: Reading) -> Iterator[Found]:
    """What can be read without understanding a sentence."""
    for patch in reading.patches:
        intent = Intent.PATCH_INLINE if patch.source == "inline" else Intent.PATCH_ATTACHED
        yield Found(intent, patch.title or ", ".join(patch.files[:3]))
    for command in reading.commands.good:
        yield Found(Intent.TRACKER_COMMAND, f"{command.word} {command.argument}".strip())
    if reading.notice:
        yield Found(Intent.MERGE_NOTIFICATION, reading.notice.quote)


def _read(reading: Reading, improvement: bool) -> Iterator[Found]:
    if reading.kind not in (Kind.PERSON, Kind.BOT_OPERATOR):
        return
    who = By.OPERATOR if reading.kind is Kind.BOT_OPERATOR else By.DEVELOPER
    for rule in RULES:
        if rule.by not in (who, By.ANYONE) or rule.improvement not in (None, improvement):
            continue
        sentence = next((each for each in reading.sentences if _says(rule, each, reading)), None)
        if sentence:
            yield Found(rule.intent, sentence.text, rule)


def _says(rule: Rule, sentence: Sentence, reading: Reading) -> bool:
    return rule.reads(sentence) and (not rule.to_reporter or reading.audience.is_reporter(sentence))
