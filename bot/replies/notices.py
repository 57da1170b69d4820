"""Robots' notices that a patch was applied: patchwork-bot's "was applied to", tip-bot's "has been merged into"."""

from __future__ import annotations

import re
from dataclasses import dataclass

# patchwork-bot+netdevbpf: "This patch was applied to netdev/net.git (main)\nby …:" and a link to each commit.
_PATCHWORK = re.compile(r"(?:patch|series)\s+(?:was|were)\s+applied\s+to\s+(\S{3,120})\s+\(([^)\s]{1,120})\)", re.I)
_COMMIT_LINK = re.compile(r"https?://\S{5,200}/c/([0-9a-f]{8,40})\b")
# tip-bot2: "The following commit has been merged into the x86/urgent branch of tip:" and a Commit-ID line.
_TIP = re.compile(r"has\s+been\s+merged\s+into\s+the\s+(\S{1,120})\s+branch\s+of (\w{2,40})\b")
_COMMIT_ID = re.compile(r"^Commit-ID:\s+([0-9a-f]{8,40})\b", re.M)


@dataclass(frozen=True, slots=True)
class Notice:
    """A commit in a branch of a maintainer's tree."""

    tree: str
    branch: str
    sha: str
    quote: str


def find_notice(own_text: str) -> Notice | None:
    """Return the notice in a mail, or None. The caller checks that a robot sent it."""
    if found := _PATCHWORK.search(own_text):
        commit = _COMMIT_LINK.search(own_text)
        return Notice(found[1], found[2], commit[1] if commit else "", " ".join(found[0].split()))
    if found := _TIP.search(own_text):
        commit = _COMMIT_ID.search(own_text)
        return Notice(found[2], found[1], commit[1] if commit else "", " ".join(found[0].split()))
    return None
