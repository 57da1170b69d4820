"""Numbers and table rows as the lists write them."""

from __future__ import annotations

from bot.compose.told import FindingTold


def value(number: float) -> str:
    """A measured value in at most ten columns, without digits that mean nothing."""
    if number == 0 or 0.01 <= abs(number) < 1000:
        return f"{number:.2f}"
    if abs(number) < 1e10 and abs(number) >= 1000:
        return f"{number:.0f}"
    return f"{number:.3e}"


def spread(percent: float | None) -> str:
    """ "±  3%" in six columns, blank below 2 %, where the lists leave it out."""
    return f" ±{percent:3.0f}%" if percent is not None and percent >= 2 else " " * 6


def row(finding: FindingTold) -> str:
    """One row of the comparison table: 10 + 6 + 12 + 10 + 6 + 2 columns, then the name."""
    change = "n/a" if finding.change_pct is None else f"{finding.change_pct:+.1f}%"
    old, new = value(finding.old_mean), value(finding.new_mean)
    return (
        f"{old:>10}{spread(finding.old_stddev_pct):6}{change:>12}"
        f"{new:>10}{spread(finding.new_stddev_pct):6}  {finding.metric}"
    )
