"""Written examples of replies, and those nearest to a sentence.

The examples (fixtures/replies) are invented replies with their meaning; the classifier is trained on them and on the
labelled threads (benchmarks/accuracy/training.py). The nearest examples are those that share the most n-grams with a
sentence, where rare ones weigh more; they are for people who ask why a reply was read as it was.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bot.replies.classifier import grams
from bot.replies.rules.notation import Intent
from tracker.domain.events import Role

# --- Examples ---

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "replies"
EFFECTS = (
    "none", "responded", "working", "needs_info", "info_provided", "fix_proposed", "fix_confirmed", "fix_failed",
    "fix_queued", "dropped", "wontfix", "disputed", "invalid", "duplicate", "improvement_ack",
)  # fmt: skip
ROLES = {
    "author": Role.AUTHOR,
    "maintainer": Role.MAINTAINER,
    "bot_operator": Role.REPORTER,
    "third_party": Role.THIRD_PARTY,
    "regression_tracker": Role.THIRD_PARTY,
    "reporter": Role.REPORTER,  # in a person's thread
    "user": Role.THIRD_PARTY,
}
_KEYS = {"role", "text", "quoted", "patch", "table", "candidate", "asked", "effect", "also", "evidence", "intents"}
_INTENTS = {*Intent, "off_topic"}


@dataclass(frozen=True, slots=True)
class Example:
    """One reply: its text, the line quoted above it, who wrote it, and what it means (fixtures/replies/README.md)."""

    name: str  # file and line
    role: Role
    by_person: bool  # whether a person reported the regression
    text: str
    quoted: str
    has_patch: bool
    effect: str
    evidence: str


def load(folder: Path = FOLDER) -> Iterator[Example]:
    """Yield all examples. Raise ValueError with file and line for one that is malformed."""
    seen: dict[str, str] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            name = f"{file.name}:{number}"
            example = _parsed(name, line)
            if example.text in seen:
                raise ValueError(f"{name}: the same text as {seen[example.text]}; each example must be its own")
            seen[example.text] = name
            yield example


def _parsed(name: str, line: str) -> Example:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{name}: not JSON: {error}") from None
    if fault := _fault_of(given):
        raise ValueError(f"{name}: {fault}")
    return Example(
        name=name,
        role=ROLES[given["role"]],
        by_person=given.get("person", False),
        text=given["text"],
        quoted=given["quoted"],
        has_patch=given["patch"],
        effect=given["effect"],
        evidence=given["evidence"],
    )


def _fault_of(given: Mapping[str, object]) -> str:
    """Return what is wrong with an example, "" if nothing is."""
    if not isinstance(given, dict) or given.keys() - {"person"} != _KEYS:
        return f"the keys must be {', '.join(sorted(_KEYS))}, and perhaps person"
    if given["role"] not in ROLES:
        return f"role {given['role']!r}: must be one of {', '.join(ROLES)}"
    named: Sequence[str] = [given["effect"], *given["also"]]
    if unknown := [name for name in named if name not in EFFECTS]:
        return f"effect {unknown[0]!r}: must be one of {', '.join(EFFECTS)}"
    if unknown := [intent for intent in given["intents"] if intent not in _INTENTS]:
        return f"intent {unknown[0]!r}: must be one of those in bot/replies/rules/notation.py"
    return "" if given["evidence"] in given["text"] else "the evidence is not in the text"


# --- Nearest examples ---

_LEAST = 0.05  # what shares less is not shown


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An example, and how near it is: the cosine of weighed n-grams, 0 to 1."""

    example: Example
    nearness: float


class _Index:
    """The deciding sentences of examples, by n-gram; an n-gram weighs the more, the fewer sentences have it."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self.examples = list(examples)
        self.holders: dict[str, list[int]] = defaultdict(list)
        described = [set(grams(example.evidence)) for example in self.examples]
        for number, ngrams in enumerate(described):
            for gram in ngrams:
                self.holders[gram].append(number)
        self.lengths = [math.sqrt(sum(self.weight(gram) ** 2 for gram in ngrams)) or 1.0 for ngrams in described]

    def weight(self, gram: str) -> float:
        return math.log(1 + len(self.examples) / (1 + len(self.holders.get(gram, ()))))

    def nearest(self, sentence: str, most: int) -> list[Neighbour]:
        ngrams = set(grams(sentence))
        length = math.sqrt(sum(self.weight(gram) ** 2 for gram in ngrams)) or 1.0
        shared: dict[int, float] = defaultdict(float)
        for gram in sorted(ngrams & self.holders.keys()):
            for number in self.holders[gram]:
                shared[number] += self.weight(gram) ** 2
        near = {number: total / (length * self.lengths[number]) for number, total in shared.items()}
        near = {number: share for number, share in near.items() if share >= _LEAST}
        order = sorted(near, key=lambda number: (-near[number], number))[:most]
        return [Neighbour(self.examples[number], near[number]) for number in order]


def nearest(sentence: str, most: int = 3) -> list[Neighbour]:
    """Return the examples whose deciding sentence is most like this one, the nearest first."""
    return _index().nearest(sentence, most)


@cache
def _index() -> _Index:
    return _Index(load())
