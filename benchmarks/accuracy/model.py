"""`make model`: learns the classifier from the written examples and, where they are, from the labelled threads."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy import labelled, training
from bot.replies import classifier, examples


def training_data() -> list[training.Labelled]:
    """Return all that may be learned from, the real replies first."""
    labelled.require()
    real = [each.training() for each in labelled.replies()]
    return [*real, *training.labelled(examples.load())]


if __name__ == "__main__":
    learned = training.train(training_data())
    training.save(learned)
    size = classifier.FILE.stat().st_size
    print(
        f"{len(learned.rows)} features, {len(learned.effects)} effects, {size / 1e6:.2f} MB, {learned.trained_on[:16]}"
    )
