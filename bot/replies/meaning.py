"""Match the rules against the sentences of a mail: every rule on every sentence, in order of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.replies.intents import Intent
from bot.replies.lab_answers import first_answer, holds_table
from bot.replies.prose.sentences import Sentence
from bot.replies.reading import Reading
from bot.replies.rules import RULES, By, Rule
from bot.replies.sender_kind import SenderKind


@dataclass(frozen=True, slots=True)
class FoundIntent:
    """An intent, the text it was read from, and the rule: None where no sentence is needed, such as for a patch."""

    intent: Intent
    evidence: str
    rule: Rule | None = None


def intents_of(reading: Reading, *, improvement: bool = False) -> tuple[FoundIntent, ...]:
    """Return all intents of a mail in order of the rules; each rule once, with the first sentence that matched."""
    found = (*_facts(reading), *_read(reading, improvement))
    if reading.kind is SenderKind.PERSON and reading.sentences and all(each.intent is Intent.THANKS for each in found):
        statement = next((each.text for each in reading.sentences if len(each.text) > 30), "")
        found += (FoundIntent(Intent.DISCUSSION, statement),) if statement else ()
    return found


def _facts(reading: Reading) -> Iterator[FoundIntent]:
    """Yield the intents that need no sentence."""
    for patch in reading.patches:
        intent = Intent.PATCH_INLINE if patch.source == "inline" else Intent.PATCH_ATTACHED
        yield FoundIntent(intent, patch.title or ", ".join(patch.files[:3]))
    for command in reading.commands.good:
        yield FoundIntent(Intent.TRACKER_COMMAND, f"{command.word} {command.argument}".strip())
    if reading.notice:
        yield FoundIntent(Intent.MERGE_NOTIFICATION, reading.notice.quote)


def _read(reading: Reading, improvement: bool) -> Iterator[FoundIntent]:
    if reading.kind not in (SenderKind.PERSON, SenderKind.BOT_OPERATOR):
        return
    who = By.OPERATOR if reading.kind is SenderKind.BOT_OPERATOR else By.DEVELOPER
    if who is By.OPERATOR and (info := _provided_info(reading)):
        yield FoundIntent(Intent.BOT_PROVIDES_INFO, info)
    for rule in RULES:
        if rule.by not in (who, By.ANYONE) or rule.improvement not in (None, improvement):
            continue
        if rule.name in reading.rules_off:
            continue
        sentence = next((each for each in reading.sentences if _matches(rule, each, reading)), None)
        if sentence:
            yield FoundIntent(rule.intent, sentence.text, rule)


def _provided_info(reading: Reading) -> str:
    """Return what a lab's reply provides: a comparison, or an answer below a question; "" for neither."""
    if holds_table(reading.own_text):
        return "a comparison of measurements"
    answer = first_answer(reading.sentences)
    return answer.text if answer else ""


def _matches(rule: Rule, sentence: Sentence, reading: Reading) -> bool:
    return rule.matches(sentence) and (not rule.to_reporter or reading.audience.is_reporter(sentence))
