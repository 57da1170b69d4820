"""What a reply says, rule by rule: its intents, and the effects that the rules give them.

Each rule (rules/) is tried on every sentence, in the order of the table, and counts once, with the first sentence that
it matches. Which rules apply depends on who writes: a developer, the lab, or a user of the kernel. A patch, a command
and a robot's notice are intents that need no sentence. The second part reads what stands beside sentences: a table of
measurements, an answer below a quoted question, a Tested-by: line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.mail.patches import bare_title
from bot.replies.classifier import named_commit
from bot.replies.reading import Audience, Reading, SenderKind
from bot.replies.rules import RULES
from bot.replies.rules.notation import By, Effect, Intent, Mode, Rule
from bot.replies.sentences import Sentence, has_content, is_greeting
from tracker.domain.events import EventKind


@dataclass(frozen=True, slots=True)
class FoundIntent:
    """An intent, the text it was read from, and the rule: None where no sentence is needed, such as for a patch."""

    intent: Intent
    evidence: str
    rule: Rule | None = None


def intents_of(reading: Reading, *, improvement: bool = False) -> tuple[FoundIntent, ...]:
    """Return all intents of a mail in order of the rules; each rule once, with the first sentence that matched."""
    intents = [
        FoundIntent(
            Intent.PATCH_INLINE if patch.source == "inline" else Intent.PATCH_ATTACHED,
            patch.title or ", ".join(patch.files[:3]),
        )
        for patch in reading.patches
    ]
    intents += (
        FoundIntent(Intent.TRACKER_COMMAND, f"{command.word} {command.argument}".strip())
        for command in reading.commands.good
    )
    if reading.notice:
        intents.append(FoundIntent(Intent.MERGE_NOTIFICATION, reading.notice.quote))
    if reading.kind is SenderKind.BOT_OPERATOR:
        answer = first_answer(reading.sentences)
        table = "a comparison of measurements" if holds_table(reading.own_text) else ""
        if provided := table or (answer.text if answer else ""):
            intents.append(FoundIntent(Intent.BOT_PROVIDES_INFO, provided))
        intents += intents_by_rules(reading, By.OPERATOR, improvement)
    elif reading.kind is SenderKind.PERSON:
        intents += intents_by_rules(reading, By.DEVELOPER, improvement)
        if all(intent.intent is Intent.THANKS for intent in intents):
            statement = next((sentence.text for sentence in reading.sentences if len(sentence.text) > 30), "")
            intents += [FoundIntent(Intent.DISCUSSION, statement)] if statement else []
    return tuple(intents)


def intents_by_rules(reading: Reading, who: By, improvement: bool) -> tuple[FoundIntent, ...]:
    """Return the intents that the rules for one kind of writer find. In a person's thread, developers help, too."""
    helped = who is By.DEVELOPER and bool(reading.reporters)
    return _of_sentences(reading.sentences, reading.audience, who, improvement, helped, reading.rules_off)


@lru_cache(maxsize=8)  # a mail may be about 20 reports, and its sentences are asked for several times
def _of_sentences(
    sentences: tuple[Sentence, ...],
    audience: Audience,
    who: By,
    improvement: bool,
    helped: bool,
    rules_off: frozenset[str],
) -> tuple[FoundIntent, ...]:
    intents = []
    for rule in RULES:
        helps = rule.by is By.HELPER and helped
        if not (helps or rule.by in (who, By.ANYONE)) or rule.improvement not in (None, improvement):
            continue
        if rule.name in rules_off:
            continue
        for sentence in sentences:
            if rule.matches(sentence) and (not rule.to_reporter or audience.is_reporter(sentence)):
                intents.append(FoundIntent(rule.intent, sentence.text, rule))
                break
    return tuple(intents)


def effects_of_rules(intents: Iterable[FoundIntent]) -> Iterator[Effect]:
    """Yield the effects of rules, each event kind once: the first may be automatic, later ones are suggestions."""
    seen: set[EventKind] = set()
    decided = False
    for intent in intents:
        rule = intent.rule
        if rule is None or rule.does is None or rule.does in seen or (rule.alone and decided):
            continue
        seen.add(rule.does)
        acts = rule.mode is Mode.AUTO and not decided and not rule.aside
        decided = decided or not rule.aside
        fix = rule.does in (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED)
        title, sha = named_commit(intent.evidence) if fix else ("", "")
        mode = Mode.AUTO if acts else Mode.SUGGEST
        yield Effect(rule.does, mode, rule.name, quote=intent.evidence, title=bare_title(title), remark=sha)


# --- What a reply shows beside its sentences ---

SPREAD = r"(?: {1,8}± {0,3}\d{1,3}%)?"  # of a mean in the robot's tables, where it is above 2 %
# The head of the robot's tables, or a row of one: mean, change, mean, metric.
_TABLE = re.compile(
    rf"%stddev {{1,20}}%change|^ {{0,20}}[\d.e+]{{1,20}}{SPREAD} {{1,20}}[+-]\d[\d.]{{0,8}}%?"
    r" {1,20}[\d.e+]{1,20}(?: |$)",
    re.M,
)


def holds_table(own_text: str) -> bool:
    """Whether the mail shows a comparison of measurements."""
    return bool(_TABLE.search(own_text[:200_000]))


def first_answer(sentences: Sequence[Sentence]) -> Sentence | None:
    """Return the first sentence below a quoted question that is neither a greeting nor a question, or None."""
    below = (sentence for sentence in sentences if sentence.below.endswith("?") and not sentence.asks)
    return next((sentence for sentence in below if not is_greeting(sentence)), None)


def tag_of_tester(reading: Reading, *, by_writer: bool = False) -> str:
    """Return the Tested-by: line of a mail, or "". `by_writer`: only one with the writer's own address."""
    address = reading.mail.author.email if by_writer else ""
    values = (trailer.value for trailer in reading.trailers if trailer.key == "Tested-by")
    return next((f"Tested-by: {value}" for value in values if address in value.lower()), "")


def has_substance(reading: Reading) -> bool:
    """Whether the mail says more than courtesy; a command alone is an answer, too."""
    return bool(reading.commands.good) or has_content(reading.own_text, _names_in(reading))


def evidence_of(reading: Reading) -> str:
    """Return the first sentence that says something, as evidence."""
    texts = [sentence.text for sentence in reading.sentences] or [" ".join(reading.own_text[:2000].split())[:300]]
    names = _names_in(reading)
    telling = [text for text in texts[:50] if has_content(text, names)]
    return next((text for text in telling if len(text.split()) > 2), "") or next(iter(telling), texts[0])  # not "Yes."


def _names_in(reading: Reading) -> set[str]:
    """Return the names of people on the thread, which a greeting holds beside courtesy."""
    return {*reading.mail.author.name.split()[:6], *reading.audience.reporters, *reading.audience.others}
