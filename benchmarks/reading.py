"""`make reading`: measures the rules' accuracy on the labelled threads, and writes docs/reading.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.replies import SHARED, figures, intent_counts, rule_counts, threads  # noqa: E402
from bot.replies.rules.page import MEASURED, page  # noqa: E402


def accuracy() -> dict[str, Any]:
    """Return the accuracy of the rules, in the form of measured.json."""
    all_threads = threads()
    replies = [reply for thread in all_threads for reply in thread.replies]
    found = figures(replies)
    return {
        "on": f"on {found.replies} replies in {len(all_threads)} real threads of 2022 to 2025",
        "summary": (
            f"{found.acted_rightly} of {found.acted} automatic effects were right; {found.found_auto} of "
            f"{found.labelled_auto} replies that a person would let act automatically did so; the right effect was "
            f"found or suggested for {found.effects} of {found.replies} replies."
        ),
        "decided": {name: list(counts) for name, counts in rule_counts(replies).items()},
        "intents": {name: list(counts) for name, counts in intent_counts(replies).items()},
    }


if __name__ == "__main__":
    if not SHARED.is_dir():
        sys.exit(f"the labelled threads are not on this machine (expected in {SHARED})")
    MEASURED.write_text(json.dumps(accuracy(), indent=1) + "\n", encoding="utf-8")
    (ROOT / "docs" / "reading.md").write_text(page(accuracy()), encoding="utf-8")
