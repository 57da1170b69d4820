"""`make faults`: disks that are full, without inodes or read-only, and processes, files and servers that fail.

Pages stay, uploads wait, what was taken is there, nothing is lost. The stories of disks have a file system of their own
in memory, so they need root; elsewhere they are skipped, and said. docs/measured.md has the seconds of the others. Some
wait for the five minutes after which silence is a problem, so it takes a quarter of an hour.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from bot.mail.settings import BotSettings
from tests.browser.site import ROOT, Site
from tests.stories.test_it_runs_by_itself import Running
from tests.support.needs import need
from tests.support.servers import free_port, private_redis
from tests.support.world import World

PAGES = ("/", "/v5.6/", "/report/8019ad13ef/", "/curve/1/", "/search/?q=subsystem:mm", "/compare/?of=v5.5&of=v5.6")
RESULT = (ROOT / "fixtures" / "results" / "02-fs-ledger.json").read_bytes()


@pytest.fixture
def small(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose files are on a disk of 64 MiB with few inodes."""
    need("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=400", "none", disk], check=True)
    site = Site(disk)
    site.env["PERFWORK_METRICS_KEY"] = "key"
    try:
        own = tmp_path_factory.getbasetemp()
        site.start((own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "made.sqlite3")
        yield site
    finally:
        site.stop()
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(site: Site) -> Path:
    """Write until there is no space."""
    ballast = site.directory / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"\0" * (1 << 16) if site_free(site) > 1 << 16 else b"\0" * 512)
    return ballast


def site_free(site: Site) -> int:
    at = os.statvfs(site.directory)
    return at.f_bavail * at.f_frsize


def get(site: Site, path: str, **headers: str) -> tuple[int, str]:
    return ask(urllib.request.Request(f"{site.url}{path}", headers=headers))


def ask(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, f"{error.headers.get('Retry-After')} {error.read().decode()}"


def post(site: Site, key: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return ask(urllib.request.Request(f"{site.url}/api/v1/results", data=RESULT, headers=headers, method="POST"))


def key_of(site: Site) -> str:
    return site.run("manage.py", "apikey", "create", "lab", "--producer", "*").split()[-1]


def all_pages(site: Site) -> dict[str, int]:
    return {path: get(site, path)[0] for path in PAGES}


def test_no_space(small: Site) -> None:
    key = key_of(small)
    ballast = fill(small)
    assert set(all_pages(small).values()) == {200}
    assert get(small, "/metrics", Authorization="Bearer key")[0] == 200
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)
    status, why = post(small, key)
    assert (status, why.split()[0], "disk" in why) == (507, "60", True)
    assert set(all_pages(small).values()) == {200}  # by the same process
    ballast.unlink()
    assert post(small, key)[0] == 202
    status, why = get(small, "/readyz")
    assert (status, why.startswith("ready"), "disk" in why) == (200, True, False)
    assert post(small, key)[0] == 200  # known: it was stored once


def test_a_server_that_starts_on_a_full_disk(small: Site) -> None:
    """As after a crash: `up` itself goes on, and starts it again."""
    with sqlite3.connect(small.database) as journal:  # as `up` keeps it
        journal.execute("SELECT count(*) FROM sqlite_master").fetchone()
        small.stop()
        fill(small)
        small.serve()
    assert set(all_pages(small).values()) == {200}
    assert "perfwork_request_seconds_count" in get(small, "/metrics", Authorization="Bearer key")[1]


def test_no_inodes(small: Site) -> None:
    folder = small.directory / "many"
    folder.mkdir()
    with pytest.raises(OSError, match="No space left"):
        for number in range(1000):
            (folder / str(number)).touch()
    assert set(all_pages(small).values()) == {200}
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)


def test_read_only(small: Site) -> None:
    key = key_of(small)
    # Over itself: files are open, and the kernel only makes a disk read-only under them when that fails
    subprocess.run(["mount", "--bind", small.directory, small.directory], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", small.directory], check=True)
    assert set(all_pages(small).values()) == {200}
    status, why = get(small, "/readyz")
    assert (status, "nothing can be stored: the disk" in why) == (503, True)
    assert post(small, key)[0] == 507
    subprocess.run(["umount", "--lazy", small.directory], check=True)  # a page may not have closed the database yet
    assert post(small, key)[0] == 202
    assert json.loads(get(small, "/api/v1/reports?limit=1")[1])


# --- Processes, files and servers, under `up` as it is by default; how long each takes is printed ---


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    process = Running(tmp_path, PERFWORK_PERIOD="60")
    process.wait("the front page", lambda: "Perfwork" in process.page("/"))
    yield process
    process.end()


@pytest.fixture
def timed(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What is said of the seconds since the test began."""
    began, said = time.monotonic(), [""]
    yield said
    say(capsys, f"{said[0]}: {time.monotonic() - began:.1f} s")


def say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print it, whatever pytest does with what tests print."""
    with capsys.disabled():
        print(f"\n  {text}")


def dropped(running: Running, bot_settings: BotSettings, sha: str = "b" * 40) -> str:
    """Drop a result, and return its text."""
    result = World(running.directory / sha[:4], bot_settings).result(sha, f"mm/{sha[:4]}: a change")
    running.drop(f"{sha[:4]}.json", result)
    return json.dumps(result)


def scheduler(running: Running) -> str:
    """Who has the lease."""
    [(holder,)] = running.sql("select holder from tracker_servicelease where name = 'scheduler'")
    return str(holder)


def is_alive(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # a process that nobody has waited for has none
    except OSError:
        return False


def mailed(running: Running, count: int = 1) -> None:
    running.wait("the mail", lambda: len(running.mail.received) == count, 200)


@pytest.mark.django_db
def test_a_worker_is_killed(running: Running, bot_settings: BotSettings, timed: list[str]) -> None:
    os.killpg(running.worker(), signal.SIGKILL)
    dropped(running, bot_settings)
    mailed(running)
    timed[0] = "from a killed worker to the mail of a result dropped meanwhile"


@pytest.mark.django_db
def test_a_web_server_is_killed(running: Running, timed: list[str]) -> None:
    [pid] = re.findall(r"web runs as process (\d+)", running.log.read_text())
    os.kill(int(pid), signal.SIGKILL)
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/", timeout=30) as answer:  # which nobody refuses
        assert answer.status == 200
    timed[0] = "from a killed web server to its next page"


@pytest.mark.django_db
def test_everything_is_killed(running: Running, bot_settings: BotSettings, timed: list[str]) -> None:
    children = [int(pid) for pid in re.findall(r"runs as process (\d+)", running.log.read_text())]
    running.process.kill()
    running.process.wait()
    dropped(running, bot_settings)
    deadline = time.monotonic() + 30
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline, "a process goes on alone"
        time.sleep(0.1)
    running.process = running.start("up", "--bind", f"127.0.0.1:{running.port}")
    mailed(running)
    timed[0] = "from the end of all processes, and their start, to the mail of a result dropped meanwhile"


@pytest.mark.django_db
def test_a_file_is_half_written(running: Running, bot_settings: BotSettings, timed: list[str]) -> None:
    text = json.dumps(World(running.directory / "pen", bot_settings).result("b" * 40, "mm: a change"))
    folder = running.directory / "var" / "drop"
    with (folder / "slow.json").open("w") as file:
        file.write(text[:200])
        file.flush()
        dropped(running, bot_settings, "c" * 40)
        mailed(running)  # others go on
        time.sleep(3)
        file.write(text[200:])
    mailed(running, 2)
    assert not (folder / "refused").exists()
    timed[0] = "a file that took its writer five seconds"


@pytest.mark.django_db
def test_the_mail_server_is_away(running: Running, bot_settings: BotSettings, timed: list[str]) -> None:
    running.smtp.stop()
    dropped(running, bot_settings)
    running.wait(
        "an attempt", lambda: running.sql("select connection_attempts from tracker_outgoingmail") == [(1,)], 30
    )
    assert [state for state, _ in running.outbox()] == ["approved"]
    running.smtp = Controller(running.mail, hostname="127.0.0.1", port=running.smtp.port)
    running.smtp.start()
    back = time.monotonic()
    mailed(running)
    timed[0] = f"a mail server that was away, {time.monotonic() - back:.0f} s of it after its return"


@pytest.mark.django_db
def test_a_second_scheduler(running: Running, timed: list[str]) -> None:
    second, log = running.start("up", "--only", "beat"), running.directory / "more.log"
    try:
        running.wait("its word", lambda: "another scheduler is running; this one waits" in log.read_text())
        first, began = scheduler(running), time.monotonic()
        os.killpg(running.worker(), signal.SIGKILL)  # in which the first one is
        running.wait("a successor", lambda: scheduler(running) not in (first, ""), 90)  # either: the worker is back
        timed[0] = f"two schedulers, {time.monotonic() - began:.1f} s of it from the end of one to the next"
    finally:
        second.terminate()
        second.wait(30)


# --- Servers, clocks and disks that are away; `/readyz` tells of them ---

# A clock that jumps, for a process and all that it starts. (libfaketime breaks sleeping, or the monotonic clock.)
CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long ahead(void) {
    char text[32] = "";
    int file = open(getenv("CLOCK_IS_AHEAD"), O_RDONLY | O_CLOEXEC);
    if (file >= 0) { if (read(file, text, 31) < 0) text[0] = 0; close(file); }
    return atol(text);
}
int clock_gettime(clockid_t which, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, which, now);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) now->tv_sec += ahead();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec; now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    return now ? *now = exact.tv_sec : exact.tv_sec;
}
"""


def clock_of(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return a file that says how many seconds a clock is ahead, and the environment of processes that go by it."""
    if not shutil.which("cc"):
        pytest.skip("NOT RUN: requires a C compiler (apt install gcc libc6-dev)")
    ahead, library = folder / "ahead", folder / "clock.so"
    ahead.write_text("0")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=CLOCK.encode(), check=True)
    return ahead, {"LD_PRELOAD": str(library), "CLOCK_IS_AHEAD": str(ahead)}


@contextmanager
def installation(folder: Path, **settings: str) -> Iterator[Running]:
    """`up` as it is by default, with these settings, once it has pages."""
    running = Running(folder, PERFWORK_PERIOD="60", **settings)
    try:
        running.wait("the front page", lambda: "Perfwork" in running.page("/"))
        running.wait("no problem", lambda: probe(running) == (200, "ready"), 120)
        yield running
    finally:
        running.end()


def probe(running: Running) -> tuple[int, str]:
    status, text = ask(urllib.request.Request(f"http://127.0.0.1:{running.port}/readyz"))
    return status, text.strip()


def shows(running: Running, kind: str, patience: float = 400) -> str:
    """Wait until the probe tells of a problem of this kind; return what it says, and after how many seconds."""
    began = time.monotonic()
    running.wait(f"a problem of {kind}", lambda: kind in probe(running)[1], patience)
    return f"{probe(running)[1]!r} after {time.monotonic() - began:.0f} s"


def heals(running: Running, count: int = 1) -> str:
    """Wait for the mails, and until the probe tells of no problem; return the seconds of both in words."""
    began = time.monotonic()
    mailed(running, count)
    sent = time.monotonic() - began
    running.wait("no problem", lambda: probe(running) == (200, "ready"), 400)
    return f"the mail {sent:.1f} s after its end, no problem {time.monotonic() - began:.1f} s after it"


@pytest.mark.django_db
def test_the_broker_is_away(tmp_path: Path, bot_settings: BotSettings, capsys: pytest.CaptureFixture[str]) -> None:
    need("redis")
    place = tmp_path / "redis.socket"
    with ExitStack() as stack:
        with private_redis(place):
            running = stack.enter_context(installation(tmp_path, CELERY_BROKER_URL=f"redis+socket://{place}"))
        shown = shows(running, "degraded")
        dropped(running, bot_settings)
        with private_redis(place):
            healed = heals(running)
    say(capsys, f"a broker that was away: {shown}; {healed}")


@pytest.mark.django_db
def test_the_database_is_away(
    tmp_path: Path, bot_settings: BotSettings, postgres: str, postgres_server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with installation(tmp_path, DATABASE_URL=postgres) as running:
        postgres_server.stop()
        began = time.monotonic()
        running.wait("a problem", lambda: probe(running)[0] == 503)
        shown = time.monotonic() - began
        assert ask(urllib.request.Request(f"http://127.0.0.1:{running.port}/"))[0] == 503
        dropped(running, bot_settings)
        time.sleep(30)
        postgres_server.start()
        healed = heals(running)
    say(capsys, f"a database that was away: shown after {shown:.0f} s; {healed}")


@pytest.mark.django_db
def test_a_worker_is_wedged(tmp_path: Path, bot_settings: BotSettings, capsys: pytest.CaptureFixture[str]) -> None:
    """The one that has the scheduler."""
    with installation(tmp_path) as running:
        os.kill(running.worker(), signal.SIGSTOP)
        dropped(running, bot_settings)
        shown = shows(running, "degraded")
        os.kill(running.worker(), signal.SIGCONT)
        healed = heals(running)
    say(capsys, f"a wedged worker: {shown}; {healed}")


@pytest.mark.django_db
@pytest.mark.parametrize("days", [3, -3])
def test_the_clock_jumps(
    tmp_path: Path, bot_settings: BotSettings, days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """For 25 seconds, as seen once; then it is right again."""
    ahead, clock = clock_of(tmp_path)
    with installation(tmp_path, **clock) as running:
        ahead.write_text(f"{days * 86_400}")
        time.sleep(25)
        ahead.write_text("0")
        kinds = probe(running)[1]
        dropped(running, bot_settings)
        healed = heals(running)
    say(capsys, f"a clock that jumped {days:+} days for 25 s: {kinds}; {healed}")


@contextmanager
def hanging_server() -> Iterator[int]:
    """A server that accepts connections and never answers; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield server.getsockname()[1]


@pytest.mark.django_db
def test_an_archive_hangs(tmp_path: Path, bot_settings: BotSettings, capsys: pytest.CaptureFixture[str]) -> None:
    """As on a server that takes the connection and says nothing."""
    with hanging_server() as port, installation(tmp_path, PERFWORK_FETCH="on") as running:
        git = ["git", "-C", str(running.inbox.path / "git" / "0.git")]
        subprocess.run([*git, "remote", "add", "origin", f"http://127.0.0.1:{port}/0"], check=True)
        dropped(running, bot_settings)
        began = time.monotonic()
        mailed(running)
        sent = time.monotonic() - began
        shown = shows(running, "archive", 1200)
        subprocess.run([*git, "remote", "remove", "origin"], check=True)
        running.sql("update tracker_mirror set tried_at = null")  # as its button at /operating/ does
        healed = heals(running)
    say(capsys, f"an archive that hangs: a mail beside it after {sent:.1f} s; {shown}; {healed}")


@pytest.mark.django_db
def test_a_certificate_has_expired(
    tmp_path: Path, bot_settings: BotSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    need("openssl")
    ahead, clock = clock_of(tmp_path)
    for name, days in (("old", -30), ("new", 0)):
        ahead.write_text(f"{days * 86_400}")
        key = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "9"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *names, *key]
        subprocess.run(command, env={**os.environ, **clock}, check=True, capture_output=True)
    trusted = tmp_path / "trusted.pem"
    trusted.write_text((tmp_path / "old.pem").read_text() + (tmp_path / "new.pem").read_text())

    def server(name: str, port: int) -> Controller:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        made = Controller(running.mail, hostname="127.0.0.1", port=port, ssl_context=context)
        made.start()
        return made

    port = free_port()
    settings = {"EMAIL_URL": f"smtp+ssl://localhost:{port}", "SSL_CERT_FILE": str(trusted)}
    with installation(tmp_path, **settings) as running:
        expired = server("old", port)
        dropped(running, bot_settings)
        began = time.monotonic()
        error = "select words from tracker_mailtransition"
        running.wait("its words", lambda: any("expired" in row[0] for row in running.sql(error)), 120)
        shown = time.monotonic() - began
        expired.stop()
        renewed = server("new", port)
        healed = heals(running)
        renewed.stop()
    say(capsys, f"an expired certificate: on the mail's page after {shown:.1f} s; {healed}")
