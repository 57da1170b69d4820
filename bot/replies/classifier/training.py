"""Learn the model from labelled replies: multinomial logistic regression by scikit-learn, which only this needs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bot.replies.classifier.examples import Example
from bot.replies.classifier.features import ReplyFacts, features
from bot.replies.classifier.model import Model
from bot.replies.effects import effects_by_rules, facts_of

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
    found = []
    for each in examples:
        reading, standpoint = each.reading(), each.standpoint()
        by_rules = list(effects_by_rules(reading, standpoint))
        found.append(Labelled(each.name, facts_of(reading, standpoint, by_rules), each.effect))
    return found


def train(replies: Sequence[Labelled]) -> Model:
    """Return the model; the same replies in the same order give the same one."""
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    described = [features(each.facts) for each in replies]
    threads = defaultdict(set)
    for each, found in zip(replies, described, strict=True):
        for name in found:
            threads[name].add(each.thread)
    names = sorted(name for name, of in threads.items() if len(of) >= FEWEST)
    rows = {name: number for number, name in enumerate(names)}
    kept = [[(rows[name], value) for name, value in found.items() if name in rows] for found in described]
    ends = np.cumsum([0, *map(len, kept)])
    columns = [column for each in kept for column, _ in each]
    values = [value for each in kept for _, value in each]
    matrix = csr_matrix((values, columns, ends), shape=(len(replies), len(rows)))
    learner = LogisticRegression(C=1.0, max_iter=400)
    learner.fit(matrix, [each.effect for each in replies], sample_weight=[each.weight for each in replies])
    return Model(
        effects=tuple(map(str, learner.classes_)),
        rows=rows,
        weights=learner.coef_.T.astype(np.float32),
        intercepts=learner.intercept_.astype(np.float32),
        trained_on=digest(replies),
    )


def digest(replies: Sequence[Labelled]) -> str:
    """Return the hash of training data: what the learner sees, in order."""
    lines = (f"{each.effect} {each.weight} {sorted(features(each.facts).items())}\n" for each in replies)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
