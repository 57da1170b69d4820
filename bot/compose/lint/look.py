"""What a check looks at: a mail of ours, how its receivers read it, and what it should tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.compose.conventions import Conventions
from bot.compose.mail import Mail
from bot.compose.told import ReportTold
from bot.identity import Identity
from bot.ingest.robot_mail.report import RobotReport
from bot.replies import mail as received


@dataclass(frozen=True, slots=True)
class Look:
    """`raw` and `read`: the mail as bytes, and as its receivers find it. Of a further mail about a report `told` and
    `report` are None.
    """

    mail: Mail
    raw: bytes
    read: received.Mail
    identity: Identity
    conventions: Conventions
    now: datetime
    told: ReportTold | None = None
    report: RobotReport | None = None


Check = Callable[[Look], Iterator[str]]
