"""What the lab hands in with an answer: a comparison table, or the words below a question."""

from __future__ import annotations

import re

from bot.replies.sentences import Sentence

# The heads of the robot's tables, and of a row in them: a mean, its change, a mean, a metric.
_TABLE = re.compile(
    r"%stddev\s{1,20}%change|^\s*[\d.e+]{1,20}\s{1,8}(?:±\s*\d{1,3}%\s{1,8})?[+-]\d[\d.]{0,8}%?\s{1,20}[\d.e+]{1,20}\s",
    re.M,
)
_ANSWERS = re.compile(
    r"(?:yes|no|it's|it is|they|we (?:use|used|run|ran|test|tested)|the|this|that|here|please (?:see|find|check)|as"
    r"|attached)\b",
    re.I,
)


def holds_table(own_text: str) -> bool:
    """Whether the mail shows a comparison of measurements."""
    return bool(_TABLE.search(own_text[:200_000]))


def answers(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """The first sentence that stands below a quoted question and answers it."""
    return next((each for each in sentences if each.below.endswith("?") and _ANSWERS.match(each.text)), None)
