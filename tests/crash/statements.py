"""Kills one process after the other, between every two statements of the sending code.

`python -m tests.crash.statements [--every 1] [--database sqlite]`
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.crash.run import Worker, scene

TOGETHER = 2  # mails per process
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Statements:
    """The figures: processes killed, mails in all, and how many of these were in doubt, lost, resent and so on."""

    database: str
    killed: int
    mails: int
    lost: int
    in_doubt: int
    found: int
    resent: int
    left_to_a_person: int
    twice: int
    unrecorded: int


def run(every: int, database: str) -> Statements:
    """Kill a process before each N-th line; then let time pass, and return the figures."""
    # A lease of an hour: nobody takes over a dead process's mails before all processes are dead.
    with scene(database, lease=3600, slow=0, lost=0) as setup:
        killed = _kill_at_every_line(setup.worker, setup.directory, every)
        _recover()
        return _count(database, killed, setup.receiver)


def _kill_at_every_line(worker: Worker, directory: Path, every: int) -> int:
    from django.utils import timezone

    from tests.crash import mails
    from tracker.services import mail_transitions

    done, line = directory / "done", 1
    while not done.exists():
        mails.make(TOGETHER, timezone.now(), first=line * TOGETHER)
        pid = worker.ask(f"line {line}")
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.002)
        mail_transitions.record_sent(timezone.now())  # else each would have more to tell than the one before
        line += every
    return (line - 1) // every


def _recover() -> None:
    """Simulate an hour later: expired leases are swept, the list is read, and the policy decides on what is left."""
    from django.core.management import call_command
    from django.db.models import F
    from django.utils import timezone

    from bot.config import configured_transport, recovery_policy, send_config
    from bot.outbox import reconcile, sender
    from tracker.models import OutgoingMail

    OutgoingMail.objects.filter(state="sending").update(lease_until=F("lease_until") - 2 * HOUR)
    OutgoingMail.objects.exclude(handed_over_at=None).update(handed_over_at=F("handed_over_at") - HOUR)
    for _ in range(3):
        sender.send_due(configured_transport(), send_config(run=60))
        call_command("read", verbosity=0)
        reconcile.resolve(recovery_policy(), timezone.now())


def _count(database: str, killed: int, receiver: Any) -> Statements:
    from tests.crash.course import count

    figures = count(receiver)
    named = ("mails", "lost", "in_doubt", "found", "resent", "left_to_a_person", "twice", "unrecorded")
    return Statements(database, killed, **{name: figures[name] for name in named})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql, or a URL")
    args = parser.parse_args()
    print(json.dumps(asdict(run(args.every, args.database))))


if __name__ == "__main__":
    main()
