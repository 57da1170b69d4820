"""What a lab's reply provides: a comparison table, or an answer below a quoted question."""

from __future__ import annotations

import re

from bot.replies.prose.courtesy import is_greeting, is_polite
from bot.replies.prose.sentences import Sentence

# The head of the robot's tables, or a row of one: mean, change, mean, metric.
_SPREAD = r"(?: {1,8}± {0,3}\d{1,3}%)?"
_TABLE = re.compile(
    rf"%stddev {{1,20}}%change|^ {{0,20}}[\d.e+]{{1,20}}{_SPREAD} {{1,20}}[+-]\d[\d.]{{0,8}}%?"
    r" {1,20}[\d.e+]{1,20}(?: |$)",
    re.M,
)
# A row of a comparison of three or more kernels: mean, the culprit's change, its mean, the changes of others, and the
# last one's.
_PERCENT = r"[+-]\d{1,6}(?:\.\d{1,3})?"
_MEAN = rf" {{1,20}}[\d.e+]{{1,20}}{_SPREAD}"
_CANDIDATE_ROW = re.compile(
    rf"^{_MEAN.replace('1,20', '0,20', 1)} {{1,20}}({_PERCENT})%(?:{_MEAN} {{1,20}}{_PERCENT}%){{0,6}}"
    rf"{_MEAN} {{1,20}}({_PERCENT})%{_MEAN} {{1,20}}"
    r"(?!perf|proc-vmstat|sched)([\w-]+)\.",
    re.M,
)
# The test's parameters above a table: their names, then their values, "gcc-12/thread/100%/fallocate1/will-it-scale".
_PARAMETERS = re.compile(r"^\S{0,300}\btestcase\b\S{0,300}:\n {0,8}(\S{1,1000})$", re.M)
MOST_LEFT = 0.25  # share of the culprit's change that may remain for a candidate to count as good


def candidate_helps(own_text: str) -> bool | None:
    """Whether the candidate in the last column of a comparison is near the parent again, or on its other side, in the
    row that the culprit changed most: of the rows of the benchmark that the tables are said to be of, if there are any.
    None if there is no comparison of parent, culprit and candidate.
    """
    text = own_text[:200_000]
    found = _CANDIDATE_ROW.findall(text)
    benchmarks = {name for values in _PARAMETERS.findall(text) for name in values.split("/")}
    rows = [row for row in found if row[2] in benchmarks] or found
    culprit, candidate = max(((float(row[0]), float(row[1])) for row in rows), key=_size_of_first, default=(0.0, 0.0))
    return candidate / culprit <= MOST_LEFT if culprit else None


def _size_of_first(changes: tuple[float, float]) -> float:
    return abs(changes[0])


def holds_table(own_text: str) -> bool:
    """Whether the mail shows a comparison of measurements."""
    return bool(_TABLE.search(own_text[:200_000]))


def first_statement(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """Return the first sentence that states something beyond courtesy, or None."""
    stated = (each for each in sentences if not each.asks and len(each.text) > 30)
    return next((each for each in stated if not is_polite(each)), None)


def first_answer(sentences: tuple[Sentence, ...]) -> Sentence | None:
    """Return the first sentence below a quoted question that is neither a greeting nor a question, or None."""
    below = (each for each in sentences if each.below.endswith("?") and not each.asks)
    return next((each for each in below if not is_greeting(each)), None)
