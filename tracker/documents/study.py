"""Composes a study, in the shape that such reports have on mailing lists: conclusions first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tracker.documents.blocks import Block, Bullets, Document, Facts, Heading, Paragraph, Prose, TableBlock
from tracker.documents.compare_files import format_value, table
from tracker.documents.comparison import comparison_blocks
from tracker.documents.study.facts import StudyFacts
from tracker.documents.study.system import COLUMNS
from tracker.documents.study.wins import TestWinner, WinTally, outcomes, speedup, tally
from tracker.domain.kernel_comparison import Box, Change, ComparisonLine, Word
from tracker.domain.text.english import counted

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


# --- which variant wins ---


def _variants(facts: StudyFacts, boxes: Sequence[Box]) -> Iterator[Block]:
    found = outcomes(facts.lines)
    totals = tally(found, len(facts.labels))
    yield Heading(2, "Summary of results")
    yield Bullets(list(_summary(facts, boxes, found, totals)))
    if not found:
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
        yield _by_machine(facts, boxes, found)
    yield Heading(3, "By benchmark and machine")
    yield Paragraph(
        "The best variant by its average over the benchmark's tests on that machine, and its lead over the next best;"
        " in brackets the number of tests."
    )
    yield _matrix(facts, boxes, found)


def _summary(facts: StudyFacts, boxes: Sequence[Box], found: Sequence[TestWinner], totals: WinTally) -> Iterator[str]:
    labels = ", ".join(facts.labels[:-1]) + f" and {facts.labels[-1]}" if len(facts.labels) > 1 else facts.labels[0]
    suites = {line.test.suite for line in facts.lines}
    sentence = f"{counted(len(boxes), 'machine')} ran {counted(len(suites), 'benchmark')} with {labels}"
    everywhere = len(suites) * len(boxes) == len({(line.test.suite, line.test.box) for line in facts.lines})
    sentence += "" if everywhere else ", not every benchmark on every machine"
    yield f"{sentence}: {counted(len(facts.lines), 'test')}."
    if left := len(facts.lines) - len(found):
        yield f"{left} of them are left out below: a variant was not measured, or the direction is unknown."
    if found:
        wins = ", ".join(f"{label} {share.pct:.0f}%" for label, share in zip(facts.labels, totals.shares, strict=True))
        yield f"Share of tests in which each is best: {wins}."
        yield f"Ties: {totals.ties_pct:.0f}% (within noise, or less than 1% apart)."
        best = _best_by_machine(facts, boxes, found)
        phrases = (f"{label} is best on {', '.join(machines)}" for label, machines in best)
        yield f"On average, {'; '.join(phrases)}."


def _best_by_machine(
    facts: StudyFacts, boxes: Sequence[Box], found: Sequence[TestWinner]
) -> list[tuple[str, list[str]]]:
    best: dict[str, list[str]] = {}
    for box in boxes:
        winner = tally([each for each in found if each.line.test.box == box], len(facts.labels)).best
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


def _by_machine(facts: StudyFacts, boxes: Sequence[Box], found: Sequence[TestWinner]) -> TableBlock:
    columns = ["Machine", "Tests", *facts.labels, "Ties", *(f"{label}, %" for label in facts.labels[1:]), "Best"]
    rows = []
    for box in boxes:
        own = tally([each for each in found if each.line.test.box == box], len(facts.labels))
        averages = [_signed(share.average_pct) for share in own.shares[1:]]
        best = "none" if own.best is None else facts.labels[own.best]
        wins = [str(share.wins) for share in own.shares]
        rows.append((box.name, str(own.tests), *wins, str(own.ties), *averages, best))
    return TableBlock("Wins by machine", columns, rows, frozenset(range(1, len(columns) - 1)))


def _matrix(facts: StudyFacts, boxes: Sequence[Box], found: Sequence[TestWinner]) -> TableBlock:
    suites = list(dict.fromkeys(each.line.test.suite for each in found))
    rows = []
    for suite in suites:
        row = [suite]
        for box in boxes:
            winners = [each for each in found if each.line.test.suite == suite and each.line.test.box == box]
            row.append(_best_of(tally(winners, len(facts.labels)), facts.labels))
        rows.append(row)
    return TableBlock(
        "The best variant of each benchmark on each machine", ("Benchmark", *(box.name for box in boxes)), rows
    )


def _best_of(own: WinTally, labels: Sequence[str]) -> str:
    if not own.tests:
        return "–"
    if own.best is None or own.lead_pct is None or own.ties == own.tests:
        return f"tie ({own.tests})"
    return f"{labels[own.best]} {own.lead_pct:+.1f} % ({own.tests})"


# --- how versions develop ---


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


# --- every test ---


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
    for box, lines in groupby(ordered, lambda line: line.test.box):
        if len(boxes) > 1:
            yield Heading(3, box.name)
        rows = [_test_row(line) for line in lines]
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


# --- profiles and counters ---


def _beside(facts: StudyFacts) -> Iterator[Block]:
    if not facts.beside:
        return
    yield Heading(2, "Profiles and counters")
    if facts.files_left_out:
        yield Paragraph(f"{counted(facts.files_left_out, 'file')} not shown (limit reached).")
    for each in sorted(facts.beside, key=lambda each: not each.diff.is_share):  # profiles first
        yield Heading(3, f"{each.kind}: {each.diff.title}", aside=f"({each.where})" if each.where else "")
        yield Bullets(each.files)
        if each.diff.left_out:
            shown = f"The first {len(each.diff.rows)}{' by share' if each.diff.is_share else ''}"
            yield Paragraph(f"{shown}; {each.diff.left_out} more are small or zero everywhere.")
        yield table(each)
