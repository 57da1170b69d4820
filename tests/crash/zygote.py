"""Workers without the seconds that a start takes: everything is imported once, and each worker is a fork of that.

Reads words from standard input: "worker" forks a Celery worker, which leads a process group of its own; "send" a
process that sends until nothing is due; "line N" one that does so and is killed before its N-th line. Answers each with
the number of the process.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.utils import timezone  # noqa: E402

from bot import tasks  # noqa: E402
from bot.celery import app  # noqa: E402
from bot.config import configured_transport, recovery_policy, send_config  # noqa: E402
from bot.outbox import recovery, sender  # noqa: E402

WATCHED = ("/bot/outbox/", "/tracker/services/mail_transitions.py", "/tracker/services/outgoing/")


def be_a_worker() -> None:
    """A real worker with one process, which takes nudges from the broker."""
    app.worker_main(["--quiet", "worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"])


def send_up_to(line: int) -> None:
    """Send what is due, and die as by kill -9 before the N-th line that runs in the rooms of the outbox."""
    left = line

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not any(part in frame.f_code.co_filename for part in WATCHED):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)
    recovery.resolve(recovery_policy(), timezone.now())
    sender.send_due(configured_transport(), send_config(run=5))
    sys.settrace(None)
    (settings.VAR / "done").write_text(f"{line - left} lines")  # there are no more than that


def main() -> None:
    assert tasks  # the worker knows them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for command in sys.stdin:
        word, _, argument = command.strip().partition(" ")
        if pid := os.fork():
            try:
                os.setpgid(pid, pid)  # here, too: it may be killed before it comes to do that itself
            except ProcessLookupError:
                pass
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        if word == "worker":
            be_a_worker()
        elif word == "send":
            while sender.send_due(configured_transport(), send_config(run=60)):
                pass
        else:
            send_up_to(int(argument))
        os._exit(0)


if __name__ == "__main__":
    main()
