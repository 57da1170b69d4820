"""Format numbers and table rows as the LKP robot does."""

from __future__ import annotations

import math

from bot.compose.report.report_data import FindingData
from bot.mail.sanitising import one_line
from tracker.domain.text.formats import p_value

DIGITS = 5  # significant digits; no benchmark is more precise
_LEAST_SPREAD = 2  # per cent; tables omit a smaller one


def value(number: float) -> str:
    """Format a value in at most ten columns: five significant digits, at most two trailing zeros."""
    size = abs(number)
    if number == 0:
        return "0.00"
    if size >= 1e9 or size < 1e-3:
        return f"{number:.4e}"
    if size >= 1e3 and number == int(number):
        return f"{number:.0f}"
    decimals = min(8, max(0, DIGITS - 1 - math.floor(math.log10(size))))
    integer, point, rest = f"{number:.{decimals}f}".partition(".")
    return integer + point + rest[:2] + rest[2:].rstrip("0")


def spread(percent: float | None) -> str:
    """Format a spread as "±  3%" in six columns, blank below 2 %."""
    if percent is None or percent < _LEAST_SPREAD:
        return " " * 6
    return f" ±{percent:3.0f}%" if percent < 1e4 else f" ±{percent:.0e}%"


def moved(finding: FindingData) -> str:
    """Format a change: "-12.4%", "+0.7" for a share, "+inf%" from zero."""
    change = finding.moved
    if change is None:
        return "-inf%" if finding.new_mean < finding.old_mean else "+inf%"
    unit = "" if finding.in_points else "%"
    return f"{change:+.1f}{unit}" if abs(change) < 1e7 else f"{change:+.1e}{unit}"


def row(finding: FindingData, name: str) -> str:
    """Return one row of the comparison table: 10 + 6 + 12 + 10 + 6 + 2 columns, then the name."""
    old, new = value(finding.old_mean), value(finding.new_mean)
    return (
        f"{old:>10}{spread(finding.old_stddev_pct):6}{moved(finding):>12}"
        f"{new:>10}{spread(finding.new_stddev_pct):6}  {name}"
    )


def percent(number: float) -> str:
    """Format a percentage without its sign: "12.4", "0.4", "0.03"."""
    size = abs(number)
    return f"{size:.1f}" if size >= 0.05 else f"{size:.2g}"


def listed(finding: FindingData, name: str, columns: int) -> str:
    """Return "   -31.0%  fsmark.files_per_sec on lab7-m2", the name cut to fit the columns."""
    change, name = f"{moved(finding):>9}  ", one_line(name)
    room = columns - len(change)
    return change + (name if len(name) <= room else f"{name[: room - 3]}...")


def sides(finding: FindingData) -> str:
    """Return "18.39 ± 10% -> 24.37 us (+32.5%)"."""
    means = ((finding.old_mean, finding.old_stddev_pct), (finding.new_mean, finding.new_stddev_pct))
    text = " -> ".join(value(mean) + spread(percent).rstrip() for mean, percent in means)
    unit = f" {one_line(finding.unit, 20)}" if finding.unit else ""
    return f"{text}{unit} ({moved(finding)})"


def evidence(finding: FindingData) -> list[str]:
    """Return the evidence for a change as phrases: runs, spread, p-value."""
    parts = []
    if finding.old_runs and finding.new_runs:
        parts.append(f"{finding.old_runs} + {finding.new_runs} runs")
    if len(finding.spreads) == 2:
        parts.append("spread " + " and ".join(f"{percent(each)}%" for each in finding.spreads))
    if finding.p_value is not None:
        parts.append(p_value(finding.p_value))
    return parts
