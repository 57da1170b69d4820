"""What a reply says, rule by rule: its intents, and the effects that the rules give them.

Each rule (rules/) is tried on every sentence, in the order of the table, and counts once, with the first sentence that
it matches. Which rules apply depends on who writes: a developer, the lab, or a user of the kernel. A patch, a command
and a robot's notice are intents that need no sentence. The second part reads what stands beside sentences: a table of
measurements, an answer below a quoted question, a Tested-by: line. The third is about the lab's replies, which test
candidates and answer the authors' questions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from bot.mail.patches import bare_title
from bot.replies.classifier import named_commit
from bot.replies.reading import Audience, Reading, SenderKind
from bot.replies.rules import RULES
from bot.replies.rules.notation import By, Effect, Intent, MailContext, Mode, Rule
from bot.replies.sentences import Sentence, has_content, is_greeting, is_polite
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


# --- What a lab's reply does: a test's outcome, an answer, or a question ---
# The lab's words count, and so does what it measured: a comparison of parent, culprit and candidate says by itself
# whether the candidate helps, though one that no sentence explains is only suggested. An outcome that the next sentence
# takes back ("but …") is only suggested, too.

_YOU = re.compile(r"\byour?\b", re.I)
_REQUEST = re.compile(
    r"\A(?!.*\bif\b).*\b(?:please|pls|kindly) (?:\w+ )?(?:tell|send|share|provide|attach|post) (?:us|me|your|the)\b",
    re.I,
)
_BUT = re.compile(r"(?:but|however|though|although|still|except|unfortunately)\b", re.I)


def lab_effects(reading: Reading, context: MailContext) -> Iterator[Effect]:
    """Yield the effects of a lab operator's reply: a test result, an answer, or a retraction."""
    matches = intents_of(reading, improvement=context.improvement)
    intents = {intent.intent for intent in matches}
    table = holds_table(reading.own_text)
    if table or Intent.BOT_WILL_TEST in intents:
        matches = tuple(match for match in matches if match.intent is not Intent.BOT_CANNOT_TEST)
    outcome = next(effects_of_rules(matches), None)
    tested = tag_of_tester(reading)
    if Intent.BOT_WILL_TEST in intents and not table:
        tested = ""  # the tag is offered for when the test has passed
        if outcome and outcome.kind is EventKind.FIX_CONFIRMED:
            outcome = None
    if tested and (outcome is None or outcome.kind is EventKind.ANSWERED):
        outcome = Effect(EventKind.FIX_CONFIRMED, Mode.AUTO, "operator_tested_by", quote=tested)
    helped = None if context.improvement else candidate_helps(reading.own_text)
    if outcome and outcome.kind is not EventKind.ANSWERED:
        yield _qualified(outcome, reading, matches)
    elif helped is not None:
        kind = EventKind.FIX_CONFIRMED if helped else EventKind.FIX_FAILED
        yield Effect(kind, Mode.SUGGEST, "operator_compares", quote=evidence_of(reading))
    elif outcome:
        yield outcome
    elif table:
        yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_measured", quote=evidence_of(reading))
    elif Intent.BOT_WILL_TEST not in intents:
        questions = [match.evidence for match in matches if match.intent is Intent.BOT_ASKS]
        answers = list(_answer_effects(reading.sentences, asks=bool(questions)))
        yield from answers
        asked = (text for text in questions if "?" in text or _REQUEST.search(text))
        if not answers and (question := next(filter(_YOU.search, asked), "")):
            # Courtesy ("please let us know") and thoughts ("should we align these?") ask nobody for anything.
            yield Effect(EventKind.ASKED, Mode.SUGGEST, "operator_asks", quote=question)


def _answer_effects(sentences: Sequence[Sentence], *, asks: bool) -> Iterator[Effect]:
    """Yield the effect of an answer without a measurement; if the lab also asks something, it is only suggested."""
    if answer := first_answer(sentences):
        yield Effect(EventKind.ANSWERED, Mode.SUGGEST if asks else Mode.AUTO, "operator_answers", quote=answer.text)
    elif not asks:
        for sentence in sentences:
            if not sentence.asks and len(sentence.text) > 30 and not is_polite(sentence):
                yield Effect(EventKind.ANSWERED, Mode.AUTO, "operator_tells", quote=sentence.text)
                break


def _qualified(outcome: Effect, reading: Reading, intents: Sequence[FoundIntent]) -> Effect:
    """Return the outcome of a test; as a suggestion if other sentences contradict it."""
    if outcome.rule == "operator_ineffective":
        for intent in intents:
            if intent.rule and intent.rule.name == "operator_confirms" and intent.evidence != outcome.quote:
                rule = "operator_confirms_with_caveat"
                return Effect(EventKind.FIX_CONFIRMED, Mode.SUGGEST, rule, quote=intent.evidence)
    texts = [sentence.text for sentence in reading.sentences]
    taken_back = any(text == outcome.quote and _BUT.match(following) for text, following in pairwise(texts))
    return replace(outcome, mode=Mode.SUGGEST) if taken_back and outcome.kind is EventKind.FIX_CONFIRMED else outcome


# "with your patch", "after applied the change", "the fix"
_OF_PATCH = re.compile(
    r"\b(?:with|after|by|upon|on top of)\b.{0,40}\b(?:patch|change|fix|series|commit|diff)(?:e[sd])?\b"
    r"|\b(?:your|the|this) (?:patch(?:es)?|fix|change|series)\b",
    re.I,
)


def is_measured_so(effect: Effect, reading: Reading, context: MailContext) -> bool:
    """Whether an automatic effect is the outcome of a lab's test and needs no other opinion: its comparison of
    candidates shows the same, or there is none and its sentence speaks of the patch. Of the second kind 15 of 15 were
    right (labelled replies, and 379 that are not kept).
    """
    outcomes = {EventKind.FIX_CONFIRMED: True, EventKind.FIX_FAILED: False}
    if reading.kind is not SenderKind.BOT_OPERATOR or effect.mode is not Mode.AUTO or effect.kind not in outcomes:
        return False
    helped = None if context.improvement else candidate_helps(reading.own_text)
    return helped is outcomes[effect.kind] or (helped is None and bool(_OF_PATCH.search(effect.quote)))


# --- Comparisons of candidates ---

# A row of a comparison of three or more kernels: mean, the culprit's change, its mean, the changes of others, and the
# last one's.
_PERCENT = r"[+-]\d{1,6}(?:\.\d{1,3})?"
_MEAN = rf" {{1,20}}[\d.e+]{{1,20}}{SPREAD}"
_CANDIDATE_ROW = re.compile(
    rf"^{_MEAN.replace('1,20', '0,20', 1)} {{1,20}}({_PERCENT})%(?:{_MEAN} {{1,20}}{_PERCENT}%){{0,6}}"
    rf"{_MEAN} {{1,20}}({_PERCENT})%{_MEAN} {{1,20}}"
    r"(?!perf|proc-vmstat|sched)([\w-]+)\.",
    re.M,
)
# The test's parameters above a table: their names, then their values, "gcc-12/thread/100%/fallocate1/will-it-scale".
_PARAMETERS = re.compile(r"^\S{0,300}\btestcase\b\S{0,300}:\n {0,8}(\S{1,1000})$", re.M)
MOST_LEFT = 0.25  # share of the culprit's change that may remain for a candidate to count as good


def candidate_helps(own_text: str) -> bool | None:
    """Whether the candidate in the last column of a comparison is near the parent again, or on its other side, in the
    row that the culprit changed most: of the rows of the benchmark that the tables are said to be of, if there are any.
    None if there is no comparison of parent, culprit and candidate.
    """
    text = own_text[:200_000]
    matches = _CANDIDATE_ROW.findall(text)
    benchmarks = {name for values in _PARAMETERS.findall(text) for name in values.split("/")}
    rows = [row for row in matches if row[2] in benchmarks] or matches
    changes = ((float(row[0]), float(row[1])) for row in rows)
    culprit, candidate = max(changes, key=lambda pair: abs(pair[0]), default=(0.0, 0.0))
    return candidate / culprit <= MOST_LEFT if culprit else None
