"""A reply as numbers: word n-grams of its sentences and of what they answer, who wrote it, and what the rules found."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.replies.prose.sentences import Sentence
from tracker.domain.events import Role

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
    """What the classifier looks at in a reply. `found`: the names of rules that matched, and the effects they give."""

    sentences: tuple[Sentence, ...]
    role: Role | None
    improvement: bool
    has_patch: bool
    has_table: bool
    found: tuple[str, ...]


def features(facts: ReplyFacts) -> dict[str, float]:
    """Return the features of a reply: those of its words have length _WORDS in all, whatever its length."""
    sentences = facts.sentences[:MOST_SENTENCES]
    counts = Counter(gram for each in sentences for gram in grams(each.text))
    weights = {gram: 1 + math.log(count) for gram, count in counts.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    found = {gram: _WORDS * weight / length for gram, weight in weights.items()}
    found |= {gram: _QUOTE for each in sentences for gram in _quoted_grams(each.below)}
    writer = _WRITERS.get(facts.role, "developer")
    flags = {
        f"writer: {writer}": True,
        "patch": facts.has_patch,
        "table": facts.has_table,
        f"patch of {writer}": facts.has_patch,
        f"table of {writer}": facts.has_table,
        "improvement": facts.improvement,
    }
    found |= {name: _FLAG for name, holds in flags.items() if holds}
    found |= {f"found: {name}": 1.0 for name in facts.found}
    found[f"length: {min(5, int(math.log2(len(facts.sentences) + 1)))}"] = 0.7
    found["questions"] = min(3, sum(each.asks for each in sentences)) * 0.5
    found["below a question"] = float(any(each.below.rstrip().endswith("?") for each in sentences))
    return {name: value for name, value in found.items() if value}


def grams(text: str) -> Iterator[str]:
    """Yield the word n-grams of a sentence, n = 1 to 3, with its beginning and its end as words."""
    return _of(["^", *_tokens(text), "$"], 3)


def readable(gram: str) -> str:
    """Return an n-gram as people write it: "^ see _sha_ $" is "see SHA"."""
    words = (each.strip("_").upper() if _PLACEHOLDER.fullmatch(each) else each for each in gram.split())
    return " ".join(word for word in words if word not in ("^", "$"))


def _quoted_grams(text: str) -> Iterable[str]:
    return (f"> {gram}" for gram in _of(_tokens(text)[-_LONGEST_QUOTE:], 2))


def _of(words: Sequence[str], longest: int) -> Iterator[str]:
    for size in range(1, longest + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])


def _tokens(text: str) -> list[str]:
    text = text.lower()
    for pattern, name in _PLACEHOLDERS:
        text = pattern.sub(name, text)
    return [word[:30] for word in _TOKEN.findall(text)]
