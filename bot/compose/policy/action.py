"""What happens to a mail once it is composed. Pure."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What happens to a mail."""

    SEND = "send"
    APPROVE = "approve"  # a person must approve it first
    HOLD = "hold"
