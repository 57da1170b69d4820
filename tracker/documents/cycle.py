"""What was reported in a release cycle: the rows that the release report, the mail for Linus and digests are made of.

`Cycle` sorts the rows into lists, and every number that a document states is the length of one of them, so that prose
and tables can't disagree. A regression stands in one list. An improvement that was reported from another tree and then
merged stands in both lists of improvements, as it does in the release's table. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tracker.domain.events import OPEN, State, Verdict
from tracker.domain.text import counted

SILENT = 28  # days, after which silence is worth a word


@dataclass(frozen=True, slots=True)
class CycleRow:
    """A report. `change`: the metric's own, in per cent, with the ends of its 95% interval; `author`: the
    culprit's; `thread`: the link to its thread, "" if it was never mailed; `magnitude`: how much, in the words of the
    person who reported it (`reporter`).
    """

    sha: str
    title: str
    subsystem: str
    metric: str
    change: float | None
    author: str
    state: str
    status: str
    awaited: str
    reported_at: datetime | None
    thread: str
    fix_landing: str = ""
    reporter: str = ""
    bisected: bool = True
    verdict: str = Verdict.REGRESSION
    is_merged: bool = True  # in the mainline in this cycle; others were reported from other trees in it
    is_shift_left: bool = False
    scenario: str = ""
    machine: str = ""
    base: str = ""
    magnitude: str = ""
    low: float | None = None
    high: float | None = None
    closed_at: datetime | None = None
    awaited_since: datetime | None = None
    blocks: str = ""  # the release that it blocks

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def of_person(self) -> bool:
        return bool(self.reporter)


def name(row: CycleRow) -> str:
    """Return the culprit's title with its prefix once, without a dot at its end.

    >>> from datetime import datetime
    >>> name(CycleRow("f" * 40, "mm/vmscan: mm/vmscan: walk.", "mm/vmscan", "", 1.0, "", "responded", "", "", None, ""))
    'mm/vmscan: walk'
    """
    title = " ".join(row.title.split()).rstrip(". ")
    title = re.sub(r"^(\[[^]]*\]\s*)+", "", title)
    doubled = re.match(r"([^:]{1,60}: )\1+", title)
    return title[doubled.end() - len(doubled[1]) :] if doubled else title


@dataclass(frozen=True, slots=True)
class Cycle:
    """The lists of a cycle, each in the order of the rows: most important first."""

    open_merged: Sequence[CycleRow]
    open_elsewhere: Sequence[CycleRow]
    fixed: Sequence[CycleRow]
    ended: Sequence[CycleRow]  # expected, reverted, gone, withdrawn or a duplicate
    by_people: Sequence[CycleRow]
    unknown: Sequence[CycleRow]  # changes whose direction is unknown
    improvements: Sequence[CycleRow]
    improvements_elsewhere: Sequence[CycleRow]

    @classmethod
    def of(cls, rows: Sequence[CycleRow]) -> Cycle:
        """Sort rows into the lists."""
        labs = [row for row in rows if not row.of_person]
        regressions = [row for row in labs if row.verdict == Verdict.REGRESSION]
        improvements = [row for row in labs if row.verdict == Verdict.IMPROVEMENT]
        still = [row for row in regressions if row.is_open]
        return cls(
            open_merged=[row for row in still if row.is_merged],
            open_elsewhere=[row for row in still if not row.is_merged],
            fixed=[row for row in regressions if row.state == State.FIXED],
            ended=[row for row in regressions if not row.is_open and row.state != State.FIXED],
            by_people=[row for row in rows if row.of_person],
            unknown=[row for row in labs if row.verdict == Verdict.UNKNOWN],
            improvements=[row for row in improvements if row.is_merged],
            improvements_elsewhere=[row for row in improvements if row.is_shift_left],
        )

    def sentences(self, version: str) -> Iterator[str]:
        """Yield what the lists say of where the reports came from."""
        regressions = (*self.open_merged, *self.open_elsewhere, *self.fixed, *self.ended)
        merged = [row for row in regressions if row.is_merged]
        if merged:
            yield (
                f"{counted(len(merged), 'regression')} {_was(len(merged))} merged in the {version} cycle,"
                f" of which {len(self.open_merged)} {_is(len(self.open_merged))} still open."
            )
        if elsewhere := len(regressions) - len(merged):
            yield (
                f"{counted(elsewhere, 'regression')} {_was(elsewhere)} found in other trees,"
                f" of which {len(self.open_elsewhere)} {_is(len(self.open_elsewhere))} open."
            )
        if self.fixed:
            yield f"{len(self.fixed)} {_is(len(self.fixed))} fixed."
        if self.by_people:
            yield f"{counted(len(self.by_people), 'regression')} {_was(len(self.by_people))} reported by people."
        if self.improvements or self.improvements_elsewhere:
            merged_number, other = len(self.improvements), len(self.improvements_elsewhere)
            text = f"{counted(merged_number, 'improvement')} {_was(merged_number)} merged"
            yield f"{text}, {other} {_was(other)} seen in other trees." if other else f"{text}."


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def summary(of: str, rows: Sequence[CycleRow], now: datetime, closed_in: str = "") -> str:
    """Return how a release or a subsystem stands, in one paragraph; every number is counted from its regressions, which
    stand worst first. `closed_in`: of a subsystem, whose open ones are of any release, that of the closed ones.
    """
    still = [row for row in rows if row.is_open]
    if not rows:
        return f"No performance regressions were reported in {of}."
    text = f"{of} has {counted(len(still), 'open performance regression')}"
    closed = len(rows) - len(still)
    text += f"; {closed} {_was(closed)} closed in {closed_in}." if closed_in else f" of {len(rows)} reported."
    if elsewhere := 0 if closed_in else sum(not row.is_merged and not row.of_person for row in still):
        text += f" {elsewhere} of them {_is(elsewhere)} not in the mainline."
    if blocking := sum(bool(row.blocks) for row in still):
        text += f" {blocking} {'blocks' if blocking == 1 else 'block'} the release."
    if still and (worst := still[0]).change is not None:
        where = worst.subsystem or (worst.sha[:10] if worst.bisected else "not bisected")
        text += f" The worst is {worst.change:+.1f}%{f' of {worst.metric}' if worst.metric else ''} ({where})."
    waiting = [row for row in still if row.awaited == "author"]
    since = [row.awaited_since or row.reported_at for row in waiting]
    silent = sum(moment is not None and (now - moment).days >= SILENT for moment in since)
    if waiting:
        text += " 1 waits for its author" if len(waiting) == 1 else f" {len(waiting)} wait for their authors"
        text += f", {silent} for over four weeks." if silent else "."
    return text
