"""A change as a request for a bisection: JSON for a lab, or a script for `git bisect`. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from tracker.models import CurveChange

FORMAT = "perf-bisect-request/1"


def as_json(change: CurveChange) -> dict[str, Any]:
    """Return the request: the two commits, the test, and the levels that tell good from bad."""
    curve = change.curve
    return {
        "schema": FORMAT,
        "id": f"curve-{curve.pk}-{change.build}",
        "good": change.before,
        "bad": change.build,
        "test": {"suite": curve.scenario.suite, "params": curve.scenario.params},
        "machine": {"id": curve.machine.name},
        "metric": curve.metric.name,
        "unit": curve.metric.unit,
        "direction": curve.metric.direction,
        "good_level": change.old_level,
        "bad_level": change.new_level,
        "threshold": threshold(change),
        "noise_pct": change.noise_pct,
    }


def threshold(change: CurveChange) -> float:
    """Return the value in the middle of the two levels: beyond it a commit is bad."""
    return (change.old_level + change.new_level) / 2


def as_script(change: CurveChange) -> str:
    """Return a shell script that bisects with a command of the lab's, which prints the value of one run."""
    curve, rises = change.curve, change.new_level > change.old_level
    lines = [
        "#!/bin/sh",
        f"# {_comment(curve.metric.name)} on {_comment(curve.machine.name)}: {_comment(str(curve.scenario))}",
        f"# good: {change.old_level:.6g}, bad: {change.new_level:.6g}; a commit is bad "
        f"{'above' if rises else 'below'} {threshold(change):.6g}",
        "# MEASURE: your command that builds and measures the checked-out commit, and prints one number.",
        "set -eu",
        ': "${MEASURE:?set MEASURE to a command that prints one number}"',
        f"git bisect start {shlex.quote(change.build)} {shlex.quote(change.before)}",
        "git bisect run sh -c '",
        '  value=$(eval "$MEASURE") || exit 125',
        f'  awk -v value="$value" "BEGIN {{ exit (value {">" if rises else "<"} {threshold(change)!r}) }}"',
        "'",
        "",
    ]
    return "\n".join(lines)


def _comment(text: str) -> str:
    """Return a text for a comment: on one line, printable."""
    return "".join(each if each.isprintable() else "?" for each in text)[:300]
