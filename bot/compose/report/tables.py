"""The comparison tables, one for each scenario and machine, and the box of changes in other tests. Pure.

Both have the format of the 0-Day robot's reports since 2019, so that scripts that parse those can parse ours.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.compose import numbers
from bot.compose.conventions import WIDTH
from bot.compose.report.report_data import FindingData, ReportData, worst
from bot.mail.sanitising import one_line

MOST_BOXES = 20
_LEFT, _RIGHT = 18, 55


@dataclass(frozen=True, slots=True)
class Sides:
    """The two commits as every table names them: short shas, titles and column heads."""

    old: str
    old_title: str
    new: str
    new_title: str
    heads: str
    rule: str = "=" * 89
    stars: str = "*" * 89


def sides(sha: str, title: str, parent_sha: str, parent_title: str, base: str = "") -> Sides:
    """Return the parent, or the tag that stands in for it, and the culprit."""
    head = parent_sha[:16] or one_line(base, 16) or "parent"
    return Sides(
        old=parent_sha[:10] or one_line(base, 26) or "?",
        old_title=one_line(parent_title, 200) or "its parent",
        new=sha[:10],
        new_title=one_line(title, 200),
        heads=f"{head:<16} {sha[:27]}",
    )


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The findings of one scenario on one machine. `machine`: its description, "" for the first table."""

    axes: str
    values: str
    machine: str
    rows: tuple[str, ...]


def tables(findings: Sequence[FindingData]) -> Iterator[ComparisonTable]:
    """Yield the tables in the order of their first findings; rows sorted by name, profile rows last."""
    for number, group in enumerate(_groups(findings)):
        first = group[0]
        axes = {
            **{_name(name): one_line(value, 80) for name, value in first.params.items()},
            "tbox_group": _name(first.machine),
            "testcase": _name(first.suite),
        }
        names = sorted(axes)
        machine = f"{one_line(first.machine, 80)}: {one_line(first.machine_text, 200)}" if number else ""
        rows = tuple(numbers.row(each, one_line(each.metric, 300)) for each in sorted(group, key=_order))
        yield ComparisonTable("/".join(names), "/".join(axes[name] for name in names), machine, rows)


def _order(finding: FindingData) -> tuple[bool, float, str]:
    return (finding.is_profile, -abs(finding.moved or 0.0) if finding.is_profile else 0.0, finding.metric)


def _name(name: str) -> str:
    return one_line(name, 80).replace("/", "_")


def _groups(findings: Iterable[FindingData]) -> list[list[FindingData]]:
    groups: dict[tuple[str, str, str], list[FindingData]] = {}
    for each in findings:
        groups.setdefault(each.table_key, []).append(each)
    return list(groups.values())


def impacts(report: ReportData) -> tuple[str, ...]:
    """Return the lines of the box of other tests, with the worst change of each; empty if there are none."""
    elsewhere = [each for each in report.findings if each.table_key != report.headline.table_key and each.is_graded]
    shown = [worst(group)[0] for group in _groups(each for each in elsewhere if each.change_pct is not None)]
    if not shown:
        return ()
    edge = f"+{'-' * _LEFT}+{'-' * _RIGHT}+"
    lines = [edge]
    for each in worst(shown)[:MOST_BOXES]:
        change = each.change_pct or 0.0
        lines += _cell("testcase: change", f"{_suite(each)}{one_line(each.metric, 150)} {change:.1f}% {each.verdict}")
        lines += _cell("test machine", one_line(each.machine_text, 200) or one_line(each.machine, 80))
        for number, (name, value) in enumerate(sorted(each.params.items())):
            lines += _cell("" if number else "test parameters", f"{one_line(name, 80)}={one_line(value, 80)}")
        lines.append(edge)
    return tuple(lines)


def _suite(finding: FindingData) -> str:
    return f"{one_line(finding.suite, 80).replace(' ', '_').replace(':', '_')}: "


def _cell(name: str, text: str) -> Iterator[str]:
    """Yield one row of the box, wrapped to its width."""
    wrapped = textwrap.wrap(text, _RIGHT - 2, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(wrapped):
        yield f"| {'' if number else name:<{_LEFT - 2}} | {line:<{_RIGHT - 2}} |"


def profile(findings: Sequence[FindingData], most: int = 5) -> tuple[str, ...]:
    """Return the functions whose share of CPU time changed most, in percentage points; empty without a profile."""
    headline = findings[0]
    shares = [each for each in findings if each.is_profile and each.table_key == headline.table_key]
    shares = [each for each in shares if abs(each.moved or 0.0) >= 0.1]
    shares.sort(key=lambda each: -abs(each.moved or 0.0))
    return tuple(map(_share, shares[:most]))


def _share(finding: FindingData) -> str:
    """Return "    +7.3   12.1 ->  19.4  clear_page_erms (self)" for "perf-profile.self.cycles-pp.clear_page_erms"."""
    moved = f"  {numbers.moved(finding):>6}  {finding.old_mean:5.1f} -> {finding.new_mean:5.1f}  "
    kind, _, name = one_line(finding.metric, 200).removeprefix("perf-profile.").partition(".")
    name = name.partition(".")[2] if name.startswith("cycles") and "." in name else name
    room = max(8, WIDTH - len(moved) - len(f" ({kind[:20]})"))
    return f"{moved}{name if len(name) <= room else f'{name[: room - 3]}...'} ({kind[:20]})"
