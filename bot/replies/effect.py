"""An effect: what a mail does to one report, by which rule, and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.replies.rules.rule import Mode
from tracker.domain.events import EventKind, Role

__all__ = ["NOTHING", "Effect", "Mode", "Relation", "Standpoint", "kind_of", "name_of"]


class Relation(StrEnum):
    """How a mail refers to a report."""

    CLOSES = "closes"
    THREAD = "thread"
    TAG = "tag"
    LINK = "link"
    CULPRIT = "culprit"  # a patch elsewhere that says it fixes or reverts the culprit
    FIX_THREAD = "fix_thread"  # an answer to a patch that closes the report, or fixes or reverts its culprit
    PATCH_THREAD = "patch_thread"  # an answer to a patch that only links to the report


@dataclass(frozen=True, slots=True)
class Standpoint:
    """How a mail relates to one report: its relation, its writer's role, and whether the report is an improvement.

    `role` None: the report's people are unknown.
    """

    relation: Relation
    role: Role | None = None
    improvement: bool = False
    culprit: str = ""
    by_address: bool = True  # whether the writer is known by address, not only by name
    aimed: bool = True  # whether what the writer signed leads to this report, and to no other
    title: str = ""  # of the culprit
    benchmark: str = ""  # the first word of the metric, "will-it-scale"; "" if it is unknown


@dataclass(frozen=True, slots=True)
class Effect:
    """What a mail does to one report. `kind` None: no event. `quote` is the evidence.

    `why`: how probable the classifier finds it, and the words that weigh most; "" if a rule alone decides.
    """

    kind: EventKind | None
    mode: Mode
    rule: str
    quote: str = ""
    title: str = ""
    commit: str = ""
    tree: str = ""
    remark: str = ""
    why: str = ""


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


def kind_of(name: str) -> EventKind:
    """Return the event of an effect, by the taxonomy's name; an improvement is accepted by a response."""
    if name == "improvement_ack":
        return EventKind.RESPONDED
    return next(kind for kind, each in _NAMES.items() if kind and each == name)


def name_of(effect: Effect) -> str:
    """Return the taxonomy's name of an effect, "none" if it changes no state."""
    if effect.rule == "improvement_ack":
        return "improvement_ack"
    return _NAMES.get(effect.kind, "none")
