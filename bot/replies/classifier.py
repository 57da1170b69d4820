"""The learned weights: a linear model over the features, loaded when the first reply is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bot.replies.classifier.features import MOST_SENTENCES, ReplyFacts, features, grams, readable
from bot.replies.prose.courtesy import has_content, is_salutation

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

    def why(self, effect: str) -> str:
        """Return how probable an effect is, and the words that speak most for it: '62 % likely: "still see"'."""
        words = [f'"{shown}"' for gram in self.words.get(effect, ()) if (shown := readable(gram))]
        likely = f"{min(99, round(100 * self.probabilities.get(effect, 0.0)))} % likely"
        return f"{likely}: {', '.join(dict.fromkeys(words))}" if words else likely


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

        found = {name: value for name, value in features(facts).items() if name in self.rows}
        rows = [self.rows[name] for name in found]
        values = np.fromiter(found.values(), np.float32, len(found))
        scores = self.intercepts + values @ self.weights[rows]
        exponents = np.exp(scores - scores.max())
        probabilities = exponents / exponents.sum()
        order = np.argsort(-probabilities, kind="stable")
        likely = {self.effects[number]: float(probabilities[number]) for number in order}
        telling = _telling(facts, found)
        evidence = {self.effects[number]: self._evidence(telling, found, int(number)) for number in order[:shown]}
        return Opinion(
            likely,
            {effect: sentence for effect, (sentence, _) in evidence.items()},
            {effect: words for effect, (_, words) in evidence.items()},
        )

    def _evidence(
        self, telling: Mapping[str, Sequence[str]], found: Mapping[str, float], effect: int
    ) -> tuple[str, tuple[str, ...]]:
        """Return the sentence whose words speak most for an effect, and these words."""
        best, chosen = 0.0, ""
        words: tuple[str, ...] = ()
        for sentence, known in telling.items():
            weighed = {gram: found[gram] * float(self.weights[self.rows[gram], effect]) for gram in known}
            if (total := sum(weighed.values())) > best or not chosen:
                best, chosen, words = total, sentence, tuple(_heaviest(weighed))
        return chosen, words


def _telling(facts: ReplyFacts, found: Mapping[str, float]) -> dict[str, list[str]]:
    """Return the sentences that are more than courtesy, with their n-grams that the model knows."""
    texts = [each.text for each in facts.sentences[:MOST_SENTENCES]]
    telling = [text for text in texts if has_content(text) and not is_salutation(text)]
    return {text: [gram for gram in dict.fromkeys(grams(text)) if gram in found] for text in telling}


def _heaviest(weighed: Mapping[str, float], most: int = 3) -> Sequence[str]:
    order = sorted((gram for gram, weight in weighed.items() if weight > 0), key=lambda gram: (-weighed[gram], gram))
    return order[:most]


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


def save(model: Model, file: Path = FILE) -> None:
    """Write a model; the same model makes the same bytes but for the dates in the archive."""
    import numpy as np

    head = json.dumps({"effects": model.effects, "trained_on": model.trained_on})
    names = "\n".join(sorted(model.rows, key=model.rows.__getitem__))
    np.savez_compressed(
        file,
        head=np.frombuffer(head.encode(), np.uint8),
        names=np.frombuffer(names.encode(), np.uint8),
        weights=np.clip(np.round(model.weights * SCALE), -32768, 32767).astype(np.int16),
        intercepts=model.intercepts.astype(np.float32),
    )
