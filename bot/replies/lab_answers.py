"""What the lab hands in with an answer: a comparison table, or the words below a question."""

from __future__ import annotations

import re

from bot.replies.prose.courtesy import is_greeting, is_polite
from bot.replies.prose.sentences import Sentence

# The heads of the robot's tables, and of a row in them: a mean, its change, a mean, a metric.
_SPREAD = r"(?: {1,8}± {0,3}\d{1,3}%)?"
_TABLE = re.compile(
    rf"%stddev {{1,20}}%change|^ {{0,20}}[\d.e+]{{1,20}}{_SPREAD} {{1,20}}[+-]\d[\d.]{{0,8}}%?"
    r" {1,20}[\d.e+]{1,20}(?: |$)",
    re.M,
)
# A row of a comparison of three and more: a mean, the culprit's change, its mean, the next one's change.
_CHANGE = r"([+-]\d{1,6}(?:\.\d{1,3})?)%"
_MEAN = rf" {{1,20}}[\d.e+]{{1,20}}{_SPREAD}"
_CANDIDATE_ROW = re.compile(
    rf"^{_MEAN.replace('1,20', '0,20', 1)} {{1,20}}{_CHANGE}{_MEAN} {{1,20}}{_CHANGE}{_MEAN} {{1,20}}"
    r"(?!perf|proc-vmstat|sched)[\w-]+\.",
    re.M,
)
MOST_LEFT = 0.25  # of the culprit's change, where a candidate counts as good


def helps(own_text: str) -> bool | None:
    """Whether the last column of a comparison of parent, culprit and candidate is near the parent again: by the row
    that the culprit moved most. None where there is no such comparison.
    """
    rows = [(abs(float(culprit)), abs(float(last))) for culprit, last in _CANDIDATE_ROW.findall(own_text[:200_000])]
    moved, left = max(rows, default=(0.0, 0.0))
    return left <= MOST_LEFT * moved if moved else None


def holds_table(own_text: str) -> bool:
    """Whether the mail shows a comparison of measurements."""
    return bool(_TABLE.search(own_text[:200_000]))


def tells(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """The first sentence that states something, beyond courtesy."""
    stated = (each for each in sentences if not each.asks and len(each.text) > 30)
    return next((each for each in stated if not is_polite(each)), None)


def answers(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """The first sentence that stands below a quoted question, and is neither courtesy nor a question itself."""
    below = (each for each in sentences if each.below.endswith("?") and not each.asks)
    return next((each for each in below if not is_greeting(each)), None)
