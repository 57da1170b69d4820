"""`make reading`: judges the rules on the invented threads, on the labelled ones where they are, and writes
docs/reading.md.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
django.setup()
from benchmarks.accuracy import invented, left_out_threads, training
from benchmarks.accuracy.replies import SHARED, figures, intent_counts, rule_counts, threads
from bot.documentation import MEASURED, measured, page
from bot.replies import examples


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
    judged = left_out_threads.left_out(folds, training.labelled(examples.load()))
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


def invented_accuracy() -> dict[str, Any]:
    """Return how the invented threads are read: a sentence, and how often each rule decided, and rightly."""
    read = invented.threads()
    replies = [reply for thread in read for reply in thread.replies]
    counts = figures(replies)
    accepted = sum(thread.if_accepted == thread.want for thread in read)
    summary = (
        f"{counts.acted_rightly} of {counts.acted} automatic effects are exactly those of the labels, as are"
        f" {counts.effects} of {counts.replies} effects in all; {accepted} of {len(read)} threads end in the state of"
        " their label if every suggestion is accepted."
    )
    return {"summary": summary, "decided": {name: list(counts) for name, counts in rule_counts(replies).items()}}


if __name__ == "__main__":
    judged = {**measured(), "invented": invented_accuracy()}
    if SHARED.is_dir():
        judged |= {**left_out_summary(), **accuracy()}
    else:
        print(f"no labelled threads in {SHARED}: their figures stay as they were")
    print(judged["invented"]["summary"])
    MEASURED.write_text(json.dumps(judged, indent=1) + "\n", encoding="utf-8")
    (ROOT / "docs" / "reading.md").write_text(page(judged), encoding="utf-8")
