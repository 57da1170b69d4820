"""An effect: what follows from a mail for one report, by which rule, and on which words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.replies.rules.rule import Mode
from tracker.domain.events import EventKind, Role

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

    happening: EventKind | None
    mode: Mode
    rule: str
    quote: str = ""
    title: str = ""
    commit: str = ""
    tree: str = ""
    remark: str = ""


NOTHING = Effect(None, Mode.NONE, "")

# The names that `explain` uses for effects (its state is the taxonomy's status_effect).
_NAMES: dict[EventKind | None, str] = {
    EventKind.RESPONDED: "responded",
    EventKind.WORKING: "working",
    EventKind.ASKED: "needs_info",
    EventKind.ANSWERED: "info_provided",
    EventKind.DISPUTED: "disputed",
    EventKind.FIX_PROPOSED: "fix_proposed",
    EventKind.FIX_CONFIRMED: "fix_confirmed",
    EventKind.FIX_FAILED: "fix_failed",
    EventKind.FIX_WITHDRAWN: "fix_failed",
    EventKind.FIX_QUEUED: "fix_queued",
    EventKind.DROPPED: "dropped",
    EventKind.EXPECTED: "wontfix",
    EventKind.INVALID: "invalid",
    EventKind.DUPLICATE: "duplicate",
}


def name_of(effect: Effect) -> str:
    """The taxonomy's name of an effect, "none" where it changes no state."""
    if effect.rule == "improvement_ack":
        return "improvement_ack"
    return _NAMES.get(effect.happening, "none")
