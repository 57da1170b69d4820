"""The data of a study, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.documents.compare_files import Beside
from tracker.documents.study.system import System
from tracker.domain.kernel_comparison import ComparisonLine


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
