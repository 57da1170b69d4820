"""An effect: what follows from a mail for one report, by which rule, and on which words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.replies.rules.rule import Mode
from tracker.domain.events import Happening, Role

__all__ = ["NOTHING", "Effect", "Mode", "Relation", "Standpoint", "name_of"]


class Relation(StrEnum):
    """How a mail came to be about a report."""

    CLOSES = "closes"
    THREAD = "thread"
    TAG = "tag"
    LINK = "link"
    CULPRIT = "culprit"  # a patch elsewhere that says to fix or revert it


@dataclass(frozen=True, slots=True)
class Standpoint:
    """What a mail is to one report: how it came to it, what its writer is there, and whether that is an improvement.

    `role` None: nobody told us who the report's people are.
    """

    relation: Relation
    role: Role | None = None
    improvement: bool = False
    culprit: str = ""
    by_address: bool = True  # whether the writer is known by his address, and not by his name alone


@dataclass(frozen=True, slots=True)
class Effect:
    """What follows from a mail for one report. `happening` None: nothing. `quote` is the evidence."""

    happening: Happening | None
    mode: Mode
    rule: str
    quote: str = ""
    title: str = ""
    commit: str = ""
    tree: str = ""
    remark: str = ""


NOTHING = Effect(None, Mode.NONE, "")

# The names that `explain` uses for effects (its state is the taxonomy's status_effect).
_NAMES: dict[Happening | None, str] = {
    Happening.RESPONDED: "responded",
    Happening.WORKING: "working",
    Happening.ASKED: "needs_info",
    Happening.ANSWERED: "info_provided",
    Happening.DISPUTED: "disputed",
    Happening.FIX_PROPOSED: "fix_proposed",
    Happening.FIX_CONFIRMED: "fix_confirmed",
    Happening.FIX_FAILED: "fix_failed",
    Happening.FIX_WITHDRAWN: "fix_failed",
    Happening.FIX_QUEUED: "fix_queued",
    Happening.DROPPED: "dropped",
    Happening.EXPECTED: "wontfix",
    Happening.INVALID: "invalid",
    Happening.DUPLICATE: "duplicate",
}


def name_of(effect: Effect) -> str:
    """The taxonomy's name of an effect, "none" where it changes no state."""
    if effect.rule == "improvement_ack":
        return "improvement_ack"
    return _NAMES.get(effect.happening, "none")
