"""The subject of a report: "[LKP] [mm/vmscan] 3b1f0c9d2e: -12.4% regression", and the other forms in use."""

from __future__ import annotations

from bot.compose.conventions import SubjectForm
from bot.mail.sanitising import one_line
from bot.mail.subsystem import subsystem_of
from tracker.domain.events import Verdict
from tracker.domain.text.formats import prose_pct


def report_subject(
    title: str,
    sha: str,
    change_pct: float | None,
    verdict: Verdict,
    form: SubjectForm = SubjectForm.SEED,
    metric: str = "",
    tree: str = "",
    branch: str = "",
) -> str:
    """Return the subject of a report. The seed form is that of the 0-Day report of v5.6.

    `change_pct`: the metric's own change; a minus is printed and a plus is not, as on the lists until 2024.
    """
    subsystem = one_line(subsystem_of(title), 60)
    front = _tree(tree, branch) if form is SubjectForm.TREE else ""
    marks = f"[{front}] " if front else "[LKP] "
    marks += f"[{subsystem}] " if subsystem else ""
    what = "" if form is SubjectForm.SEED else f"{_word(metric)} " if metric else ""
    if change_pct is None:  # from zero: a percentage would be meaningless
        return f"{marks}{sha[:10]}: {what}{verdict}"
    return f"{marks}{sha[:10]}: {what}{prose_pct(change_pct)} {verdict}"


def _tree(tree: str, branch: str) -> str:
    names = [_word(each).replace("[", "").replace("]", "") for each in (tree, branch) if each]
    return ":".join(names)


def _word(text: str) -> str:
    """Return a name as one word."""
    return one_line(text, 120).replace(" ", "_")
