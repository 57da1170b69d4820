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

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from tracker.documents.blocks import (
    Block,
    Bullets,
    Document,
    DocumentLink,
    Facts,
    Heading,
    Paragraph,
    Prose,
    TableBlock,
    comparison_blocks,
)
from tracker.domain.kernel_comparison import Box, Cell, Change, ComparisonLine, Word, lines
from tracker.domain.text import counted
from tracker.domain.tool_output import CellState, Diff, DiffRow, ToolListing, mean_of

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
    """The columns of one kernel, None where unknown."""

    values: tuple[float | None, ...]

    def __bool__(self) -> bool:
        return any(value is not None for value in self.values)


def system(monitors: Mapping[str, Sequence[float]], listings: Iterable[ToolListing]) -> System:
    """Return the mean of each column, from the measurements or else from vmstat listings."""
    printed: dict[str, list[float]] = {}
    for listing in listings:
        for row in listing.rows:
            if row.values and row.values[0] is not None:
                printed.setdefault(row.name, []).append(row.values[0])
    means = []
    for _, column, monitor in COLUMNS:
        values = monitors.get(monitor) or printed.get(column) or ()
        means.append(mean_of(values))
    return System(tuple(means))


# --- Listings side by side ---


@dataclass(frozen=True, slots=True)
class Beside:
    """Files of one kind: `labels` name the sides, `files` link to them, `where`: where all were taken."""

    kind: str
    where: str
    labels: tuple[str, ...]
    files: tuple[DocumentLink, ...]
    diff: Diff


def table(comparison: Beside) -> TableBlock:
    """Return the table: name, value on each side, changes; if the tool has several columns, all sides in one cell."""
    caption = f"{comparison.kind} of {' and '.join(comparison.labels)}"
    diff = comparison.diff
    if not diff.is_share and len(diff.columns) > 1:
        rows = [[_name(row), *map(_in_a_cell, row.cells)] for row in diff.rows]
        return TableBlock(caption, ("Name", *diff.columns), rows, frozenset(range(1, len(diff.columns) + 1)))
    unit = ", %" if diff.is_share else ""
    columns = ("Function" if diff.is_share else "Name", *(f"{label}{unit}" for label in comparison.labels))
    columns += _changes(comparison.labels[1:], "points" if diff.is_share else "%")
    at = diff.columns.index("share") if diff.is_share else 0
    rows = [[_name(row), *_in_columns(row.cells[at], diff.is_share)] for row in diff.rows]
    return TableBlock(caption, columns, rows, frozenset(range(1, len(columns))))


def _changes(labels: Sequence[str], unit: str) -> tuple[str, ...]:
    return (f"Change, {unit}",) if len(labels) == 1 else tuple(f"{label}, {unit} more" for label in labels)


def _name(row: DiffRow) -> str:
    return f"{row.name} ({row.note})" if row.note and not row.note.startswith("[") else row.name


def _in_columns(cell: CellState, is_share: bool) -> list[str]:
    values = ["–" if value is None else format_value(value) for value in cell.values]
    digits = 2 if is_share else 1
    return values + ["–" if change is None else f"{change:+.{digits}f}" for change in cell.changes]


def _in_a_cell(cell: CellState) -> str:
    shown = ["–" if value is None else format_value(value) for value in cell.values]
    if len(set(shown)) == 1:
        return shown[0]
    change = cell.changes[-1]
    return " → ".join(shown) + ("" if change is None else f" ({change:+.1f} %)")


def format_value(value: float) -> str:
    """Return a measured value with four significant digits, or all those before the decimal point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


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


# --- Who wins ---

FAR = 200.0  # a larger ratio, as a natural logarithm, counts as out of range
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
class Share:
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
    shares: tuple[Share, ...]
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
        averages = [
            (share.average_pct, index) for index, share in enumerate(self.shares) if share.average_pct is not None
        ]
        if len(averages) < 2:
            return None
        (top, index), (second, _) = sorted(averages, reverse=True)[:2]
        return index, 100 * ((100 + top) / (100 + second) - 1)


def outcomes(comparisons: Iterable[ComparisonLine]) -> list[TestWinner]:
    """Return the outcome of every test that all variants ran and whose direction is known. A variant that does not
    differ from the best one (not significant, or by less than 1%) ties with it.
    """
    comparable = [line for line in comparisons if line.test.direction in ("higher", "lower") and None not in line.cells]
    tops = [_top(line) for line in comparable]
    against_best = lines((line.test, _first(line.cells, top)) for line, top in zip(comparable, tops, strict=True))
    winners = []
    for line, top, against in zip(comparable, tops, against_best, strict=True):
        others = [index for index in range(len(line.cells)) if index != top]
        tied = [
            index
            for index, change in zip(others, against.changes[1:], strict=True)
            if change is not None and change.word is Word.SAME
        ]
        winners.append(TestWinner(line, (top, *tied)))
    return winners


def _top(line: ComparisonLine) -> int:
    means = [cell.mean if cell else math.nan for cell in line.cells]
    sign = 1 if line.test.direction == "higher" else -1
    return max(range(len(means)), key=lambda index: sign * means[index])


def _first(cells: Sequence[Cell | None], index: int) -> list[Cell | None]:
    return [cells[index], *(cell for other, cell in enumerate(cells) if other != index)]


def tally(tests: Sequence[TestWinner], variants: int) -> WinTally:
    """Count the wins and the ties of some tests."""
    winners = [outcome.winner for outcome in tests]
    total = len(tests)
    ties = winners.count(None)
    averages = [average_pct([outcome.line for outcome in tests], index) for index in range(variants)]
    shares = tuple(
        Share(winners.count(index), _share(winners.count(index), total), averages[index]) for index in range(variants)
    )
    uneven = sum(any(_ratio(outcome.line, index) is None for index in range(variants)) for outcome in tests)
    return WinTally(total, shares, ties, _share(ties, total), uneven)


def _share(number: int, total: int) -> float:
    return 100 * number / total if total else 0.0


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
    if abs(log) > FAR:
        return None
    return log if line.test.direction == "higher" else -log


# --- The document ---

_CHARTS = 100  # tests shown one by one
SECTIONS = {"conclusions": "Conclusions", "setup": "Setup"}


def compose(facts: StudyFacts) -> Document:
    """Return the whole study."""
    boxes = _boxes(facts.lines)
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
        blocks += [*_tests(facts, boxes), *_machines(boxes)]
    return Document(facts.title, aside, (*blocks, *_beside(facts)))


def _boxes(lines: Sequence[ComparisonLine]) -> list[Box]:
    return list(dict.fromkeys(line.test.box for line in lines))


# --- Variants: which one wins ---


def _variants(facts: StudyFacts, boxes: Sequence[Box]) -> Iterator[Block]:
    tests = outcomes(facts.lines)
    totals = tally(tests, len(facts.labels))
    yield Heading(2, "Summary of results")
    yield Bullets(list(_summary(facts, boxes, tests, totals)))
    if not tests:
        return
    yield Heading(3, "How often each is best")
    yield _shares(facts, totals)
    yield Paragraph(
        "The average is the geometric mean of performance over the tests: of the metric, or of its reciprocal where"
        " lower is better."
        + (f" Left out for values of zero or less: {counted(totals.uneven, 'test')}." if totals.uneven else "")
    )
    if len(boxes) > 1:
        yield Heading(3, "By machine")
        yield Paragraph(
            "In how many tests each is best, and by how many per cent the others perform better than"
            f" {facts.labels[0]} on average."
        )
        yield _by_machine(facts, boxes, tests)
    yield Heading(3, "By benchmark and machine")
    yield Paragraph(
        "The best variant by its average over the benchmark's tests on that machine, and its lead over the next best;"
        " in brackets the number of tests."
    )
    suites = list(dict.fromkeys(outcome.line.test.suite for outcome in tests))
    rows = []
    for suite in suites:
        row = [suite]
        for box in boxes:
            winners = [
                outcome for outcome in tests if outcome.line.test.suite == suite and outcome.line.test.box == box
            ]
            row.append(_best_of(tally(winners, len(facts.labels)), facts.labels))
        rows.append(row)
    yield TableBlock(
        "The best variant of each benchmark on each machine", ("Benchmark", *(box.name for box in boxes)), rows
    )


def _summary(facts: StudyFacts, boxes: Sequence[Box], tests: Sequence[TestWinner], totals: WinTally) -> Iterator[str]:
    labels = ", ".join(facts.labels[:-1]) + f" and {facts.labels[-1]}" if len(facts.labels) > 1 else facts.labels[0]
    suites = {line.test.suite for line in facts.lines}
    sentence = f"{counted(len(boxes), 'machine')} ran {counted(len(suites), 'benchmark')} with {labels}"
    everywhere = len(suites) * len(boxes) == len({(line.test.suite, line.test.box) for line in facts.lines})
    sentence += "" if everywhere else ", not every benchmark on every machine"
    yield f"{sentence}: {counted(len(facts.lines), 'test')}."
    if left := len(facts.lines) - len(tests):
        yield f"{left} of them are left out below: a variant was not measured, or the direction is unknown."
    if tests:
        wins = ", ".join(f"{label} {share.pct:.0f}%" for label, share in zip(facts.labels, totals.shares, strict=True))
        yield f"Share of tests in which each is best: {wins}."
        yield f"Ties: {totals.ties_pct:.0f}% (within noise, or less than 1% apart)."
        best = _best_by_machine(facts, boxes, tests)
        phrases = (f"{label} is best on {', '.join(machines)}" for label, machines in best)
        yield f"On average, {'; '.join(phrases)}."


def _best_by_machine(
    facts: StudyFacts, boxes: Sequence[Box], tests: Sequence[TestWinner]
) -> list[tuple[str, list[str]]]:
    best: dict[str, list[str]] = {}
    for box in boxes:
        winner = tally([outcome for outcome in tests if outcome.line.test.box == box], len(facts.labels)).best
        best.setdefault("none" if winner is None else facts.labels[winner], []).append(box.name)
    return sorted(best.items(), key=lambda pair: -len(pair[1]))


def _shares(facts: StudyFacts, totals: WinTally) -> TableBlock:
    rows = [
        (label, str(share.wins), f"{share.pct:.1f}", "" if index == 0 else _signed(share.average_pct))
        for index, (label, share) in enumerate(zip(facts.labels, totals.shares, strict=True))
    ]
    rows += [("ties", str(totals.ties), f"{totals.ties_pct:.1f}", ""), ("all", str(totals.tests), "100.0", "")]
    columns = ("Variant", "Best in tests", "Share, %", f"Average vs. {facts.labels[0]}, %")
    return TableBlock("How often each variant is best", columns, rows, frozenset({1, 2, 3}))


def _by_machine(facts: StudyFacts, boxes: Sequence[Box], tests: Sequence[TestWinner]) -> TableBlock:
    columns = ["Machine", "Tests", *facts.labels, "Ties", *(f"{label}, %" for label in facts.labels[1:]), "Best"]
    rows = []
    for box in boxes:
        own = tally([outcome for outcome in tests if outcome.line.test.box == box], len(facts.labels))
        averages = [_signed(share.average_pct) for share in own.shares[1:]]
        best = "none" if own.best is None else facts.labels[own.best]
        wins = [str(share.wins) for share in own.shares]
        rows.append((box.name, str(own.tests), *wins, str(own.ties), *averages, best))
    return TableBlock("Wins by machine", columns, rows, frozenset(range(1, len(columns) - 1)))


def _best_of(own: WinTally, labels: Sequence[str]) -> str:
    if not own.tests:
        return "–"
    if own.best is None or own.lead_pct is None or own.ties == own.tests:
        return f"tie ({own.tests})"
    return f"{labels[own.best]} {own.lead_pct:+.1f} % ({own.tests})"


# --- Versions: how they develop ---


def _versions(facts: StudyFacts) -> Iterator[Block]:
    yield Heading(2, "Performance summary")
    has_system = any(facts.systems)
    columns = ["Kernel", "Speedup (x)", *(name for name, _, _ in COLUMNS if has_system)]
    rows = []
    for index, label in enumerate(facts.labels):
        ratio = speedup(facts.lines, index)
        cells = [label, "–" if ratio is None else f"{ratio:.3f}"]
        if has_system:
            cells += ["–" if value is None else f"{value:.0f}" for value in facts.systems[index].values]
        rows.append(cells)
    yield TableBlock("Speedup", columns, rows, frozenset(range(1, len(columns))))
    several = "" if len(facts.lines) == 1 else ", the geometric mean over the tests that both ran"
    yield Paragraph(f"Speedup: performance as a multiple of that of {facts.labels[0]}{several}.")


# --- Every test ---


def _machines(boxes: Sequence[Box]) -> Iterator[Block]:
    yield Heading(2, "Machines" if len(boxes) > 1 else "Machine")
    for box in boxes:
        yield Facts([("name", box.name), *box.facts])


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
        rows = [_test_row(line) for line in tests]
        columns = ("Test", "Metric", *facts.labels)
        numeric = frozenset(range(2, len(columns)))
        yield TableBlock(f"Every test on {box.name}", columns, rows, numeric)

    if not facts.has_wins:
        yield Heading(3, "Test by test")
        if len(facts.lines) > _CHARTS:
            yield Paragraph(f"The first {_CHARTS} of {len(facts.lines)} tests.")
        for line in facts.lines[:_CHARTS]:
            yield Heading(4, f"{_name_of(line)}, on {line.test.box.name}")
            yield from comparison_blocks(line, facts.labels)


def _name_of(line: ComparisonLine) -> str:
    return f"{line.test.suite}, {line.test.scenario}" if line.test.params else line.test.suite


def _test_row(line: ComparisonLine) -> list[str]:
    test = line.test
    cells = []
    for cell, change in zip(line.cells, line.changes, strict=True):
        cells.append("–" if cell is None else f"{format_value(cell.mean)}{_beside_mean(change)}")
    return [_name_of(line), f"{test.metric}{f', {test.unit}' if test.unit else ''}{_better(test.direction)}", *cells]


def _better(direction: str) -> str:
    return f", {direction} is better" if direction in ("higher", "lower") else ""


def _beside_mean(change: Change | None) -> str:
    if change is None:
        return ""
    if change.word is Word.SAME:
        return " (same)"
    amount = f"{change.pct:+.1f}" if change.pct is not None else "from zero"
    if change.low is not None and change.high is not None:
        amount += f", {change.low:+.1f} … {change.high:+.1f}"
    return f" ({amount}, direction unknown)" if change.word is Word.UNKNOWN else f" ({amount})"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


# --- Profiles and counters ---


def _beside(facts: StudyFacts) -> Iterator[Block]:
    if not facts.beside:
        return
    yield Heading(2, "Profiles and counters")
    if facts.files_left_out:
        yield Paragraph(f"{counted(facts.files_left_out, 'file')} not shown (limit reached).")
    for comparison in sorted(facts.beside, key=lambda beside: not beside.diff.is_share):  # profiles first
        yield Heading(
            3, f"{comparison.kind}: {comparison.diff.title}", aside=f"({comparison.where})" if comparison.where else ""
        )
        yield Bullets(comparison.files)
        if comparison.diff.left_out:
            shown = f"The first {len(comparison.diff.rows)}{' by share' if comparison.diff.is_share else ''}"
            yield Paragraph(f"{shown}; {comparison.diff.left_out} more are small or zero everywhere.")
        yield table(comparison)
