"""The checkpoint of a tree: its refs and what was followed at the last walk. Pure; kept in `Tree.cursor`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Marks:
    """The highest ids that a walk knew; rows with higher ones are looked for in older commits, too."""

    report: int = 0
    message: int = 0
    outgoing: int = 0
    event: int = 0
    related: int = 0


@dataclass(frozen=True, slots=True)
class WalkCheckpoint:
    """The followed branches and the tags, by name; empty before the first walk."""

    branches: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)

    @property
    def is_empty(self) -> bool:
        return not self.branches and not self.tags

    def dump(self) -> str:
        """Return one line of JSON."""
        data = {"form": _FORMAT, "branches": self.branches, "tags": self.tags, "marks": asdict(self.marks)}
        return json.dumps(data, separators=(",", ":"), sort_keys=True)


def load_checkpoint(cursor: str) -> WalkCheckpoint:
    """Parse what `dump` returned. Anything else gives an empty checkpoint, so that the tree is walked from its
    beginning.
    """
    try:
        data = json.loads(cursor)
        if data["form"] != _FORMAT:
            return WalkCheckpoint()
        return WalkCheckpoint(dict(data["branches"]), dict(data["tags"]), Marks(**data["marks"]))
    except (ValueError, KeyError, TypeError):
        return WalkCheckpoint()
