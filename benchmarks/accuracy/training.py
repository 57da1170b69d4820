"""Training of the classifier: examples read as the mails that they stand for, learning, and the model written.

The model is a multinomial logistic regression by scikit-learn; the same replies in the same order give the same model.
An n-gram must occur in three threads, so that no sentence of one mail can be read out of the model.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bot.mail.settings import BotSettings
from bot.replies.classifier import FILE, SCALE, Model, ReplyFacts, features
from bot.replies.effects import effects_by_rules, facts_of
from bot.replies.examples import Example
from bot.replies.reading import Reading, in_thread_of, understand
from bot.replies.rules.notation import MailContext, Relation
from tracker.domain.events import Role

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
        reading, context = reading_of(example), context_of(example)
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


def save(model: Model, file: Path = FILE) -> None:
    """Write a model; the same model makes the same bytes but for the dates in the archive."""
    head = json.dumps({"effects": model.effects, "trained_on": model.trained_on})
    names = "\n".join(sorted(model.rows, key=model.rows.__getitem__))
    np.savez_compressed(
        file,
        head=np.frombuffer(head.encode(), np.uint8),
        names=np.frombuffer(names.encode(), np.uint8),
        weights=np.clip(np.round(model.weights * SCALE), -32768, 32767).astype(np.int16),
        intercepts=model.intercepts.astype(np.float32),
    )


# --- An example as a mail ---

LAB = "lab@robots.example"
REPORTER = "reporter@users.example"  # a person, not a robot
IDENTITY = BotSettings(address="bot@perf.example", operators=frozenset({LAB}), trust_policy="open")
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


def _is_improvement(example: Example) -> bool:
    return example.effect == "improvement_ack" or "improvement" in example.quoted


def reading_of(example: Example) -> Reading:
    """Return what a mail with this text says: the quoted line stands above the paragraph that decides."""
    text = example.text.replace("[diff]", _DIFF).replace("[table]", _TABLE)
    if example.has_patch and "[diff]" not in example.text:
        text += "\n" + _DIFF
    quote = "".join(f"> {line}\n" for line in (example.quoted or "testcase: x").split("\n"))
    above, paragraph = _at_paragraph(text, example.evidence) if example.quoted else ("", text)
    verdict = "improvement" if _is_improvement(example) else "regression"
    reporter = REPORTER if example.by_person else LAB
    sender = reporter if example.role is Role.REPORTER else "somebody@dev.example"
    head = f"From: {sender}\nSubject: Re: [linus:master] [mm] 3b1f0c9d2e: a.b 12% {verdict}\nMessage-ID: <a@b>\n"
    kind = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n"
    body = f"On Monday, the robot wrote:\n{above}{quote}\n{paragraph}\n"
    reading = understand(f"{head}{kind}To: {reporter}\n\n{body}".encode("utf-8", "replace"), IDENTITY)
    return in_thread_of(reading, frozenset({REPORTER})) if example.by_person else reading


def context_of(example: Example) -> MailContext:
    return MailContext(
        Relation.THREAD,
        example.role,
        _is_improvement(example),
        reporters=frozenset({REPORTER}) if example.by_person else frozenset(),
    )


def _at_paragraph(text: str, evidence: str) -> tuple[str, str]:
    """Return a text up to the paragraph that holds the evidence, and from there on."""
    start = text.rfind("\n\n", 0, max(0, text.find(evidence))) + 2
    return (text[:start], text[start:]) if start > 1 else ("", text)
