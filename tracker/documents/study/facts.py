"""What a study is made of, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracker.documents.compare_files import Beside
from tracker.documents.study.system import System
from tracker.domain.kernel_comparison import ComparisonLine


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """`labels` name the kernels, the first is what the others are compared with. `kernels`: their own names.
    `has_wins`: the question is which variant wins; else how versions follow each other.
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
