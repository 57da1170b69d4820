"""How our mail is made, beyond who we are: the form of its subject, its lists, its limits. Pure; from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

WIDTH = 78  # columns of our text: what a terminal of 80 shows when it is quoted once


class SubjectForm(StrEnum):
    """The forms that lists know."""

    SEED = "seed"  # [LKP] [mm/slub] 3b1f0c9d2e: -12.4% regression
    METRIC = "metric"  # [LKP] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression
    TREE = "tree"  # [linus:master] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec 12.4% regression


class Attached(StrEnum):
    """What may be attached where somebody asks for it."""

    JOB = "job"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Conventions:
    """The house rules of mail.

    `lkml`: the list that every report goes to; `tree_lists`: further ones by the name or the role of the tree;
    `regzbot`: the tracker's list, where it shall know of regressions; `reproduce`: a command with {suite}, {params},
    {machine} and {sha} in it; `oldest`: how old a culprit may be.
    """

    subject: SubjectForm = SubjectForm.SEED
    lkml: str = ""
    tree_lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    regzbot: str = ""
    reproduce: str = ""
    attach: frozenset[Attached] = frozenset()
    most_people: int = 40
    oldest: timedelta = timedelta(days=365)


DEFAULT = Conventions()
