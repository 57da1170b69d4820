"""The tables of a release for print: on a terminal, in a release report. Pure."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = 5000  # rows per section; a real release has about fifty


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One row, with the columns of the 0-Day report."""

    indicator: str
    report: str
    sha: str
    scenario: tuple[tuple[str, str], ...]
    machine: str
    base: str
    status: str
    state: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """The two sections of a release (DESIGN 4.3). A report may be in both."""

    merged: tuple[PrintedRow, ...]
    shift_left: tuple[PrintedRow, ...]
