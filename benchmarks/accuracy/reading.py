"""`make reading`: measures the rules' accuracy on the labelled threads, and writes docs/reading.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.accuracy import labelled, left_out_threads
from benchmarks.accuracy.replies import intent_counts, rule_counts, threads
from bot.documentation import MEASURED, page
from bot.replies import training


def accuracy() -> dict[str, Any]:
    """Return the accuracy of each rule and intent, as measured.json has it."""
    all_threads = threads()
    replies = [reply for thread in all_threads for reply in thread.replies]
    return {
        "decided": {name: list(counts) for name, counts in rule_counts(replies).items()},
        "intents": {name: list(counts) for name, counts in intent_counts(replies).items()},
    }


def left_out_summary(folds: int = 10) -> dict[str, str]:
    """Return how replies are read by a classifier that has not learned from their threads."""
    judged = left_out_threads.left_out(folds, training.labelled(training.load()))
    acts = [(each, name) for each in judged for name in each.acting]
    right = sum(each.is_right(name) for each, name in acts)
    offered = sum(any(map(each.is_right, each.offered)) for each in judged)
    threads_read = len({each.reply.thread for each in judged})
    return {
        "on": f"on {len(judged)} replies in {threads_read} real threads, by classifiers that had not seen the thread",
        "summary": (
            f"{right} of {len(acts)} automatic effects were right; the effect that a careful reader names or accepts "
            f"was acted on or suggested for {offered} of {len(judged)}."
        ),
    }


if __name__ == "__main__":
    labelled.require()
    figures_found = {**left_out_summary(), **accuracy()}
    MEASURED.write_text(json.dumps(figures_found, indent=1) + "\n", encoding="utf-8")
    (ROOT / "docs" / "reading.md").write_text(page(figures_found), encoding="utf-8")
