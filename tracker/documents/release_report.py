"""The release report, with the sections, words and order of the 0-Day report of v5.6 (2020). Pure.

`ReleaseFacts` holds all that the report says, and `compose` turns it into blocks: a summary in one paragraph with the
worst of what is open, introduction, parameters, what was merged in the cycle, what was reported from other trees
(shift-left testing), how the kernel compares with the previous release, and the machines.

The numbers of a section are counted from the rows of its table and from nothing else, so they can't disagree; if the
table is cut, the text says so. Development bases are shown for merged reports only, since those of other trees are
not comparable. People may write a text for each section, which stands in its place or beside the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.urls import reverse

from tracker.charts import in_letters
from tracker.documents.blocks import (
    LIMIT,
    Block,
    Bullets,
    Document,
    DocumentLink,
    Facts,
    Heading,
    Paragraph,
    PrintedRow,
    Prose,
    TableBlock,
    comparison_blocks,
)
from tracker.documents.linus_mail import MailLine, name, summary
from tracker.domain.events import OPEN, State, Verdict
from tracker.domain.kernel_comparison import Box, ComparisonLine, Test, Word
from tracker.domain.text import age, counted, prose_pct
from tracker.domain.timeline import LABELS, change

# --- Facts ---


@dataclass(frozen=True, slots=True)
class HighlightData:
    """A report highlight. `change`: the metric's own, in per cent; `landing`: "" while it is not merged."""

    sha: str
    title: str
    branch: str
    report: str
    indicator: str
    suite: str
    change: float | None
    verdict: str
    base: str
    landing: str
    scenario: tuple[tuple[str, str], ...]
    machine: str
    status: str
    heading: str
    is_merged: bool


@dataclass(frozen=True, slots=True)
class ParameterData:
    """A parameter, explained."""

    classification: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """`kernel` and `base`: the kernels that are compared, "" if not measured; `prose`: what people wrote, by section;
    `suites`: descriptions by name.
    """

    lab: str
    version: str
    previous: str
    released_at: datetime | None
    as_of: datetime
    merged: Sequence[PrintedRow]
    shift_left: Sequence[PrintedRow]
    by_people: Sequence[PrintedRow]
    details: Sequence[HighlightData]
    parameters: Sequence[ParameterData]
    suites: Mapping[str, str]
    kernel: str
    base: str
    lines: Sequence[ComparisonLine]
    curves: Mapping[Test, tuple[str, str]]  # the curve of each test that has one: its heights and its page
    boxes: Sequence[Box]
    prose: Mapping[str, str]
    regressions: Sequence[MailLine] = ()  # worst first


# --- The report ---

# The texts that people may write, by section.
SECTIONS = {
    "introduction": "Introduction",
    "release-test": "Release test",
    "shift-left": "Shift-left testing",
    "comparison": "Performance comparison",
    "machines": "Test machines",
}
_MOVED = frozenset({Word.IMPROVEMENT, Word.REGRESSION, Word.UNKNOWN})
MOST_MOVED = 20
_DISTINGUISHING = ("mode", "test", "ipc", "rw", "class")  # the parameters that distinguish tests of one suite


def compose(facts: ReleaseFacts) -> Document:
    """Return the whole report."""
    sections = (_summary, _introduction, _parameters, _release_test, _shift_left, _comparison, _machines)
    blocks = tuple(block for section in sections for block in section(facts))
    released = f"released {facts.released_at:%Y-%m-%d}" if facts.released_at else "not released yet"
    aside = f"{facts.version}, {released}; as of {facts.as_of:%Y-%m-%d}"
    return Document(f"{facts.lab} Linux Kernel Performance Report ({facts.version})", aside, blocks)


def _prose(facts: ReleaseFacts, name: str) -> Iterator[Block]:
    if text := facts.prose.get(name):
        yield Prose(text, name)


MOST_WORST = 5


def _summary(facts: ReleaseFacts) -> Iterator[Block]:
    """Yield what somebody needs who reads nothing else."""
    yield Heading(2, "Summary")
    yield Paragraph(summary(facts.version, facts.regressions, facts.as_of))
    still = [row for row in facts.regressions if row.state in OPEN]
    if still:
        rows = [
            (
                change(row.change, Verdict.REGRESSION),
                DocumentLink(name(row), reverse("report", args=[row.sha[:12]])),
                row.metric,
                row.author or "unknown",
                age(row.reported_at, facts.as_of),
                LABELS[State(row.state)],
            )
            for row in still[:MOST_WORST]
        ]
        caption = "Worst open regressions" if len(still) > 1 else "The open regression"
        yield TableBlock(
            caption, ("Change", "What", "Metric", "Author", "Age", "State"), rows, frozenset({0}), as_records=True
        )


def _introduction(facts: ReleaseFacts) -> Iterator[Block]:
    v = facts.version
    yield Heading(2, "Introduction", "1")
    if "introduction" in facts.prose:
        yield from _prose(facts, "introduction")
    else:
        yield Paragraph(
            f"{facts.lab} builds, boots and measures the Linux kernel while it is being developed, and tells the"
            " authors of changes what they made slower or faster. This report sums up what it saw of performance in"
            f" the {v} cycle. It is structured in the following manner:"
        )
    sections = (
        "test parameter description",
        f"merged regressions and improvements in {v} release candidates",
        "captured regressions and improvements by shift-left testing during developers' and maintainers' tree during"
        f" {v} release cycle",
        "performance comparison among different kernel releases",
        "test machine list",
    )
    yield Bullets([DocumentLink(f"Section {n}, {name}", f"#s{n}") for n, name in enumerate(sections, 2)])


def _parameters(facts: ReleaseFacts) -> Iterator[Block]:
    yield Heading(2, "Test Parameter Description", "2")
    if not facts.parameters:
        yield Paragraph("No parameters are described yet: run `loaddata lab_texts`, or add them in the admin.")
        return
    yield Paragraph("What the parameters of tests and the fields of machines mean:")
    rows = [(parameter.classification, parameter.name, parameter.description) for parameter in facts.parameters]
    yield TableBlock("Test parameters", ("Classification", "Name", "Description"), rows)


def _release_test(facts: ReleaseFacts) -> Iterator[Block]:
    v = facts.version
    yield Heading(2, f"Linux Kernel {v} Release Test", "3")
    against = f" when comparing with {facts.previous}" if facts.previous else ""
    yield Paragraph(f"Observed {_numbers(facts.merged)} that were merged in the cycle of {v}{against}.")
    if still := sum(row.verdict == Verdict.REGRESSION and row.state in OPEN for row in facts.merged):
        yield Paragraph(f"Of the regressions, {still} {'is' if still == 1 else 'are'} still open.")
    yield from _prose(facts, "release-test")
    yield Heading(3, "Observation summary", "3.1")
    yield from _rows(facts.merged, "Merged regressions and improvements", with_base=True)
    yield from _details([highlight for highlight in facts.details if highlight.is_merged], facts, "3")


def _shift_left(facts: ReleaseFacts) -> Iterator[Block]:
    yield Heading(2, "Shift-Left Testing", "4")
    yield Paragraph(
        f"Besides the mainline, {facts.lab} tests the trees of developers and maintainers, where a problem is found"
        " before it reaches others: testing moves to the left on the timeline. In the cycle of"
        f" {facts.version} it reported {_numbers(facts.shift_left)} from these trees."
    )
    yield from _prose(facts, "shift-left")
    yield Heading(3, "Report list", "4.1")
    yield from _rows(facts.shift_left, "Regressions and improvements from other trees", with_base=False)
    details = [highlight for highlight in facts.details if not highlight.is_merged]
    yield from _details(details, facts, "4")
    if facts.by_people:
        yield Heading(3, "Reported by people", f"4.{len(details) + 2}")
        yield Paragraph("What people reported on the lists, in their own figures; the lab did not measure it.")
        columns = ("What they measured", "Report", "How much", "Test Machine", "Status")
        cells = [
            (
                row.indicator or "not said",
                DocumentLink(row.report, reverse("report", args=[row.sha[:12]])),
                row.magnitude or "not said",
                row.machine or "not said",
                row.status,
            )
            for row in facts.by_people
        ]
        yield TableBlock("Regressions reported by people", columns, cells, as_records=True)


def _numbers(rows: Sequence[PrintedRow]) -> str:
    """Return the counts of a table in words, from its rows and nothing else."""
    verdicts = [row.verdict for row in rows]
    text = counted(verdicts.count(Verdict.REGRESSION), "regression")
    text += f" and {counted(verdicts.count(Verdict.IMPROVEMENT), 'improvement')}"
    if unknown := verdicts.count(Verdict.UNKNOWN):
        text += f", and {counted(unknown, 'change')} whose direction is unknown"
    return text


def _rows(rows: Sequence[PrintedRow], caption: str, *, with_base: bool) -> Iterator[Block]:
    """Yield the table of a section; the development bases of trees other than the mainline are not comparable."""
    if not rows:
        yield Paragraph("None.")
        return
    if len(rows) >= LIMIT:
        yield Paragraph(f"There are more: these are the {LIMIT} that were reported last, and the numbers are theirs.")
    columns = ("Test Indicator", "Report", "Test Scenario", "Test Machine", "Development Base", "Status")
    shown = range(6) if with_base else (0, 1, 2, 3, 5)
    cells = []
    for row in rows:
        link = DocumentLink(row.report, reverse("report", args=[row.sha[:12]]))
        values = (row.indicator, link, _scenario(row), row.machine, row.base, row.status)
        cells.append([values[index] for index in shown])
    yield TableBlock(caption, [columns[index] for index in shown], cells, as_records=True)


def _scenario(row: PrintedRow | HighlightData) -> str:
    return ", ".join(f"{name}: {value}" for name, value in row.scenario)


def _details(details: Sequence[HighlightData], facts: ReleaseFacts, section: str) -> Iterator[Block]:
    for number, highlight in enumerate(details, 2):
        params = dict(highlight.scenario)
        parts = [params[name] for name in _DISTINGUISHING if name in params]
        parts = parts or [value for name, value in highlight.scenario if name != "cpufreq_governor"]
        parts += ["on", params["fs"]] if parts and "fs" in params else []
        heading = highlight.heading or " ".join(parts) or highlight.suite
        yield Heading(3, f"{highlight.indicator}, {heading}", f"{section}.{number}")
        if described := facts.suites.get(highlight.suite):
            yield Paragraph(described)
        yield Paragraph(sentence(highlight))
        yield Facts(
            [
                ("Correlated commit", f'{highlight.sha} "{highlight.title}"' if highlight.title else highlight.sha),
                ("Branch", highlight.branch or "unknown"),
                ("Report", DocumentLink(highlight.report, reverse("report", args=[highlight.sha[:12]]))),
                ("Test scenario", _scenario(highlight)),
                ("Test machine", highlight.machine),
                ("Status", highlight.status),
            ]
        )


def sentence(highlight: HighlightData) -> str:
    """ "Commit 0ddad21d3e was reported to have 136.1% improvement of hackbench.throughput when comparing to v5.5." """
    amount = f"{prose_pct(highlight.change)} " if highlight.change is not None else ""
    word = highlight.verdict if highlight.verdict != "unknown" else "change"
    text = f"Commit {highlight.sha[:10]} was reported to have {amount}{word} of {highlight.indicator}"
    text += f" when comparing to {highlight.base}." if highlight.base else "."
    return text + (f" It was merged to the mainline at {highlight.landing}." if highlight.landing else "")


def _comparison(facts: ReleaseFacts) -> Iterator[Block]:
    yield Heading(2, "Latest Release Performance Comparing", "5")
    if not facts.kernel or not facts.base:
        missing = facts.previous if facts.kernel else facts.version
        yield Paragraph(f"Nothing to compare: no measurements of {missing or 'an earlier release'} yet.")
        yield from _prose(facts, "comparison")
        return
    both = [line for line in facts.lines if line.changes[-1] is not None]
    verdicts = [line.changes[-1].word for line in both if line.changes[-1]]
    moved = verdicts.count(Word.UNKNOWN)
    unknown = f", {moved} changed with unknown direction" if moved else ""
    yield Paragraph(
        f"How {facts.kernel} compares with {facts.base}, in {counted(len(both), 'test')} of"
        f" {counted(len({line.test.suite for line in both}), 'suite')}: {verdicts.count(Word.IMPROVEMENT)} better,"
        f" {verdicts.count(Word.REGRESSION)} worse, {verdicts.count(Word.SAME)} almost the same{unknown}."
        f" In the charts {facts.base} is 100."
    )
    yield from _prose(facts, "comparison")
    yield from _moved(both, facts)
    for number, (suite, lines) in enumerate(groupby(facts.lines, lambda line: line.test.suite), 1):
        yield Heading(3, suite, f"5.{number}")
        if described := facts.suites.get(suite):
            yield Paragraph(described)
        for index, line in enumerate(lines, 1):
            yield Heading(4, f"{suite} Test {index}")
            yield Facts(line.test.box.facts or [("test machine", line.test.box.name)])
            yield Facts(line.test.params)
            yield from comparison_blocks(line, (facts.base, facts.kernel))


def _moved(lines: Sequence[ComparisonLine], facts: ReleaseFacts) -> Iterator[Block]:
    """Yield the tests that moved most, each with the line of its curve over time."""
    moved = [(line, change) for line in lines if (change := line.changes[-1]) and change.word in _MOVED]
    moved.sort(key=lambda pair: -abs(pair[1].pct or 0.0))
    if not any(line.test in facts.curves for line, _ in moved[:MOST_MOVED]):
        return
    rows = []
    for line, change in moved[:MOST_MOVED]:
        heights, url = facts.curves.get(line.test, ("", ""))
        curve = DocumentLink(drawn, url) if (drawn := in_letters(heights)) else "no history"
        rows.append((line.test.metric, line.test.scenario, line.test.box.name, change.percent, curve))
    columns = ("Metric", "Scenario", "Machine", "Change", "Over time")
    yield TableBlock("What moved most", columns, rows, frozenset({3}), as_records=True)


def _machines(facts: ReleaseFacts) -> Iterator[Block]:
    yield Heading(2, "Test Machines", "6")
    yield from _prose(facts, "machines")
    described = [box for box in facts.boxes if box.facts]
    order = list(dict.fromkeys([box.family for box in described if box.family] + [box.model for box in described]))
    boxes = sorted(described, key=lambda box: order.index(box.family or box.model))
    for number, (family, group) in enumerate(groupby(boxes, lambda box: box.family or box.model or "Others"), 1):
        yield Heading(3, family, f"6.{number}")
        yield from (Facts(box.facts if box.family else (("name", box.name), *box.facts)) for box in group)
    if silent := [box.name for box in facts.boxes if not box.facts]:
        yield Paragraph(f"No hardware details are known of {', '.join(silent)}.")
