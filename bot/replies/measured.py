"""What the lab hands in with an answer: a comparison table, or the words below a question."""

from __future__ import annotations

import re

from bot.replies.sentences import Sentence

# The heads of the robot's tables, and of a row in them: a mean, its change, a mean, a metric.
_TABLE = re.compile(
    r"%stddev\s{1,20}%change|^\s*[\d.e+]{1,20}\s{1,8}(?:±\s*\d{1,3}%\s{1,8})?[+-]\d[\d.]{0,8}%?\s{1,20}[\d.e+]{1,20}\s",
    re.M,
)
_COURTEOUS = re.compile(r"(?:many |a lot of )?(?:thanks?|thank you|sorry|got it|glad|you are welcome|hope)\b", re.I)
_NO_ANSWER = re.compile(r"(?:thanks?|thank you|hi|hello|sorry|ok|okay)\b[^.]{0,30}[,.!]?\Z", re.I)


# A row of a comparison of three and more: a mean, the culprit's change, its mean, the next one's change.
_SPREAD = r"(?:\s{1,8}±\s{0,3}\d{1,3}%)?"
_CANDIDATE_ROW = re.compile(
    rf"^\s*[\d.e+]{{1,20}}{_SPREAD}\s{{1,20}}([+-]\d[\d.]{{0,8}})%\s{{1,20}}[\d.e+]{{1,20}}{_SPREAD}\s{{1,20}}"
    rf"([+-]\d[\d.]{{0,8}})%\s{{1,20}}[\d.e+]{{1,20}}{_SPREAD}\s{{1,20}}(?!perf|proc-vmstat|sched)[\w-]+\.",
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
    return next((each for each in stated if not _COURTEOUS.match(each.text)), None)


def answers(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """The first sentence that stands below a quoted question, and is neither courtesy nor a question itself."""
    below = (each for each in sentences if each.below.endswith("?") and not each.asks)
    return next((each for each in below if not _NO_ANSWER.match(each.text)), None)
