"""A study: kernels compared in many tests, in the shape that such reports have on mailing lists. Pure.

Conclusions and setup come first, in the words of a person; then the summary, every test, the machines, and profiles
and counters of the kernels side by side. A study asks one of two questions. Which variant wins: in how many tests
each is best, and by how much on average. Or how versions develop: the speedup against the first kernel, with system
activity (interrupts, context switches, CPU time) as version comparisons show it.

The first kernel is the baseline. Only tests that all variants ran, and whose direction is known, have a winner. A
variant that does not differ from the best one (not significant, or by less than 1%) ties with it, so wins and ties
make 100%. An average is the geometric mean of performance over tests, where performance is the mean, or its
reciprocal if lower is better; averages closer than LEAD count as equal.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from statistics import fmean

from tracker.charts import letters_of, relative_bars
from tracker.documents.blocks import (
    Block,
    Bullets,
    Cell,
    ChangeList,
    ChangeRow,
    ChartBlock,
    Document,
    DocumentLink,
    Heading,
    Paragraph,
    Prose,
    TableBlock,
    comparison_blocks,
    machine_table,
)
from tracker.domain.kernel_comparison import ALMOST, Box, Change, ChangeVerdict, ComparisonLine, lines
from tracker.domain.performance_index import FAR
from tracker.domain.statistics import Z, t_quantile
from tracker.domain.text import counted, number
from tracker.domain.tool_output import Diff, DiffRow, ListingRow, ToolListing, mean_of

# --- System activity ---

# The heading, the column of vmstat, and the corresponding LKP monitor.
COLUMNS = (
    ("Intr/s", "in", "vmstat.system.in"),
    ("CtxSw/s", "cs", "vmstat.system.cs"),
    ("us%", "us", "vmstat.cpu.us"),
    ("sys%", "sy", "vmstat.cpu.sy"),
    ("idle%", "id", "vmstat.cpu.id"),
    ("iowait%", "wa", "vmstat.cpu.wa"),
)
MONITORS = frozenset(monitor for _, _, monitor in COLUMNS)


@dataclass(frozen=True, slots=True)
class System:
    """The columns of one kernel, None where unknown. `source`: the page of the listing that they are from, "" if they
    were measured.
    """

    values: tuple[float | None, ...]
    source: str = ""

    def __bool__(self) -> bool:
        return any(value is not None for value in self.values)


def system(monitors: Mapping[str, Sequence[float]], listings: Iterable[ToolListing], source: str = "") -> System:
    """Return the mean of each column, from the measurements or else from vmstat listings, the first at `source`."""
    printed: dict[str, list[float]] = {}
    for listing in listings:
        for row in listing.rows:
            if row.values and row.values[0] is not None:
                printed.setdefault(row.name, []).append(row.values[0])
    means = (mean_of(monitors.get(monitor) or printed.get(column) or ()) for _, column, monitor in COLUMNS)
    return System(tuple(means), "" if monitors else source)


# --- Listings side by side ---


@dataclass(frozen=True, slots=True)
class Beside:
    """Files of one kind: `labels` name the sides, `files` link to them, `where`: where all were taken; `profiles`: of
    each side that is a profile its functions by share, largest first.
    """

    kind: str
    where: str
    labels: tuple[str, ...]
    files: tuple[DocumentLink, ...]
    diff: Diff
    profiles: tuple[Sequence[ListingRow], ...] = ()


def table(comparison: Beside) -> TableBlock:
    """Return the table: name, value on each side, changes; if the tool has several columns, all sides in one cell."""
    caption = f"{comparison.kind} of {' and '.join(comparison.labels)}"
    diff = comparison.diff
    rows: list[list[str]] = []
    if not diff.is_share and len(diff.columns) > 1:
        for row in diff.rows:
            cells = []
            for cell in row.cells:
                shown = [_value(value) for value in cell.values]
                changed = "".join(f" ({change:+.1f} %)" for change in cell.changes[-1:] if change is not None)
                cells.append(shown[0] if len(set(shown)) == 1 else f"{' → '.join(shown)}{changed}")
            rows.append([_name(row), *cells])
        return TableBlock(caption, ("Name", *diff.columns), rows, frozenset(range(1, len(diff.columns) + 1)))
    at, digits, first, unit, points = (
        (diff.columns.index("share"), 2, "Function", ", %", "points") if diff.is_share else (0, 1, "Name", "", "%")
    )
    columns = [first, *(f"{label}{unit}" for label in comparison.labels)]
    others = comparison.labels[1:]
    columns += [f"Change, {points}"] if len(others) == 1 else [f"{label}, {points} more" for label in others]
    as_text = _share if diff.is_share else _value
    for row in by_difference(diff, at) if diff.is_share else diff.rows:
        changes = ("–" if change is None else f"{change:+.{digits}f}" for change in row.cells[at].changes)
        rows.append([_name(row), *map(as_text, row.cells[at].values), *changes])
    return TableBlock(caption, columns, rows, frozenset(range(1, len(columns))))


def by_difference(diff: Diff, at: int) -> list[DiffRow]:
    """Return functions by how much their share differs from the first side's; those that can't be compared last."""

    def size(row: DiffRow) -> tuple[bool, float, float]:
        cell = row.cells[at]
        known = [abs(change) for change in cell.changes if change is not None]
        return not known, -max(known, default=0.0), -max((value or 0.0 for value in cell.values), default=0.0)

    return sorted(diff.rows, key=size)


def ranked(comparison: Beside) -> TableBlock:
    """Return the profiles side by side, each in its own order: rank, then share and function of each side."""
    share = comparison.diff.columns.index("share")
    rows = []
    for rank, sides in enumerate(zip_longest(*comparison.profiles), 1):
        cells = [f"{row.values[share]:.4f} {row.name}" if row else "" for row in sides]
        rows.append([str(rank), *cells])
    caption = f"{comparison.kind} of {' and '.join(comparison.labels)}, by rank"
    return TableBlock(caption, ("Rank", *(f"{label}, %" for label in comparison.labels)), rows, frozenset({0}))


def _name(row: DiffRow) -> str:
    return f"{row.name} ({row.note})" if row.note and not row.note.startswith("[") else row.name


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _value(value: float | None) -> str:
    return "–" if value is None else number(value, 1e15)


# --- Facts ---


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """`labels` name the kernels, the first of which is the baseline. `kernels`: their own names. `has_wins`: the
    question is which variant wins; otherwise, how versions develop.
    """

    title: str
    labels: tuple[str, ...]
    kernels: tuple[str, ...]
    has_wins: bool
    lines: Sequence[ComparisonLine]
    systems: Sequence[System]
    beside: Sequence[Beside]
    prose: Mapping[str, str]
    files_left_out: int = 0
    files: Sequence[DocumentLink] = ()  # that stand beside no other


# --- Who wins ---

LEAD = 0.1  # per cent: averages that are closer than this count as equal


@dataclass(frozen=True, slots=True)
class TestWinner:
    """The variants, by position, that no other beats in a test: one is the winner, several are a tie."""

    line: ComparisonLine
    best: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        return self.best[0] if len(self.best) == 1 else None


@dataclass(frozen=True, slots=True)
class VariantShare:
    """How often one variant won; `average_pct`: its performance against the first one, the geometric mean over tests,
    plus is better; None if nothing can be averaged. Performance is the mean, or its reciprocal if lower is better.
    """

    wins: int
    pct: float
    average_pct: float | None


@dataclass(frozen=True, slots=True)
class WinTally:
    """The counts of some tests: `shares` in the order of the variants, and ties; together they make 100%."""

    tests: int
    shares: tuple[VariantShare, ...]
    ties: int
    ties_pct: float
    uneven: int = 0  # tests left out of an average, since a value is zero or less, or out of range

    @property
    def best(self) -> int | None:
        """The variant with the best average; None if its lead is below LEAD, or if no test has a winner."""
        return self._led[0] if self._led and self._led[1] >= LEAD and self.ties < self.tests else None

    @property
    def lead_pct(self) -> float | None:
        """The lead of the best over the next best, in per cent of the latter."""
        return self._led[1] if self._led else None

    @property
    def _led(self) -> tuple[int, float] | None:
        averages = [(share.average_pct, n) for n, share in enumerate(self.shares) if share.average_pct is not None]
        if len(averages) < 2:
            return None
        (top, index), (second, _) = sorted(averages, reverse=True)[:2]
        if second <= -100:
            return None  # over next to nothing, no lead can be said
        return index, 100 * ((100 + top) / (100 + second) - 1)


def outcomes(comparisons: Iterable[ComparisonLine]) -> list[TestWinner]:
    """Return the outcome of every test that all variants ran and whose direction is known. A variant that does not
    differ from the best one (not significant, or by less than 1%) ties with it.
    """
    tests: list[tuple[ComparisonLine, int]] = []
    for line in comparisons:
        if line.test.direction in ("higher", "lower") and None not in line.cells:
            sign = 1 if line.test.direction == "higher" else -1
            means = [sign * cell.mean for cell in line.cells if cell]
            tests.append((line, means.index(max(means))))
    against_best = lines(
        (line.test, (line.cells[top], *line.cells[:top], *line.cells[top + 1 :])) for line, top in tests
    )
    winners = []
    for (line, top), against in zip(tests, against_best, strict=True):
        others = [index for index in range(len(line.cells)) if index != top]
        changes = zip(others, against.changes[1:], strict=True)
        tied = [index for index, change in changes if change is not None and change.verdict is ChangeVerdict.SAME]
        winners.append(TestWinner(line, (top, *tied)))
    return winners


def tally(tests: Sequence[TestWinner], variants: int) -> WinTally:
    """Count the wins and the ties of some tests."""
    total, winners, comparisons = len(tests), [test.winner for test in tests], [test.line for test in tests]
    wins = [winners.count(index) for index in (*range(variants), None)]
    pct = [100 * count / total if total else 0.0 for count in wins]
    shares = tuple(VariantShare(wins[index], pct[index], average_pct(comparisons, index)) for index in range(variants))
    uneven = sum(any(_ratio(line, index) is None for index in range(variants)) for line in comparisons)
    return WinTally(total, shares, wins[-1], pct[-1], uneven)


def average_pct(comparisons: Sequence[ComparisonLine], index: int) -> float | None:
    """Return by how many per cent a variant performs better than the first on average; None if not comparable."""
    ratio = speedup(comparisons, index)
    return None if ratio is None else 100 * (ratio - 1)


def speedup(comparisons: Sequence[ComparisonLine], index: int) -> float | None:
    """Return the performance as a multiple of the first kernel's, the geometric mean over the tests that both ran;
    means that are zero or negative, and metrics without a direction, are left out.
    """
    ratios = [ratio for line in comparisons if (ratio := _ratio(line, index)) is not None]
    return math.exp(fmean(ratios)) if ratios else None


def _ratio(line: ComparisonLine, index: int) -> float | None:
    """Return the logarithm of new over old, plus for better."""
    old, new = line.cells[0], line.cells[index]
    if old is None or new is None or old.mean <= 0 or new.mean <= 0 or line.test.direction == "unknown":
        return None
    log = math.log(new.mean) - math.log(old.mean)
    return None if abs(log) > FAR else log if line.test.direction == "higher" else -log


# --- The document ---

_CHARTS = 100  # tests shown one by one
SECTIONS = {"conclusions": "Conclusions", "setup": "Setup"}


def compose(facts: StudyFacts) -> Document:
    """Return the whole study."""
    boxes = list(dict.fromkeys(line.test.box for line in facts.lines))
    suites = {line.test.suite for line in facts.lines}
    aside = f"{', '.join(facts.kernels)}: {counted(len(facts.lines), 'test')} of {counted(len(suites), 'benchmark')}"
    aside += f" on {counted(len(boxes), 'machine')}"
    blocks: list[Block] = []
    for name, heading in SECTIONS.items():
        if name in facts.prose:
            blocks += [Heading(2, heading), Prose(facts.prose[name], name)]
    if not facts.lines:
        blocks.append(Paragraph("There are no measurements of these kernels."))
    elif facts.has_wins:
        blocks += _variants(facts, boxes)
    else:
        blocks += _versions(facts)
    if facts.lines:
        tests = _by_size(facts) if len(facts.labels) == 2 and not facts.has_wins else _tests(facts, boxes)
        blocks += [*tests, Heading(2, "Machines" if len(boxes) > 1 else "Machine"), machine_table(boxes)]
    return Document(facts.title, aside, (*blocks, *_beside(facts)))


# --- Variants: which one wins ---


def _variants(facts: StudyFacts, boxes: Sequence[Box]) -> Iterator[Block]:
    labels, tests = facts.labels, outcomes(facts.lines)
    totals = tally(tests, len(labels))
    of_box = {box: tally([test for test in tests if test.line.test.box == box], len(labels)) for box in boxes}
    yield Heading(2, "Summary of results")
    yield Bullets(list(_summary(facts, len(tests), totals, of_box)))
    if not tests:
        return
    yield Heading(3, "How often each is best")
    rows = [
        (label, str(share.wins), f"{share.pct:.1f}", "" if index == 0 else _signed(share.average_pct))
        for index, (label, share) in enumerate(zip(labels, totals.shares, strict=True))
    ]
    rows += [("ties", str(totals.ties), f"{totals.ties_pct:.1f}", ""), ("all", str(totals.tests), "100.0", "")]
    columns = ["Variant", "Best in tests", "Share, %", f"Average vs. {labels[0]}, %"]
    yield TableBlock("How often each variant is best", columns, rows, frozenset({1, 2, 3}))
    yield Paragraph(
        "The average is the geometric mean of performance over the tests: of the metric, or of its reciprocal where"
        " lower is better."
        + (f" Left out for values of zero or less: {counted(totals.uneven, 'test')}." if totals.uneven else "")
    )
    if len(boxes) > 1:
        yield Heading(3, "By machine")
        yield Paragraph(
            "In how many tests each is best, and by how many per cent the others perform better than"
            f" {labels[0]} on average."
        )
        columns = ["Machine", "Tests", *labels, "Ties", *(f"{label}, %" for label in labels[1:]), "Best"]
        by_machine = []
        for box, own in of_box.items():
            averages = [_signed(share.average_pct) for share in own.shares[1:]]
            wins = [str(share.wins) for share in own.shares]
            by_machine.append([box.name, str(own.tests), *wins, str(own.ties), *averages, _best(own, labels)])
        yield TableBlock("Wins by machine", columns, by_machine, frozenset(range(1, len(columns) - 1)))
    yield from _by_benchmark(tests, boxes, labels)
    yield from _bars(tests, labels)


def _summary(facts: StudyFacts, tests: int, totals: WinTally, of_box: Mapping[Box, WinTally]) -> Iterator[str]:
    labels = ", ".join(facts.labels[:-1]) + f" and {facts.labels[-1]}" if len(facts.labels) > 1 else facts.labels[0]
    suites = {line.test.suite for line in facts.lines}
    sentence = f"{counted(len(of_box), 'machine')} ran {counted(len(suites), 'benchmark')} with {labels}"
    everywhere = len(suites) * len(of_box) == len({(line.test.suite, line.test.box) for line in facts.lines})
    sentence += "" if everywhere else ", not every benchmark on every machine"
    yield f"{sentence}: {counted(len(facts.lines), 'test')}."
    if left := len(facts.lines) - tests:
        yield f"{left} of them are left out below: a variant was not measured, or the direction is unknown."
    if tests:
        wins = ", ".join(f"{label} {share.pct:.0f}%" for label, share in zip(facts.labels, totals.shares, strict=True))
        yield f"Share of tests in which each is best: {wins}."
        yield f"Ties: {totals.ties_pct:.0f}% (within noise, or less than 1% apart)."
        best: dict[str, list[str]] = {}
        for box, own in of_box.items():
            best.setdefault(_best(own, facts.labels), []).append(box.name)
        most_first = sorted(best.items(), key=lambda pair: -len(pair[1]))
        phrases = (f"{label} is best on {', '.join(machines)}" for label, machines in most_first)
        yield f"On average, {'; '.join(phrases)}."


def _best(own: WinTally, labels: Sequence[str]) -> str:
    return "none" if own.best is None else labels[own.best]


def _by_benchmark(tests: Sequence[TestWinner], boxes: Sequence[Box], labels: Sequence[str]) -> Iterator[Block]:
    yield Heading(3, "By benchmark and machine")
    yield Paragraph(
        "The best variant by its average over the benchmark's tests on that machine, and its lead over the next best;"
        " in brackets the number of tests."
    )
    rows = []
    for suite in dict.fromkeys(test.line.test.suite for test in tests):
        row = [suite]
        for box in boxes:
            where = [test for test in tests if test.line.test.suite == suite and test.line.test.box == box]
            own = tally(where, len(labels))
            if own.best is None:
                row.append(f"tie ({own.tests})" if own.tests else "–")
            else:
                row.append(f"{labels[own.best]} {own.lead_pct:+.1f} % ({own.tests})")
        rows.append(row)
    columns = ("Benchmark", *(box.name for box in boxes))
    yield TableBlock("The best variant of each benchmark on each machine", columns, rows)


def _bars(tests: Sequence[TestWinner], labels: Sequence[str]) -> Iterator[Block]:
    """Yield a chart for each benchmark: performance against the baseline, with its interval and the number of runs."""
    yield Heading(3, "Each benchmark against the baseline")
    yield Paragraph(
        f"Performance with {labels[0]} as 100, the baseline: the geometric mean over the tests of a benchmark, with its"
        " 95% interval by Student's t over machines, on one machine over the runs; n is the smallest number of runs."
    )
    for suite in dict.fromkeys(test.line.test.suite for test in tests):
        own = [test.line for test in tests if test.line.test.suite == suite]
        bars = []
        for index, label in enumerate(labels):
            runs = min(cell.side.n for line in own if (cell := line.cells[index]))
            mean, low, high = average(own, index)
            bars.append((label, mean, low, high, runs))
        if chart := relative_bars(suite, bars):
            yield Heading(4, suite)
            yield ChartBlock(chart, letters_of(bars))


def average(lines: Sequence[ComparisonLine], index: int) -> tuple[float | None, float | None, float | None]:
    """Return a variant's performance over some tests with the first one's as 100, and the ends of its 95% interval.

    It is the geometric mean over the tests. Tests on one machine share its moods, so over several machines the error is
    that of clusters (K.-Y. Liang and S. L. Zeger, Biometrika 73, 1986), with Student's t; on one machine it is that of
    the runs, by the intervals of the tests. None where nothing can be said, as of single runs on one machine.
    """
    if index == 0:
        return 100.0, None, None
    logs: dict[Box, list[float]] = {}
    errors: list[float | None] = []
    for line in lines:
        if (ratio := _ratio(line, index)) is not None:
            logs.setdefault(line.test.box, []).append(ratio)
            errors.append(_error(line.changes[index]))
    every = [log for own in logs.values() for log in own]
    if not every:
        return None, None, None
    middle = fmean(every)
    if (many := len(logs)) > 1:
        squares = sum(sum(log - middle for log in own) ** 2 for own in logs.values())
        width = t_quantile(many - 1) * math.sqrt(squares * many / (many - 1)) / len(every)
    else:
        known = [error for error in errors if error is not None]
        width = Z * math.hypot(*known) / len(every) if len(known) == len(every) else 0.0
    if width < _NOTHING:  # single runs, or machines whose differences cancel out
        return _percent(middle), None, None
    return _percent(middle), _percent(middle - width), _percent(middle + width)


_NOTHING = 1e-9


def _error(change: Change | None) -> float | None:
    """Return the standard error of the logarithm of a change, by its interval; None without one."""
    if change is None or change.low is None or change.high is None or change.low <= -100:
        return None
    return (math.log1p(change.high / 100) - math.log1p(change.low / 100)) / (2 * Z)


def _percent(log: float) -> float:
    return 100 * math.exp(min(log, FAR))


# --- Versions: how they develop ---


def _versions(facts: StudyFacts) -> Iterator[Block]:
    yield Heading(2, "Performance summary")
    has_system = any(facts.systems)
    columns = ["Kernel", "Speedup (x)", *(name for name, _, _ in COLUMNS if has_system)]
    rows = []
    for index, label in enumerate(facts.labels):
        ratio = speedup(facts.lines, index)
        cells: list[Cell] = [label, "–" if ratio is None else f"{ratio:.3f}"]
        if has_system:
            own = facts.systems[index]
            values = ["–" if value is None else f"{value:.0f}" for value in own.values]
            cells += [DocumentLink(value, own.source) if own.source else value for value in values]
        rows.append(cells)
    yield TableBlock("Speedup", columns, rows, frozenset(range(1, len(columns))))
    several = "" if len(facts.lines) == 1 else ", the geometric mean over the tests that both ran"
    yield Paragraph(f"Speedup: performance as a multiple of that of {facts.labels[0]}{several}.")
    if len(facts.labels) == 2:
        yield Paragraph(" ".join(_overall(facts)))


def _overall(facts: StudyFacts) -> Iterator[str]:
    """Yield what two kernels differ by in all, and whether that may be chance."""
    base, kernel = facts.labels
    both = [(line, change) for line in facts.lines if (change := line.changes[1])]
    if not both:
        return
    mean, low, high = average([line for line, _ in both], 1)
    machines = len({line.test.box for line, _ in both})
    if mean is not None:
        text = f"In all {kernel} performs {mean - 100:+.1f}% against {base}"
        if low is None or high is None:
            yield f"{text}; nothing tells how much of it is chance."
        else:
            over = f"over {machines} machines" if machines > 1 else "over the runs on one machine"
            by_chance = low <= 100 <= high
            sure = "the interval holds zero, so no overall change can be claimed" if by_chance else "not by chance"
            sure += "" if by_chance or machines > 1 else ", on this machine"
            yield f"{text} (95% CI {low - 100:+.1f} to {high - 100:+.1f}% {over}): {sure}."
    number = Counter(change.verdict for _, change in both)
    unknown = f", {moved} changed with unknown direction" if (moved := number[ChangeVerdict.UNKNOWN]) else ""
    yield (
        f"Of {counted(len(both), 'test')}, {number[ChangeVerdict.REGRESSION]} worse,"
        f" {number[ChangeVerdict.IMPROVEMENT]} better, {number[ChangeVerdict.SAME]} within noise or changed by less"
        f" than {ALMOST:.0f}%{unknown}."
    )
    if once := sum(not change.tested for _, change in both):
        yield f"{counted(once, 'test')} ran too few times to test for significance: a few per cent there may be noise."


# --- Every test ---

MOST_TESTS = 500  # of two kernels


def _by_size(facts: StudyFacts) -> Iterator[Block]:
    """Yield the tests of two kernels by the size of their change; those that did not change are folded."""
    both = [(line, change) for line in facts.lines if (change := line.changes[1])]
    both.sort(
        key=lambda pair: -abs(math.log1p(max(pair[1].pct, -99.99) / 100)) if pair[1].pct is not None else -math.inf
    )
    yield Heading(2, "By size of change")
    moved = [pair for pair in both if pair[1].verdict is not ChangeVerdict.SAME]
    same = [pair for pair in both if pair[1].verdict is ChangeVerdict.SAME]
    if len(moved) > MOST_TESTS:
        yield Paragraph(f"The first {MOST_TESTS} of {len(moved)} tests that changed.")
    base, kernel = facts.labels
    yield ChangeList(
        "Tests by size of change",
        [_compared(*pair) for pair in moved[:MOST_TESTS]],
        (f"{base} → {kernel}", "Runs"),
        frozenset({0, 1}),
        f"{counted(len(same), 'test')} within noise, or changed by less than {ALMOST:.0f}%"
        f"{f'; {MOST_TESTS} of them' if len(same) > MOST_TESTS else ''}",
        [_compared(*pair) for pair in same[:MOST_TESTS]],
    )
    if silent := len(facts.lines) - len(both):
        yield Paragraph(f"{counted(silent, 'test')} ran on one of the two only.")


def _compared(line: ComparisonLine, change: Change) -> ChangeRow:
    old, new = line.cells
    assert old
    assert new
    unit = f" {line.test.unit}" if line.test.unit else ""
    means, runs = f"{_value(old.mean)} → {_value(new.mean)}{unit}", f"{old.side.n} + {new.side.n}"
    better = f"{line.test.direction} is better" if line.test.direction in ("higher", "lower") else "direction unknown"
    interval = f"95% CI {change.interval}" if change.interval else ""
    where = (line.test.scenario.replace(", ", " "), line.test.box.name, better, interval)
    verdict = "same" if change.verdict is ChangeVerdict.SAME else change.verdict.value
    return ChangeRow(
        *(change.pct, verdict, line.test.metric, " · ".join(filter(None, where)), (means, runs)),
        f"{means}, {runs} runs",
    )


def _tests(facts: StudyFacts, boxes: Sequence[Box]) -> Iterator[Block]:
    yield Heading(2, "Every test")
    yield Paragraph(
        f"Means, each with its change against {facts.labels[0]} in per cent, with its 95% CI."
        " The change is the metric's own, with its sign."
    )
    ordered = sorted(facts.lines, key=lambda line: boxes.index(line.test.box))
    for box, tests in groupby(ordered, lambda line: line.test.box):
        if len(boxes) > 1:
            yield Heading(3, box.name)
        rows = []
        for line in tests:
            unit, direction = line.test.unit, line.test.direction
            metric = f"{line.test.metric}{f', {unit}' if unit else ''}"
            metric += f", {direction} is better" if direction in ("higher", "lower") else ""
            cells = [
                f"{_value(cell.mean)}{_beside_mean(change)}" if cell else "–"
                for cell, change in zip(line.cells, line.changes, strict=True)
            ]
            rows.append([_name_of(line), metric, *cells])
        columns = ("Test", "Metric", *facts.labels)
        yield TableBlock(f"Every test on {box.name}", columns, rows, frozenset(range(2, len(columns))))

    if not facts.has_wins:
        yield Heading(3, "Test by test")
        if len(facts.lines) > _CHARTS:
            yield Paragraph(f"The first {_CHARTS} of {len(facts.lines)} tests.")
        for line in facts.lines[:_CHARTS]:
            yield Heading(4, f"{_name_of(line)}, on {line.test.box.name}")
            yield from comparison_blocks(line, facts.labels)


def _name_of(line: ComparisonLine) -> str:
    return f"{line.test.suite}, {line.test.scenario}" if line.test.params else line.test.suite


def _beside_mean(change: Change | None) -> str:
    if change is None:
        return ""
    if change.verdict is ChangeVerdict.SAME:
        return " (same)"
    amount = f"{change.pct:+.1f}" if change.pct is not None else "from zero"
    if change.low is not None and change.high is not None:
        amount += f", {change.low:+.1f} … {change.high:+.1f}"
    return f" ({amount}, direction unknown)" if change.verdict is ChangeVerdict.UNKNOWN else f" ({amount})"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


# --- Profiles and counters ---


def _beside(facts: StudyFacts) -> Iterator[Block]:
    if not facts.beside and not facts.files:
        return
    yield Heading(2, "Profiles and counters")
    if facts.files:
        yield Paragraph("Of one kernel only:")
        yield Bullets(facts.files)
    if facts.files_left_out:
        yield Paragraph(f"{counted(facts.files_left_out, 'file')} not shown (limit reached).")
    for comparison in sorted(facts.beside, key=lambda beside: not beside.diff.is_share):  # profiles first
        diff, where = comparison.diff, f"({comparison.where})" if comparison.where else ""
        yield Heading(3, f"{comparison.kind}: {diff.title}", aside=where)
        yield Bullets(comparison.files)
        if comparison.profiles:
            yield ranked(comparison)
        if diff.left_out:
            shown = f"The first {len(diff.rows)}{' by share' if diff.is_share else ''}"
            yield Paragraph(f"{shown}; {diff.left_out} more are small or zero everywhere.")
        if diff.is_share:
            yield Paragraph("The same by function, those first whose share differs most from the first kernel's.")
        yield table(comparison)
