"""The compose config: the settings that composing needs, as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.compose.conventions import Conventions
from bot.compose.policy.policy import Policy
from bot.mail.patches import PatchMail

# From a patch-id and a title to the last posting; raises Unreadable if the server does not answer.
PatchLookup = Callable[[str, str], PatchMail | None]


@dataclass(frozen=True, slots=True)
class ComposeConfig:
    """`trees`: clones in which to look up culprits; `patch_lookup`: finds postings by patch-id, if a server is set."""

    conventions: Conventions = field(default_factory=Conventions)
    policy: Policy = field(default_factory=Policy)
    trees: tuple[Path, ...] = ()
    patch_lookup: PatchLookup | None = None
