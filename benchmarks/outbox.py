"""Speed of sending: one worker against plain smtplib with the same mails; then claims and memory with a long queue.

`outbox.py [QUEUED] [SENT]`: mails in the queue (default 100,000), and how many of them are sent to measure memory.
"""

from __future__ import annotations

import os
import smtplib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.budgets import figure

ROUNDS, MAILS = 5, 1000
LEAST_A_SECOND, LEAST_RATIO = 300, 0.5


@contextmanager
def sink() -> Iterator[int]:
    """Run aiosmtpd in a separate process, which accepts and discards everything; yield its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}", "-c", "aiosmtpd.handlers.Sink"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    try:
        yield port
    finally:
        server.kill()


def resident() -> float:
    """Return the resident memory of this process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def alone(port: int, mails: list[tuple[str, list[str], bytes]]) -> float:
    """Send with smtplib in a loop, and return the seconds."""
    begin = time.perf_counter()
    with smtplib.SMTP("127.0.0.1", port) as smtp:
        for sender, recipients, raw in mails:
            smtp.sendmail(sender, recipients, raw)
    return time.perf_counter() - begin


def claims() -> float:
    """Return the median time of claiming a batch, in milliseconds."""
    from django.utils import timezone

    from bot.outbox import sender
    from tracker.services import mail_transitions

    spent = []
    for _ in range(15):
        begin = time.perf_counter()
        batch = sender.claim_due(timezone.now(), sender.SendConfig().lease, sender.BATCH, "bench")
        spent.append(1000 * (time.perf_counter() - begin))
        mail_transitions.release(batch, timezone.now(), "bench", "")
    return median(spent)


def measure(port: int, queued: int, sent: int) -> None:
    from django.utils import timezone

    from bot.outbox import sender
    from bot.outbox.transports import Server, SmtpTransport
    from tests.crash import mails as made
    from tracker.models import OutgoingMail, OutgoingState

    def worker(most: int) -> float:
        """Run one worker until nothing is due or `most` mails are sent, and return the seconds."""
        server, before = Server("127.0.0.1", port), OutgoingMail.objects.filter(state=OutgoingState.SENT).count()
        begin = time.perf_counter()
        while OutgoingMail.objects.filter(state=OutgoingState.SENT).count() - before < most:
            if not sender.send_due(SmtpTransport(server), sender.SendConfig(run=2.0)):
                break  # the queue is empty
        return time.perf_counter() - begin

    ours, theirs = [], []
    for number in range(ROUNDS):
        made.make(MAILS, timezone.now(), first=number * MAILS)
        fresh = OutgoingMail.objects.filter(state=OutgoingState.APPROVED)
        rows: list[tuple[str, list[str], Any]] = list(fresh.values_list("sender", "recipients", "raw"))
        theirs.append(alone(port, [(sender, recipients, bytes(raw)) for sender, recipients, raw in rows]))
        ours.append(worker(MAILS))
    rate, ratio = MAILS / median(ours), median(each / own for each, own in zip(theirs, ours, strict=True))
    rates = [MAILS / each for each in ours]
    figure("mails a second by one worker", rate, "", LEAST_A_SECOND, at_least=True, spread=rates,
           ratio=1 / ratio, yardstick="smtplib alone")  # fmt: skip
    figure("its share of the speed of smtplib", ratio, "", LEAST_RATIO, at_least=True)
    made.make(1000, timezone.now(), first=ROUNDS * MAILS)
    few = claims()
    made.make(queued - 1000, timezone.now(), first=ROUNDS * MAILS + 1000)
    many = claims()
    print(f"  a claim of {sender.BATCH}: {few:.1f} ms with 1,000 in the queue, {many:.1f} ms with {queued:,}")
    worker(1000)
    early, steps = resident(), []
    for _ in range(4):
        worker(sent // 4)
        steps.append(resident())
    print(f"  memory: {early:.0f} MiB after 1,000 mails, then {', '.join(f'{each:.0f}' for each in steps)} MiB "
          f"in the course of {sent:,} of {queued:,}")  # fmt: skip


def main() -> None:
    queued, sent = (int(each) for each in (sys.argv[1:] + ["100000", "20000"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as directory, sink() as port:
        os.environ |= {"PERFWORK_VAR": directory, "DJANGO_SETTINGS_MODULE": "tracker.settings", "LOG_LEVEL": "ERROR"}
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{directory}/bench.sqlite3")
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        measure(port, queued, sent)


if __name__ == "__main__":
    main()
