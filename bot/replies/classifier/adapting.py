"""Adapt the model to a lab's own decisions: the weights move from where they are only as far as the decisions ask.

Multinomial logistic regression with a penalty on the distance from the project's weights. So a lab needs neither the
mail that the project learned from nor scikit-learn, and ten decisions change little, a thousand much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bot.replies.classifier.features import features
from bot.replies.classifier.model import Model
from bot.replies.classifier.training import FEWEST, Labelled, digest

_PENALTY = 1.0  # of the squared distance from the project's weights
_FOLDS = 10
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two models read the same replies: the number right at first place, and the mean log loss (lower is better).

    The adapted model never learned from a reply's own report.
    """

    replies: int
    right_before: int
    right_after: int
    loss_before: float
    loss_after: float

    @property
    def helps(self) -> bool:
        """Whether the adapted model is right more often, and surer of what is right."""
        return self.right_after > self.right_before and self.loss_after < self.loss_before


def adapt(model: Model, decided: Sequence[Labelled]) -> Model:
    """Return the model adapted to these decisions; the same decisions in the same order give the same one.

    An n-gram that the model does not know is added if enough reports have it. Effects stay those of the model.
    """
    from scipy.optimize import minimize

    known = [each for each in decided if each.effect in model.effects]
    if not known:
        return model
    model = _with_rows(model, known)
    matrix = _matrix(model, known)
    used = np.flatnonzero(matrix.any(axis=0))
    values = matrix[:, used]
    target = np.zeros((len(known), len(model.effects)))
    target[np.arange(len(known)), [model.effects.index(each.effect) for each in known]] = 1.0
    start = values @ model.weights[used].astype(np.float64) + model.intercepts
    shape = (len(used), len(model.effects))

    def cost(flat: Any) -> tuple[float, Any]:
        moved = flat.reshape(shape)
        share = _softmax(start + values @ moved)
        loss = -float(np.sum(target * np.log(share + _TINY))) + _PENALTY / 2 * float(np.sum(moved * moved))
        return loss, (values.T @ (share - target) + _PENALTY * moved).ravel()

    found = minimize(cost, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = model.weights.copy()
    weights[used] += found.x.reshape(shape).astype(np.float32)
    return replace(model, weights=weights, trained_on=f"{model.trained_on} {digest(known)}")


def compare(model: Model, decided: Sequence[Labelled]) -> Comparison:
    """Judge adapting by cross-validation: the reports are left out in turns, a tenth at a time."""
    known = [each for each in decided if each.effect in model.effects]
    threads = sorted({each.thread for each in known})
    right_before = right_after = 0
    loss_before = loss_after = 0.0
    for fold in range(min(_FOLDS, len(threads))):
        out = set(threads[fold::_FOLDS])
        adapted = adapt(model, [each for each in known if each.thread not in out])
        for each in known:
            if each.thread in out:
                before, after = _shares(model, each), _shares(adapted, each)
                right_before += max(before, key=before.__getitem__) == each.effect
                right_after += max(after, key=after.__getitem__) == each.effect
                loss_before -= float(np.log(before[each.effect] + _TINY))
                loss_after -= float(np.log(after[each.effect] + _TINY))
    of = max(1, len(known))
    return Comparison(len(known), right_before, right_after, loss_before / of, loss_after / of)


def _shares(model: Model, reply: Labelled) -> dict[str, float]:
    return dict(model.opinion(reply.facts).probabilities)


def _softmax(scores: Any) -> Any:
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def _with_rows(model: Model, decided: Sequence[Labelled]) -> Model:
    """Return the model with rows of zeros for what enough threads have and it does not know."""
    threads: dict[str, set[str]] = defaultdict(set)
    for each in decided:
        for name in features(each.facts):
            if name not in model.rows:
                threads[name].add(each.thread)
    new = sorted(name for name, of in threads.items() if len(of) >= FEWEST)
    rows = {**model.rows, **{name: len(model.rows) + number for number, name in enumerate(new)}}
    weights = np.vstack([model.weights, np.zeros((len(new), len(model.effects)), np.float32)])
    return replace(model, rows=rows, weights=weights)


def _matrix(model: Model, decided: Sequence[Labelled]) -> Any:
    matrix = np.zeros((len(decided), len(model.rows)), np.float64)
    for number, each in enumerate(decided):
        for name, value in features(each.facts).items():
            if name in model.rows:
                matrix[number, model.rows[name]] = value
    return matrix
