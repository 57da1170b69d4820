"""The compose config: the settings that composing needs, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bot.compose.conventions import Conventions
from bot.compose.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class ComposeConfig:
    """`trees`: clones in which to look up culprits; `lore`: a server to search for patches, or ""."""

    conventions: Conventions = field(default_factory=Conventions)
    policy: Policy = field(default_factory=Policy)
    trees: tuple[Path, ...] = ()
    lore: str = ""
