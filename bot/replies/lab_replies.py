"""What a lab's reply does: a test's outcome, an answer, or a question.

The lab's people test candidates and answer the authors' questions. Their words count, and so does what they measured: a
comparison of parent, culprit and candidate says by itself whether the candidate helps, though one that no sentence
explains is only suggested. An outcome that the next sentence takes back ("but …") is only suggested, too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from bot.replies.intents import (
    SPREAD,
    FoundIntent,
    effects_of_rules,
    evidence_of,
    first_answer,
    holds_table,
    intents_of,
    tag_of_tester,
)
from bot.replies.reading import Reading, SenderKind
from bot.replies.rules.notation import Effect, Intent, MailContext, Mode
from bot.replies.sentences import Sentence, is_polite
from tracker.domain.events import EventKind

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


def is_measured_so(effect: Effect, reading: Reading, context: MailContext) -> bool:
    """Whether an automatic effect is the outcome of a lab's test that its comparison of candidates shows, too."""
    outcomes = {EventKind.FIX_CONFIRMED: True, EventKind.FIX_FAILED: False}
    if reading.kind is not SenderKind.BOT_OPERATOR or effect.mode is not Mode.AUTO or effect.kind not in outcomes:
        return False
    helped = None if context.improvement else candidate_helps(reading.own_text)
    return helped is outcomes[effect.kind]


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
