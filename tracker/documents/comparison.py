"""One test over some kernels as blocks: a sentence for each, and the chart with the first kernel as 100. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracker.charts.bars import bars, letters
from tracker.documents.blocks import Block, ChartBlock, Paragraph
from tracker.domain.kernel_comparison import ComparisonLine, summary


def comparison_blocks(line: ComparisonLine, labels: Sequence[str]) -> Iterator[Block]:
    """Yield a sentence for each kernel but the first, which is the baseline; then the chart."""
    sentences = []
    for label, cell, change in zip(labels[1:], line.cells[1:], line.changes[1:], strict=True):
        if change is None:
            sentences.append(f"{line.test.metric} was not measured on {labels[0] if cell else label}.")
        else:
            sentence = summary(line.test, change, label, labels[0])
            sentences.append(f"{sentence} (95% CI {change.interval})." if change.interval else f"{sentence}.")
    yield Paragraph(" ".join(dict.fromkeys(sentences)))
    if chart := bars(line, labels):
        yield ChartBlock(chart, letters(line, labels))
