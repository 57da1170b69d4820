"""Starts workers fast: everything is imported once, and each worker is a fork.

Reads words from standard input: "worker" forks a Celery worker, which leads a process group of its own; "send" a
process that sends until nothing is due; "line N" one that does so and is killed before its N-th line. Answers each with
the pid.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import django

django.setup()

from django.conf import settings
from django.utils import timezone

from bot import tasks
from bot.celery import app
from bot.config import configured_transport, recovery_policy, send_config
from bot.outbox import reconcile, sender

WATCHED = ("/bot/outbox/", "/tracker/services/mail_transitions.py", "/tracker/services/outgoing/")


def be_a_worker() -> None:
    """Run a real Celery worker with one process, which takes tasks from the broker."""
    app.worker_main(["--quiet", "worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"])


def send_up_to(line: int) -> None:
    """Send what is due, and die as by kill -9 before the N-th executed line of the files in WATCHED."""
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
    reconcile.resolve(recovery_policy(), timezone.now())
    sender.send_due(configured_transport(), send_config(run=5))
    sys.settrace(None)
    (settings.VAR / "done").write_text(f"{line - left} lines")  # the run ended before line N: all lines are covered


def main() -> None:
    assert tasks  # imported, so that the worker knows the tasks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped automatically
    for command in sys.stdin:
        word, _, argument = command.strip().partition(" ")
        if pid := os.fork():
            try:
                os.setpgid(pid, pid)  # here, too: the child may be killed before it gets to its own setpgid
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
