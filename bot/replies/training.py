"""Training of the classifier: written examples, learning, and the examples nearest to a sentence.

The examples (fixtures/replies) are invented replies with their meaning; each is read as the mail that it stands for.
The model is a multinomial logistic regression by scikit-learn, which only this chapter needs; the same replies in the
same order give the same model. An n-gram must occur in three threads, so that no sentence of one mail can be read out
of the model. The nearest examples are those that share the most n-grams with a sentence, where rare ones weigh more;
they are for people who ask why a reply was read as it was.
"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bot.mail.settings import BotSettings
from bot.replies.classifier import Model, ReplyFacts, features, grams
from bot.replies.effects import effects_by_rules, facts_of
from bot.replies.reading import Reading, in_thread_of, understand
from bot.replies.rules.notation import Intent, MailContext, Relation
from tracker.domain.events import Role

# --- Written examples ---

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "replies"
LAB = "lab@robots.example"
REPORTER = "reporter@users.example"  # a person, not a robot
IDENTITY = BotSettings(address="bot@perf.example", operators=frozenset({LAB}), trust_policy="open")
EFFECTS = (
    *("none", "responded", "working", "needs_info", "info_provided", "fix_proposed", "fix_confirmed", "fix_failed"),
    *("fix_queued", "dropped", "wontfix", "disputed", "invalid", "duplicate", "improvement_ack"),
)
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
_DIFF = """
diff --git a/mm/x.c b/mm/x.c
--- a/mm/x.c
+++ b/mm/x.c
@@ -1,4 +1,4 @@ int f(void)
 {
-\treturn a;
+\treturn b;
 }
"""
_TABLE = """
         %stddev     %change         %stddev
             \\          |                \\
     41284 ±  3%      -9.1%      37527 ±  2%  will-it-scale.per_thread_ops
"""


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
    also: tuple[str, ...]
    evidence: str

    @property
    def improvement(self) -> bool:
        return self.effect == "improvement_ack" or "improvement" in self.quoted

    def reading(self) -> Reading:
        """Return what a mail with this text says: the quoted line stands above the paragraph that decides."""
        text = self.text.replace("[diff]", _DIFF).replace("[table]", _TABLE)
        if self.has_patch and "[diff]" not in self.text:
            text += "\n" + _DIFF
        quote = "".join(f"> {line}\n" for line in (self.quoted or "testcase: x").split("\n"))
        above, paragraph = _at_paragraph(text, self.evidence) if self.quoted else ("", text)
        verdict = "improvement" if self.improvement else "regression"
        reporter = REPORTER if self.by_person else LAB
        sender = reporter if self.role is Role.REPORTER else "somebody@dev.example"
        head = f"From: {sender}\nSubject: Re: [linus:master] [mm] 3b1f0c9d2e: a.b 12% {verdict}\nMessage-ID: <a@b>\n"
        kind = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n"
        body = f"On Monday, the robot wrote:\n{above}{quote}\n{paragraph}\n"
        reading = understand(f"{head}{kind}To: {reporter}\n\n{body}".encode("utf-8", "replace"), IDENTITY)
        return in_thread_of(reading, frozenset({REPORTER})) if self.by_person else reading

    def context(self) -> MailContext:
        return MailContext(
            Relation.THREAD,
            self.role,
            self.improvement,
            reporters=frozenset({REPORTER}) if self.by_person else frozenset(),
        )


def _at_paragraph(text: str, evidence: str) -> tuple[str, str]:
    """Return a text up to the paragraph that holds the evidence, and from there on."""
    start = text.rfind("\n\n", 0, max(0, text.find(evidence))) + 2
    return (text[:start], text[start:]) if start > 1 else ("", text)


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
        also=tuple(given["also"]),
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


# --- Learning ---

FEWEST = 3  # threads that must have an n-gram; a sentence of one mail can't be read out of the model
REAL = 3.0  # the weight of a real reply, where a written one has 1


@dataclass(frozen=True, slots=True)
class Labelled:
    """A reply and its effect. `thread`: replies of one thread are never on both sides of a cross-validation."""

    thread: str
    facts: ReplyFacts
    effect: str
    weight: float = 1.0


def labelled(examples: Iterable[Example]) -> list[Labelled]:
    """Return written examples as training data, each a thread of its own."""
    replies = []
    for example in examples:
        reading, context = example.reading(), example.context()
        by_rules = list(effects_by_rules(reading, context))
        replies.append(Labelled(example.name, facts_of(reading, context, by_rules), example.effect))
    return replies


def train(replies: Sequence[Labelled]) -> Model:
    """Return the model; the same replies in the same order give the same one."""
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    described = [features(reply.facts) for reply in replies]
    threads = defaultdict(set)
    for reply, by_feature in zip(replies, described, strict=True):
        for name in by_feature:
            threads[name].add(reply.thread)
    names = sorted(name for name, of in threads.items() if len(of) >= FEWEST)
    rows = {name: number for number, name in enumerate(names)}
    kept = [[(rows[name], value) for name, value in by_feature.items() if name in rows] for by_feature in described]
    ends = np.cumsum([0, *map(len, kept)])
    columns = [column for pairs in kept for column, _ in pairs]
    values = [value for pairs in kept for _, value in pairs]
    matrix = csr_matrix((values, columns, ends), shape=(len(replies), len(rows)))
    learner = LogisticRegression(C=1.0, max_iter=400)
    learner.fit(matrix, [reply.effect for reply in replies], sample_weight=[reply.weight for reply in replies])
    return Model(
        effects=tuple(map(str, learner.classes_)),
        rows=rows,
        weights=learner.coef_.T.astype(np.float32),
        intercepts=learner.intercept_.astype(np.float32),
        trained_on=digest(replies),
    )


def digest(replies: Sequence[Labelled]) -> str:
    """Return the hash of training data: what the learner sees, in order."""
    lines = (f"{reply.effect} {reply.weight} {sorted(features(reply.facts).items())}\n" for reply in replies)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


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
