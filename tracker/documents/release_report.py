"""The release report, from the reader's end: what is open and worst, then everything else, the method last. Pure.

`ReleaseFacts` holds all that the report says, and `compose` turns it into blocks. Half a page sums the release up: a
paragraph, the course of the cycle, the worst of what is open. Then come the lists of its `Cycle` in the order of what
is to be done: open, fixed, ended, reported by people, improvements; the changes that triagers chose to narrate; the
comparison with the release before; and method, machines and glossary.

Every number is counted from the rows that stand in a list, and from nothing else; the mail to Linus and the digests are
made of the same lists. Development bases are shown for what was merged only, since those of other trees are not
comparable. The lab may write a title, and a text for each section.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from django.urls import reverse

from tracker.charts import cycle_chart, in_letters
from tracker.documents.blocks import (
    Block,
    ChangeList,
    ChangeRow,
    CycleFigure,
    Document,
    DocumentLink,
    Heading,
    Paragraph,
    Prose,
    TableBlock,
    machine_table,
)
from tracker.domain import kernel_comparison, timeline
from tracker.domain.events import OPEN, State, Verdict
from tracker.domain.kernel_comparison import Box, ChangeVerdict, ComparedTest, ComparisonLine
from tracker.domain.performance_index import IndexPoint
from tracker.domain.text import age, counted, prose_pct, shared_parameters, without
from tracker.domain.versions import CyclePoint, ReportSpan, steps

# --- Facts ---


@dataclass(frozen=True, slots=True)
class HighlightData:
    """A report highlight: its row, under a heading if it has one. `landing`: "" while it is not merged."""

    row: CycleRow
    heading: str
    branch: str
    suite: str
    scenario: tuple[tuple[str, str], ...]
    landing: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """`rows`: the reports of the cycle, most important first; `points`: its -rcs; `kernel` and `base`: the kernels
    that are compared, "" if not measured; `index`: the name of the basket, and the index of `kernel` against `base`;
    `prose`: what people wrote, by section; `suites`: descriptions by name.
    """

    lab: str
    contact: str
    version: str
    previous: str
    released_at: datetime | None
    as_of: datetime
    rows: Sequence[CycleRow]
    points: Sequence[CyclePoint]
    highlights: Sequence[HighlightData]
    parameters: Sequence[tuple[str, str, str]]  # classification, name and description of each
    suites: Mapping[str, str]
    kernel: str
    base: str
    lines: Sequence[ComparisonLine]
    curves: Mapping[ComparedTest, tuple[str, str]]  # the curve of each test that has one: its heights and its page
    index: tuple[str, IndexPoint] | None
    boxes: Sequence[Box]
    prose: Mapping[str, str]


# --- The reports of a cycle ---
# `Cycle` sorts the rows into lists, and every number that a document states is the length of one of them, so that
# prose and tables can't disagree. A regression stands in one list. An improvement that was reported from another tree
# and then merged stands in both lists of improvements, as it does in the release's table.

SILENT = 28  # days, after which silence is worth a word


class Merged(Enum):
    """Where the culprit of a report stands in the mainline."""

    IN_CYCLE = "merged in the cycle that the report is about"
    IN_ANOTHER = "merged in another cycle"
    UNKNOWN = "found in the mainline, merged in a version that no walked tree tells"
    NOT_YET = "not in the mainline"
    UNTOLD = "not known whether it is merged: the mainline was last walked before the report"


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
    merged: Merged = Merged.IN_CYCLE
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

    @property
    def waits_for(self) -> str:
        """Whom the report waits for, by name if known; "" for nobody."""
        return timeline.awaited(self.awaited, self.author, self.reporter, is_bisected=self.bisected)


_ELSEWHERE = (Merged.IN_ANOTHER, Merged.NOT_YET, Merged.UNTOLD)  # found in other trees, as far as is known


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
    open_version_unknown: Sequence[CycleRow]  # in the mainline, of a version that is not known
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
            open_merged=[row for row in still if row.merged is Merged.IN_CYCLE],
            open_elsewhere=[row for row in still if row.merged in _ELSEWHERE],
            open_version_unknown=[row for row in still if row.merged is Merged.UNKNOWN],
            fixed=[row for row in regressions if row.state == State.FIXED],
            ended=[row for row in regressions if not row.is_open and row.state != State.FIXED],
            by_people=[row for row in rows if row.of_person],
            unknown=[row for row in labs if row.verdict == Verdict.UNKNOWN],
            improvements=[row for row in improvements if row.merged in (Merged.IN_CYCLE, Merged.UNKNOWN)],
            improvements_elsewhere=[
                row for row in improvements if row.is_shift_left and row.merged is not Merged.UNKNOWN
            ],
        )

    def sentences(self, version: str) -> Iterator[str]:
        """Yield what the lists say of where the reports came from."""
        still = (*self.open_merged, *self.open_elsewhere, *self.open_version_unknown)
        regressions = (*still, *self.fixed, *self.ended)
        number_of = Counter(row.merged for row in regressions)
        if merged := number_of[Merged.IN_CYCLE]:
            yield (
                f"{counted(merged, 'regression')} {_was(merged)} merged in the {version} cycle,"
                f" of which {len(self.open_merged)} {_is(len(self.open_merged))} still open."
            )
        elsewhere = sum(map(number_of.__getitem__, _ELSEWHERE))
        others = (
            (elsewhere, "found in other trees", self.open_elsewhere),
            (
                number_of[Merged.UNKNOWN],
                "found in the mainline, in a version that is not known",
                self.open_version_unknown,
            ),
        )
        for number, where, rows in others:
            if number:
                text = f"{counted(number, 'regression')} {_was(number)} {where}"
                yield f"{text}, of which {len(rows)} {_is(len(rows))} open."
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
    if elsewhere := 0 if closed_in else sum(row.merged is Merged.NOT_YET and not row.of_person for row in still):
        text += f" {elsewhere} of them {_is(elsewhere)} not in the mainline."
    if blocking := sum(bool(row.blocks) for row in still):
        text += f" {blocking} {'blocks' if blocking == 1 else 'block'} the release."
    if still and (worst := still[0]).change is not None:
        where = worst.subsystem or (worst.sha[:10] if worst.bisected else "not bisected")
        measured = " that was measured" if not worst.of_person and any(row.of_person for row in still) else ""
        text += (
            f" The worst{measured} is {worst.change:+.1f}%{f' of {worst.metric}' if worst.metric else ''} ({where})."
        )
    waiting = [row for row in still if row.awaited == "author"]
    since = [row.awaited_since or row.reported_at for row in waiting]
    silent = sum(moment is not None and (now - moment).days >= SILENT for moment in since)
    if waiting:
        text += " 1 waits for its author" if len(waiting) == 1 else f" {len(waiting)} wait for their authors"
        text += f", {silent} for over four weeks." if silent else "."
    return text


# --- The report ---

# The texts that people may write: a line for the title, and a text for each section.
SECTIONS = {
    "title": "Title",
    "introduction": "Introduction",
    "release-test": "Open in the release",
    "shift-left": "Open in other trees",
    "comparison": "Comparison",
    "machines": "Machines",
}
WORST = 5
_DISTINGUISHING = ("mode", "test", "ipc", "rw", "class")  # the parameters that distinguish tests of one suite


def compose(facts: ReleaseFacts) -> Document:
    """Return the whole report."""
    cycle = Cycle.of(facts.rows)
    blocks = (
        *_summary(facts, cycle),
        *_numbered(
            (
                _open_merged(facts, cycle),
                _open_elsewhere(facts, cycle),
                _lists(facts, ("Open, merged in a version that is not known", cycle.open_version_unknown)),
                _lists(
                    facts,
                    ("Fixed", cycle.fixed),
                    ("Expected, reverted, gone or withdrawn", cycle.ended),
                    ("Direction unknown", cycle.unknown),
                ),
                _by_people(facts, cycle),
                _lists(
                    facts,
                    ("Improvements", cycle.improvements),
                    ("Improvements in other trees", cycle.improvements_elsewhere),
                ),
                _highlights(facts),
                _comparison(facts),
                _method(facts),
            )
        ),
    )
    released = f"released {facts.released_at:%Y-%m-%d}" if facts.released_at else "not released yet"
    against = f" · compared with {facts.base}" if facts.base and facts.kernel else ""
    aside = f"{facts.lab} · {released}{against} · as of {facts.as_of:%Y-%m-%d}"
    title = " ".join(facts.prose.get("title", "").split()) or f"Linux {facts.version}: performance report"
    return Document(title[:200], aside, blocks)


def _numbered(sections: Sequence[Iterator[Block]]) -> Iterator[Block]:
    """Yield sections with their numbers; empty ones are left out."""
    number = 0
    for blocks in map(list, sections):
        if not blocks:
            continue
        number += 1
        first, *rest = blocks
        assert isinstance(first, Heading)
        yield Heading(2, first.text, str(number), first.aside)
        yield from rest


def _prose(facts: ReleaseFacts, name: str) -> Iterator[Block]:
    if text := facts.prose.get(name):
        yield Prose(text, name)


# --- The summary ---


def _summary(facts: ReleaseFacts, cycle: Cycle) -> Iterator[Block]:
    """Yield what somebody needs who reads nothing else."""
    regressions = [row for row in facts.rows if row.verdict == Verdict.REGRESSION]
    yield Paragraph(summary(facts.version, regressions, facts.as_of))
    if sentences := [*cycle.sentences(facts.version)]:
        yield Paragraph(" ".join(sentences))
    if sentences := [*_compared(facts)]:
        yield Paragraph(" ".join(sentences))
    yield from _prose(facts, "introduction")
    spans = [ReportSpan(row.reported_at, row.closed_at, row.is_open) for row in regressions]
    course = steps(facts.points, spans)
    if chart := cycle_chart(course):
        yield CycleFigure(chart)
        counts = (
            ("Reported", *(str(step.new) for step in course)),
            ("Closed", *(str(step.closed) for step in course)),
            ("Open", *(str(step.open) for step in course)),
        )
        names = [step.point.version.rpartition("-")[2] for step in course]
        yield TableBlock(
            "Regressions by release candidate", ("Until", *names), counts, frozenset(range(1, len(names) + 1))
        )
    worst = [row for row in regressions if row.is_open][:WORST]
    if len(worst) > 1:
        yield Heading(2, "Worst open regressions")
        yield ChangeList("Worst open regressions", [_brief(row, facts.as_of) for row in worst], _WHO, frozenset({1}))


_WHO = ("Author", "Age", "Waiting for")


def _brief(row: CycleRow, now: datetime) -> ChangeRow:
    waiting = row.waits_for or "nobody"
    told = f"{_since(row, now)}waiting for {waiting}"
    cells = (row.author, age(row.reported_at, now), waiting)
    return ChangeRow(row.change, row.verdict, _link(row), row.metric, cells, told, row.magnitude)


def _since(row: CycleRow, now: datetime) -> str:
    """ "by Dana Brook, reported 5 w ago; "; "" if neither is known."""
    by = f"by {row.author}" if row.author else ""
    since = f"reported {age(row.reported_at, now)} ago" if row.reported_at else ""
    return f"{text}; " if (text := ", ".join(filter(None, (by, since)))) else ""


def _link(row: CycleRow) -> DocumentLink:
    begin, title = f"{row.sha[:10]} " if row.bisected else "not bisected: ", name(row)
    text = title if title.startswith(begin.rstrip(": ")) else f"{begin}{title}"
    return DocumentLink(text, reverse("report", args=[row.sha[:12]]))


def _compared(facts: ReleaseFacts) -> Iterator[str]:
    """Yield how the kernel compares with the release before it."""
    moves = [change.verdict for line in facts.lines if (change := line.changes[-1])]
    if not facts.kernel or not facts.base or not moves:
        return
    unknown = (
        f", {moves.count(ChangeVerdict.UNKNOWN)} changed with unknown direction"
        if ChangeVerdict.UNKNOWN in moves
        else ""
    )
    yield (
        f"How {facts.kernel} compares with {facts.base}, in {counted(len(moves), 'test')} of"
        f" {counted(len({line.test.suite for line in facts.lines if line.changes[-1]}), 'suite')}:"
        f" {moves.count(ChangeVerdict.IMPROVEMENT)} better, {moves.count(ChangeVerdict.REGRESSION)} worse,"
        f" {moves.count(ChangeVerdict.SAME)} almost the same{unknown}."
    )
    if facts.index:
        basket, point = facts.index
        interval = f" (95% CI {point.low:.1f} to {point.high:.1f})" if point.low != point.high else ""
        yield f"Against {facts.base} the index ({basket}) is {point.value:.1f}{interval}."


# --- Lists of reports ---


def _open_merged(facts: ReleaseFacts, cycle: Cycle) -> Iterator[Block]:
    yield from _listed(f"Open in {facts.version}", cycle.open_merged, facts)
    yield from _prose(facts, "release-test")


def _open_elsewhere(facts: ReleaseFacts, cycle: Cycle) -> Iterator[Block]:
    rows, text = cycle.open_elsewhere, [*_prose(facts, "shift-left")]
    if rows or text:
        yield from _listed("Open, found in other trees", rows, facts)
        yield from text


def _lists(facts: ReleaseFacts, *lists: tuple[str, Sequence[CycleRow]]) -> Iterator[Block]:
    """Yield the lists that have rows: the first is a section, and the others are parts of it."""
    level = 2
    for heading, rows in lists:
        if rows:
            yield from _listed(heading, rows, facts, level)
            level = 3


def _by_people(facts: ReleaseFacts, cycle: Cycle) -> Iterator[Block]:
    if cycle.by_people:
        yield Heading(2, "Reported by people", aside=f"({len(cycle.by_people)})")
        yield Paragraph(
            "What people reported on the lists, in their figures. Those with an interval were measured by the lab."
        )
        rows = [_row(row, facts.as_of, ()) for row in cycle.by_people]
        yield ChangeList("Regressions reported by people", rows, _COLUMNS, frozenset({1}))


_COLUMNS = ("Author", "Age", "Status")


def _listed(heading: str, rows: Sequence[CycleRow], facts: ReleaseFacts, level: int = 2) -> Iterator[Block]:
    """Yield the list of a section under its heading, which has the number of rows; then what all of them share."""
    shared = shared_parameters(row.scenario for row in rows)
    yield Heading(level, heading, aside=f"({len(rows)})")
    if shared:
        yield Paragraph(f"All of them with {' '.join(shared)}.")
    if rows:
        yield ChangeList(heading, [_row(row, facts.as_of, shared) for row in rows], _COLUMNS, frozenset({1}))
    else:
        yield Paragraph("None.")


def _row(row: CycleRow, now: datetime, shared: Sequence[str]) -> ChangeRow:
    by = f"reported by {row.reporter}" if row.reporter else ""
    base = f"against {row.base}" if row.base and row.merged is Merged.IN_CYCLE else ""
    interval = f"95% CI {timeline.bounds(row.low, row.high)}" if row.low is not None else ""
    where = (row.metric, without(row.scenario, shared), row.machine, base, interval, by)
    status = f"{row.status}; blocks {row.blocks}" if row.blocks else row.status
    cells = (row.author, age(row.reported_at, now), status)
    told = f"{_since(row, now)}{status}"
    return ChangeRow(row.change, row.verdict, _link(row), " · ".join(filter(None, where)), cells, told, row.magnitude)


# --- Highlights ---


def _highlights(facts: ReleaseFacts) -> Iterator[Block]:
    if not facts.highlights:
        return
    yield Heading(2, "In more detail")
    rows = []
    for highlight in facts.highlights:
        row, params = highlight.row, dict(highlight.scenario)
        parts = [params[name] for name in _DISTINGUISHING if name in params]
        parts = parts or [value for name, value in highlight.scenario if name != "cpufreq_governor"]
        parts += ["on", params["fs"]] if parts and "fs" in params else []
        heading = highlight.heading or " ".join(parts) or highlight.suite
        title = f'"{row.title}"' if row.title else ""
        where = (sentence(highlight), title, highlight.branch, row.scenario, row.machine, row.status)
        link = DocumentLink(", ".join(filter(None, (row.metric, heading))), reverse("report", args=[row.sha[:12]]))
        rows.append(ChangeRow(row.change, row.verdict, link, " · ".join(filter(None, where))))
    yield ChangeList("Changes in more detail", rows)


def sentence(highlight: HighlightData) -> str:
    """ "Commit 0ddad21d3e was reported to have 136.1% improvement of hackbench.throughput when comparing to v5.5." """
    row = highlight.row
    amount = f"{prose_pct(row.change)} " if row.change is not None else ""
    word = row.verdict if row.verdict != Verdict.UNKNOWN else "change"
    subject = f"Commit {row.sha[:10]}" if row.bisected else "A change that nobody has bisected"
    text = f"{subject} was reported to have {amount}{word} of {row.metric}"
    text += f" when comparing to {row.base}." if row.base else "."
    return text + (f" It was merged to the mainline at {highlight.landing}." if highlight.landing else "")


# --- Comparison ---

_ORDER = (ChangeVerdict.REGRESSION, ChangeVerdict.UNKNOWN, ChangeVerdict.IMPROVEMENT, ChangeVerdict.SAME)


def _comparison(facts: ReleaseFacts) -> Iterator[Block]:
    if not facts.kernel or not facts.base:
        yield Heading(2, f"Comparison with {facts.previous or 'the release before'}")
        missing = facts.previous if facts.kernel else facts.version
        yield Paragraph(f"Nothing to compare: no measurements of {missing or 'an earlier release'} yet.")
        yield from _prose(facts, "comparison")
        return
    yield Heading(2, f"{facts.kernel} compared with {facts.base}")
    yield from _prose(facts, "comparison")
    both = [(line, change) for line in facts.lines if (change := line.changes[-1])]
    both.sort(key=lambda pair: (_ORDER.index(pair[1].verdict), -abs(pair[1].pct or 0.0)))
    rows = []
    for line, change in both:
        heights, url = facts.curves.get(line.test, ("", ""))
        moved = kernel_comparison.summary(line.test, change, facts.kernel, facts.base)
        interval = f"95% CI {change.interval}" if change.interval else ""
        where = (line.test.scenario.replace(", ", " "), line.test.box.name, interval)
        _, relative = line.relative
        level, course = "" if relative is None else f"{relative:.1f}", in_letters(heights)
        told = (f"{facts.base} is 100: {level}" if level else "", f"over time {course}" if course else "")
        verdict = (
            change.verdict.value
            if change.verdict in (ChangeVerdict.REGRESSION, ChangeVerdict.IMPROVEMENT)
            else "unknown"
        )
        rows.append(
            ChangeRow(
                change.pct,
                "same" if change.verdict is ChangeVerdict.SAME else verdict,
                DocumentLink(moved, url) if url else moved,
                " · ".join(filter(None, where)),
                (level, course),
                ", ".join(filter(None, told)),
            )
        )
    yield ChangeList(
        f"{facts.kernel} compared with {facts.base}", rows, (f"{facts.base} = 100", "Over time"), frozenset({0})
    )
    if silent := [line for line in facts.lines if not line.changes[-1]]:
        yield Paragraph(f"{counted(len(silent), 'test')} ran on one of the two only.")


# --- Method, machines and glossary ---


def _method(facts: ReleaseFacts) -> Iterator[Block]:
    yield Heading(2, "Method, machines and glossary")
    contact = f" Write to {facts.contact}." if facts.contact else ""
    yield Paragraph(
        f"{facts.lab} builds, boots and measures the Linux kernel while it is being developed, bisects what became"
        " slower or faster, and tells the authors. A change is the metric's own, with its sign: a latency that grew by"
        " a third is +33%, a regression. Regressions stand in the order of how much of them is certain: up to the near"
        f" end of the 95% interval (bootstrap) and beyond the spread of the runs.{contact}"
    )
    yield from _prose(facts, "machines")
    if described := [
        replace(box, name=box.family, family="") if box.family else box for box in facts.boxes if box.is_described
    ]:
        yield machine_table(described)
    if silent := [box.name for box in facts.boxes if not box.is_described]:
        yield Paragraph(f"No hardware details are known of {', '.join(silent)}.")
    shown = {line.test.suite for line in facts.lines} | {highlight.suite for highlight in facts.highlights}
    shown |= {row.metric.partition(".")[0] for row in facts.rows}
    if suites := [(suite, text) for suite, text in facts.suites.items() if text and suite in shown]:
        yield TableBlock("Benchmarks", ("Benchmark", "What it does"), suites)
    if facts.parameters:
        yield TableBlock("Test parameters", ("Classification", "Name", "Description"), facts.parameters)
