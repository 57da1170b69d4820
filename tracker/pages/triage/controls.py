"""The filter form above a table: each filter with its values and counts, and the values that are set. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tracker.pages.triage.counts import Count, Counts
from tracker.pages.triage.filters import IMPROVEMENTS, NOT
from tracker.pages.triage.query import TriageQuery

OFFERED = ("state", "kind", "awaiting", "subsystem", "suite", "metric", "machine", "author", "assigned")
CHOICES = ("state", "kind", "awaiting")  # whose values are words of ours
LONGEST = 40  # characters of a value in a list
SPANS = ("3d", "1w", "2w", "1m", "3m", "1y")


@dataclass(frozen=True, slots=True)
class Control:
    """A filter as a list of values to choose from; `chosen` are the ones that are set."""

    name: str
    offered: Sequence[tuple[str, str]]  # value, label
    chosen: tuple[str, ...]

    @property
    def several(self) -> bool:
        return len(self.chosen) > 1


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter value that is set: its label, the URL without it, and the URL with it negated."""

    label: str
    without: str
    negated: str


@dataclass(frozen=True, slots=True)
class Controls:
    """The form. `hidden`: parameters without a field, which it must keep."""

    lists: Sequence[Control]
    chips: Sequence[Chip]
    hidden: Sequence[tuple[str, str]]
    text: str
    improvements: bool
    improvements_default: bool  # whether the page shows them unless told otherwise, so that the form must tell
    blocking: bool
    lacks_fix: bool
    numbers: dict[str, int]


def controls(query: TriageQuery, counts: Counts, *, improvements_default: bool = False) -> Controls:
    """Return the filter form for a query."""
    active = query.active_filters
    lists = [_control(name, counts.get(name, ()), active.get(name, ())) for name in OFFERED]
    lists += [
        Control(name, [(span, f"over {span}") for span in SPANS], active.get(name, ())) for name in ("age", "silence")
    ]
    fields = {*(each.name for each in lists), "q", IMPROVEMENTS, "blocking", "stable"}
    return Controls(
        lists=lists,
        chips=list(_chips(query)),
        hidden=[(name, value) for name, values in active.items() if name not in fields for value in values],
        text=" ".join(active.get("q", ())),
        improvements="on" in active.get(IMPROVEMENTS, ()),
        improvements_default=improvements_default,
        blocking="blocking" in active,
        lacks_fix="stable" in active,
        numbers={name: sum(each.number for each in counts.get(name, ())) for name in ("blocking", "stable")}
        | {"improvements": sum(each.number for each in counts.get("kind", ()) if each.value == "improvement")},
    )


def _control(name: str, counts: Sequence[Count], chosen: tuple[str, ...]) -> Control:
    offered = [(each.value, f"{_short(_label(name, each.value))} ({each.number})") for each in counts]
    if name == "state":
        offered = [("open", "all open"), ("closed", "all closed"), *offered]
    known = {value for value, _ in offered}
    return Control(
        name, [*offered, *((value, _short(_label(name, value))) for value in chosen if value not in known)], chosen
    )


def _label(name: str, value: str) -> str:
    """Return the words of a choice; a name stays as it is."""
    return value.replace("_", " ") if name in CHOICES else value


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _chips(query: TriageQuery) -> Iterator[Chip]:
    for name, values in query.active_filters.items():
        for value in values if name != IMPROVEMENTS else ():
            left = tuple(other for other in values if other != value)
            rest = {**query.active_filters, name: left}
            opposite = name.removesuffix(NOT) if name.endswith(NOT) else f"{name}{NOT}"
            negated = {**rest, opposite: (*rest.get(opposite, ()), value)}
            bare = name.removesuffix(NOT)
            label = f"{bare} {'is not' if name.endswith(NOT) else 'is'} {_label(bare, value)}"
            yield Chip(label, replace(query, active_filters=rest).url(), replace(query, active_filters=negated).url())
