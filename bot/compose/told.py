"""What a report mail tells: a report with its findings, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.replies.addresses import Address
from tracker.status import Grade, Verdict


@dataclass(frozen=True, slots=True)
class FindingTold:
    """One metric that moved. `change_pct` is the metric's own movement; None from zero."""

    metric: str
    unit: str
    direction: str
    verdict: Grade
    change_pct: float | None
    old_mean: float
    old_stddev_pct: float | None
    old_runs: int | None
    new_mean: float
    new_stddev_pct: float | None
    new_runs: int | None
    suite: str
    params: Mapping[str, str]
    machine: str
    machine_text: str


@dataclass(frozen=True, slots=True)
class ReportTold:
    """A report as the mail tells it. `findings` begins with the headline."""

    tag: str
    sha: str
    title: str
    author: Address
    trailers: tuple[tuple[str, str], ...]
    patch_message_id: str
    tree: str
    tree_url: str
    branch: str
    parent_sha: str
    parent_title: str
    base: str
    good: str
    bad: str
    bisect_steps: int
    kconfig: str
    compiler: str
    verdict: Verdict
    findings: tuple[FindingTold, ...]
