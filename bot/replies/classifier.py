"""The learned reading of a reply: its features, a linear model over them, and when that acts.

Features are word n-grams of the reply's sentences and of what they answer, who wrote it, and what the rules found.
Numbers, shas, links and names differ from mail to mail, so each kind becomes one word. The weights are loaded when
the first reply is read. `decide` combines what the rules found with what the model thinks: at most one automatic
effect and one suggestion. The classifier alone closes nothing (DESIGN rule 4).

The thresholds were chosen by cross-validation over the labelled threads (`make accuracy`; figures in
docs/reading.md). How the model is trained is in benchmarks/accuracy/training.py.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bot.mail.patches import bare_title
from bot.replies.rules.notation import Effect, Mode, event_kind_of, name_of
from bot.replies.sentences import Sentence, has_content, is_salutation
from tracker.domain.events import EventKind, Role

# --- The commit named as a fix ---

# Its title in quotes, its sha, or both: 3b1f0c9d2e44 ("mm: a title").
_TITLE = re.compile(r"\(?\"\s?((?:\[[^\]\"]{1,40}\] ?)?[^\s\":][^\"]{0,40}: [^\"]{4,200})\"")
_SHA = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")


def named_commit(sentence: str) -> tuple[str, str]:
    """Return title and sha, each "" if not named. A title has a subsystem before its colon; a sha has a letter and a
    digit, so that no number or word is taken for one.
    """
    title, sha = _TITLE.search(sentence), _SHA.search(sentence)
    return (title[1].strip() if title else "", sha[0] if sha else "")


# --- Features ---

MOST_SENTENCES = 60
_LONGEST_QUOTE = 12  # words
_WORDS, _QUOTE, _FLAG = 6.0, 0.3, 2.0  # weights of the groups of features
# What differs from mail to mail becomes one word each, so that "-12.8%" and "-9%" are the same.
_PLACEHOLDERS = (
    (re.compile(r"https?://\S{0,200}lore\.\S{1,500}"), " _lore_ "),
    (re.compile(r"https?://\S{1,500}"), " _url_ "),
    (re.compile(r"\b(?=[a-f]{0,40}\d)[0-9a-f]{7,40}\b"), " _sha_ "),
    (re.compile(r"[-+]?\d{1,20}(?:\.\d{1,20})?\s?%"), " _percent_ "),
    (re.compile(r"\b\w{1,100}(?:_\w{1,100}){1,20}(?:\(\))?|\b\w{1,100}\(\)|\b\w{1,100}->\w{1,100}"), " _name_ "),
    (re.compile(r"\bv\d{1,5}(?:\.\d{1,5}){0,3}(?:-rc\d{1,3})?\b"), " _version_ "),
    (re.compile(r"\b\d{1,20}(?:\.\d{1,20})?\w?\b"), " _number_ "),
)
_PLACEHOLDER = re.compile("_[a-z]+_")
_TOKEN = re.compile(r"[a-z_']+|[?!]")
_WRITERS: Mapping[Role | None, str] = {Role.REPORTER: "lab", Role.THIRD_PARTY: "third party", Role.MACHINE: "machine"}


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """What the classifier looks at in a reply. `by_person`: whether a person reported the regression, not a robot;
    `found`: the names of rules that matched, and the effects they give.
    """

    sentences: tuple[Sentence, ...]
    role: Role | None
    by_person: bool
    improvement: bool
    has_patch: bool
    has_table: bool
    found: tuple[str, ...]


def features(facts: ReplyFacts) -> dict[str, float]:
    """Return the features of a reply: those of its words have length _WORDS in all, whatever its length."""
    sentences = facts.sentences[:MOST_SENTENCES]
    counts = Counter(gram for sentence in sentences for gram in grams(sentence.text))
    weights = {gram: 1 + math.log(count) for gram, count in counts.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    values = {gram: _WORDS * weight / length for gram, weight in weights.items()}
    for sentence in sentences:
        values |= {f"> {gram}": _QUOTE for gram in _of(_tokens(sentence.below)[-_LONGEST_QUOTE:], 2)}
    writer = _WRITERS.get(facts.role, "developer")
    flags = {
        f"writer: {writer}": True,
        "patch": facts.has_patch,
        "table": facts.has_table,
        f"patch of {writer}": facts.has_patch,
        f"table of {writer}": facts.has_table,
        "improvement": facts.improvement,
        f"{writer} in a person's thread": facts.by_person,
    }
    values |= {name: _FLAG for name, holds in flags.items() if holds}
    values |= {f"found: {name}": 1.0 for name in facts.found}
    values[f"length: {min(5, int(math.log2(len(facts.sentences) + 1)))}"] = 0.7
    values["questions"] = min(3, sum(sentence.asks for sentence in sentences)) * 0.5
    values["below a question"] = float(any(sentence.below.rstrip().endswith("?") for sentence in sentences))
    return {name: value for name, value in values.items() if value}


def grams(text: str) -> Iterator[str]:
    """Yield the word n-grams of a sentence, n = 1 to 3, with its beginning and its end as words."""
    return _of(["^", *_tokens(text), "$"], 3)


def readable(gram: str) -> str:
    """Return an n-gram as people write it: "^ see _sha_ $" is "see SHA"."""
    words = (token.strip("_").upper() if _PLACEHOLDER.fullmatch(token) else token for token in gram.split())
    return " ".join(word for word in words if word not in ("^", "$"))


def _of(words: Sequence[str], longest: int) -> Iterator[str]:
    for size in range(1, longest + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])


def _tokens(text: str) -> list[str]:
    text = text.lower()
    for pattern, name in _PLACEHOLDERS:
        text = pattern.sub(name, text)
    return [word[:30] for word in _TOKEN.findall(text)]


# --- The model ---

FILE = Path(__file__).with_name("model.npz")
SCALE = 256.0  # weights are stored as 16-bit integers, in units of 1/SCALE

if TYPE_CHECKING:  # 40 ms to import, which a command that reads no reply does without
    import numpy as np

    _Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
    _Vector = np.ndarray[tuple[int], np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the model thinks of a reply: the probability of each effect, by the taxonomy's names, likeliest first."""

    probabilities: Mapping[str, float]
    sentences: Mapping[str, str]  # the sentence that speaks most for an effect, "" if none does
    words: Mapping[str, tuple[str, ...]]  # the words that weigh most in that sentence

    def certainty(self, effect: str) -> int:
        """Return how probable an effect is, in per cent, 99 at most."""
        return min(99, round(100 * self.probabilities.get(effect, 0.0)))

    def why(self, effect: str) -> str:
        """Return the words that speak most for an effect: '"still see", "worse"'."""
        words = [f'"{shown}"' for gram in self.words.get(effect, ()) if (shown := readable(gram))]
        return ", ".join(dict.fromkeys(words))


@dataclass(frozen=True, slots=True)
class Model:
    """Weights by feature and effect. `trained_on`: the hash of its training data."""

    effects: tuple[str, ...]
    rows: Mapping[str, int]
    weights: _Matrix
    intercepts: _Vector
    trained_on: str

    def opinion(self, facts: ReplyFacts, shown: int = 3) -> Opinion:
        """Return the probabilities of all effects, and the evidence for the likeliest ones."""
        import numpy as np

        by_feature = {name: value for name, value in features(facts).items() if name in self.rows}
        rows = [self.rows[name] for name in by_feature]
        values = np.fromiter(by_feature.values(), np.float32, len(by_feature))
        scores = self.intercepts + values @ self.weights[rows]
        exponents = np.exp(scores - scores.max())
        probabilities = exponents / exponents.sum()
        order = np.argsort(-probabilities, kind="stable")
        texts = [sentence.text for sentence in facts.sentences[:MOST_SENTENCES]]
        telling = {  # more than courtesy, with the n-grams that the model knows
            text: [gram for gram in dict.fromkeys(grams(text)) if gram in by_feature]
            for text in texts
            if has_content(text) and not is_salutation(text)
        }
        evidence = {self.effects[number]: self._evidence(telling, by_feature, int(number)) for number in order[:shown]}
        return Opinion(
            {self.effects[number]: float(probabilities[number]) for number in order},
            {effect: sentence for effect, (sentence, _) in evidence.items()},
            {effect: words for effect, (_, words) in evidence.items()},
        )

    def _evidence(
        self, telling: Mapping[str, Sequence[str]], by_feature: Mapping[str, float], effect: int
    ) -> tuple[str, tuple[str, ...]]:
        """Return the sentence whose words speak most for an effect, and these words."""
        best, chosen = 0.0, ""
        words: tuple[str, ...] = ()
        for sentence, ngrams in telling.items():
            weighed = {gram: by_feature[gram] * float(self.weights[self.rows[gram], effect]) for gram in ngrams}
            if (total := sum(weighed.values())) > best or not chosen:
                best, chosen = total, sentence
                heaviest = sorted((-weight, gram) for gram, weight in weighed.items() if weight > 0)
                words = tuple(gram for _, gram in heaviest[:3])
        return chosen, words


@cache
def load(file: Path = FILE) -> Model:
    """Return the model in a file that `save` wrote."""
    import numpy as np

    with np.load(file) as stored:
        head = json.loads(bytes(stored["head"]).decode())
        names = bytes(stored["names"]).decode().split("\n")
        weights = stored["weights"].astype(np.float32) / SCALE
        intercepts = stored["intercepts"].astype(np.float32)
    rows = {name: number for number, name in enumerate(names)}
    return Model(tuple(head["effects"]), rows, weights, intercepts, head["trained_on"])


# --- When it acts ---

RULE = "classifier"
# Chosen by cross-validation over the labelled threads (make accuracy; docs/reading.md has its figures), some of them
# also by 199 more replies to robots' reports, which are not kept here. The threads put aside had no part in the choice.
ACTS = 0.65  # the probability above which an effect acts by itself
SURER = {"disputed": 0.85, "fix_failed": 0.90}  # the same for what was wrong most often, where no rule finds it
AGREES = 0.35  # the same for one that a rule finds, too
# The same where little is at stake, as when the lab has answered something or is asked for something; and for what is
# said in few words, of which there are few examples to learn from: a maintainer has taken the fix.
AGREES_MILDLY = {"info_provided": 0.25, "needs_info": 0.2, "fix_queued": 0.0}
AGREES_TO_CLOSE = 0.5  # and that closes the report; its writer must be proven, too
ENGAGED = 0.70  # the probability, of all effects that are also a response, above which it is recorded as a response
ENGAGED_FIRST = 0.50  # the same where a mere response is the likeliest of all
SUGGESTED = 0.50  # below this nothing is suggested; three in four that are left are right
SUGGESTED_BY_RULE = 0.40  # the same for what a rule would do by itself and the classifier doubts
MEANINGLESS = 0.5  # the probability of "none" from which nothing is suggested
SAYS_SOMETHING = 0.10  # the probability of an effect from which its author has responded, whatever it means
# The classifier alone closes nothing (DESIGN rule 4), nor does it say that a fix was applied or works: a rule must find
# the sentence that does.
CLOSING = frozenset({"dropped", "wontfix", "invalid", "duplicate", "improvement_ack"})
_MUST_BE_SAID = frozenset({"fix_queued", "fix_confirmed"})
# How often careful readers would also accept "responded", by the effect that they name first (labelled threads).
ALSO_RESPONDED: Mapping[str, float] = {
    "responded": 1.0,
    "none": 0.3,
    "disputed": 0.4,
    "needs_info": 0.3,
    "wontfix": 0.5,
    "working": 0.4,
    "fix_queued": 0.3,
    "improvement_ack": 0.5,
    "dropped": 0.1,
}
_FIXES = (EventKind.FIX_PROPOSED, EventKind.FIX_QUEUED, EventKind.FIX_CONFIRMED)


def decide(effects: Sequence[Effect], opinion: Opinion, *, may_act: bool = True) -> list[Effect]:
    """Return the effects of a reply, the one that acts first: at most one of them, and at most one suggestion.

    `effects`: the effects by rules. What they find that names no state, such as a request for a test, is kept as it is.
    """
    by_rule = {name_of(effect): effect for effect in reversed(effects)}
    beside = [effect for effect in effects if effect.kind and name_of(effect) == "none"]
    acting = _acting(by_rule, opinion) if may_act else ""
    decided = [_effect(acting, by_rule.get(acting), opinion, Mode.AUTO)] if acting else []
    likeliest = next(iter(opinion.probabilities))
    rule = by_rule.get(likeliest)
    is_said = rule is not None or likeliest not in CLOSING | {"fix_confirmed"}  # a sentence must say so
    is_new = likeliest not in ("none", acting) and not (acting and likeliest == "responded")  # as whatever acts is
    least = SUGGESTED_BY_RULE if _is_auto(rule) else SUGGESTED
    if is_said and is_new and opinion.probabilities[likeliest] >= least:
        decided.append(_effect(likeliest, rule, opinion, Mode.SUGGEST))
    return [*decided, *beside]


def says_something(opinion: Opinion) -> bool:
    """Whether a reply is about the matter, so that its author has responded, whatever it says."""
    first, second, *_ = opinion.probabilities
    if first == "none" and opinion.probabilities[first] >= MEANINGLESS:
        return False
    return any(name != "none" and opinion.probabilities[name] >= SAYS_SOMETHING for name in (first, second))


def _acting(by_rule: Mapping[str, Effect], opinion: Opinion) -> str:
    """Return the name of the effect that acts by itself, "" for none."""
    likely = opinion.probabilities
    first = next(iter(likely))
    not_alone = CLOSING | {"none", "responded"} | (_MUST_BE_SAID - by_rule.keys())
    enough = ACTS if first in by_rule else SURER.get(first, ACTS)
    if first not in not_alone and likely[first] >= enough:
        return first
    for name in (first, *by_rule):
        rule = by_rule.get(name)
        is_auto = _is_auto(rule) and name not in ("none", "responded")
        agrees = AGREES_TO_CLOSE if name in CLOSING else AGREES_MILDLY.get(name, AGREES)
        if is_auto and likely.get(name, 0.0) >= agrees:
            return name
    engaged = sum(probability * ALSO_RESPONDED.get(name, 0.0) for name, probability in likely.items())
    least = ENGAGED_FIRST if first == "responded" else ENGAGED
    return "responded" if engaged >= least and first != "none" else ""


def _is_auto(effect: Effect | None) -> bool:
    return effect is not None and effect.mode is Mode.AUTO


def _effect(name: str, rule: Effect | None, opinion: Opinion, mode: Mode) -> Effect:
    """Return the effect of this name as the rule found it, else with the sentence that decides."""
    if rule:
        return replace(rule, mode=mode, why=opinion.why(name), certainty=opinion.certainty(name))
    quote = opinion.sentences.get(name, "")
    kind = event_kind_of(name)
    title, sha = named_commit(quote) if kind in _FIXES else ("", "")
    rule_name = name if name == "improvement_ack" else RULE
    return Effect(
        kind,
        mode,
        rule_name,
        quote,
        title=bare_title(title),
        remark=sha,
        why=opinion.why(name),
        certainty=opinion.certainty(name),
    )
