"""The conventions of our mail, from the settings: subject form, lists and limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

WIDTH = 78  # columns of our text: fits an 80-column terminal when quoted once


class SubjectForm(StrEnum):
    """The subject forms that the lists know."""

    SEED = "seed"  # [LKP] [mm/slub] 3b1f0c9d2e: -12.4% regression
    METRIC = "metric"  # [LKP] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression
    TREE = "tree"  # [linus:master] [mm/slub] 3b1f0c9d2e: vm-scan.ops_per_sec 12.4% regression


class Attached(StrEnum):
    """What may be attached, where the settings ask for it."""

    JOB = "job"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Conventions:
    """The conventions of mail.

    `lkml`: the list that every report goes to; `tree_lists`: more lists, by the name or role of the tree;
    `regzbot`: regzbot's list, "" to leave it out; `reproduce`: a command template with {suite}, {params},
    {machine} and {sha}; `oldest`: the maximum age of a culprit.
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
