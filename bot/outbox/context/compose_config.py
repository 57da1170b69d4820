"""What the outbox needs of the settings, as one value: the conventions of mail, the policy, the trees to look into."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bot.compose.conventions import Conventions
from bot.compose.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class ComposeConfig:
    """`trees`: clones that may hold culprits; `lore`: a server that knows patches by their ids, or ""."""

    conventions: Conventions = field(default_factory=Conventions)
    policy: Policy = field(default_factory=Policy)
    trees: tuple[Path, ...] = ()
    lore: str = ""
