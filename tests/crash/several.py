"""Several workers on one queue, the last one started midway: who claims what, and what the receiver accepted.

`python -m tests.crash.several --mails 10000`
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tests.crash.run import scene

PATIENCE = 600.0


def run(number: int, database: str) -> dict[str, Any]:
    """Run two workers, and a third after a third of the mails; return the figures."""
    with scene(database, lease=300, slow=0, lost=0) as setup:
        from django.utils import timezone

        from tests.crash import mails
        from tests.crash.course import count

        mails.make(number, timezone.now(), lines=5)
        pids = [setup.worker.ask("send") for _ in range(2)]
        _wait(lambda: len(setup.receiver.taken) > number / 3)
        pids.append(setup.worker.ask("send"))
        _wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        return {**count(setup.receiver), **_shares()}


def _shares() -> dict[str, int]:
    """Return the number of workers, and the smallest number of mails that one of them sent."""
    from django.db.models import Count

    from tracker.models import MailTransition

    sent = MailTransition.objects.filter(became="sent").order_by().values("by").annotate(mails=Count("pk"))
    shares = [each["mails"] for each in sent]
    return {"workers": len(shares), "least": min(shares)}


def _wait(condition: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("the workers do not come to an end")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=10_000)
    parser.add_argument("--database", default="postgresql", help="sqlite, postgresql, or a URL")
    args = parser.parse_args()
    print(json.dumps(run(args.mails, args.database)))


if __name__ == "__main__":
    main()
