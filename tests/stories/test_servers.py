"""A list server that takes the call and says no word: nothing else waits for it, and everybody sees it."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from bot.archives.public_inbox import clone_following, next_epoch
from bot.archives.reader import MirrorPatience, read_mirror
from bot.demo import DemoInbox, serve
from bot.errors import Busy
from bot.git import repository
from bot.leases import acquire
from bot.mail.settings import BotSettings
from tests.conftest import ROOT
from tests.databases import migrated
from tests.mail_server import free_port
from tracker.models import Archive, Mirror

PERIOD = 5.0  # seconds between two beats
PATIENCE = MirrorPatience(1.0, timedelta(minutes=5), timedelta(minutes=10))


@contextmanager
def silent_server() -> Iterator[int]:
    """A server that accepts connections and never answers; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=500) as server:
        kept: list[socket.socket] = []

        def take() -> None:
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            for each in kept:
                each.close()


def mirror_of(directory: Path, url: str) -> Path:
    """An inbox with an epoch whose remote is at this URL."""
    inbox = DemoInbox(directory)
    inbox.add(b"From: a@b.example\nMessage-ID: <a@b>\nSubject: x\n\nx\n")
    epoch = directory / "git" / "0.git"
    repository.run(epoch, "config", "remote.origin.url", url)
    repository.run(epoch, "config", "remote.origin.fetch", "+refs/*:refs/*")
    return directory


@pytest.mark.django_db
@pytest.mark.parametrize("scheme", ["http", "git"])
def test_a_fetch_that_hangs_is_stored_and_tried_again_later(
    tmp_path: Path, bot_settings: BotSettings, client: Client, scheme: str
) -> None:
    with silent_server() as port:
        inbox = mirror_of(tmp_path / "list", f"{scheme}://127.0.0.1:{port}/list/git/0.git")
        now = timezone.now()
        started = time.monotonic()
        found = read_mirror(str(inbox), bot_settings, now, PATIENCE)
        assert time.monotonic() - started < 10
    assert "git fetch took more than 1 s" in found.error
    row = Mirror.objects.get()
    assert (row.error, row.failing_since, row.lease_until) == (found.error, now, None)
    assert not Archive.objects.exists()  # what is stale does not count as read
    assert read_mirror(str(inbox), bot_settings, now + timedelta(minutes=9), PATIENCE).error == ""  # not tried
    assert "git fetch took more than 1 s" in client.get("/inbox/").content.decode()
    assert "git fetch took more" not in client.get("/").content.decode()
    operator = User.objects.create_user("olga")
    operator.groups.add(Group.objects.get(name="operator"))
    client.force_login(operator)
    assert "git fetch took more than 1 s" in client.get("/").content.decode()
    repository.run(inbox / "git" / "0.git", "config", "--unset", "remote.origin.url")
    later = now + timedelta(minutes=11)  # after two failures it would be twice as long
    assert read_mirror(str(inbox), bot_settings, later, PATIENCE).tally.seen == 1
    row.refresh_from_db()
    assert (row.error, row.failing_since) == ("", None)


@pytest.mark.django_db
def test_whatever_can_not_be_opened_is_stored(tmp_path: Path, bot_settings: BotSettings) -> None:
    for address in (str(tmp_path / "missing"), "imaps://user:secret@mail.example.org:x/list", "ftp://x/y"):
        found = read_mirror(address, bot_settings, timezone.now(), PATIENCE)
        assert found.error
        assert Mirror.objects.get(error=found.error).path
    assert not Mirror.objects.filter(path__contains="secret").exists()
    assert not Mirror.objects.filter(error__contains="secret").exists()


@pytest.mark.django_db
def test_no_two_workers_fetch_one_archive(tmp_path: Path, bot_settings: BotSettings) -> None:
    inbox = DemoInbox(tmp_path / "list")
    row = Mirror.objects.create(path=str(inbox.path.resolve()))
    acquire(row, timedelta(minutes=5))
    with pytest.raises(Busy):
        read_mirror(str(inbox.path), bot_settings, timezone.now(), PATIENCE)


def test_a_new_epoch_appears_when_it_is_whole(tmp_path: Path) -> None:
    upstream, ours = DemoInbox(tmp_path / "up"), tmp_path / "ours"
    upstream.add(b"From: a@b.example\nMessage-ID: <a@b>\nSubject: x\n\nx\n")
    (ours / "git").mkdir(parents=True)
    zero = upstream.path / "git" / "0.git"
    subprocess.run(
        ["git", "clone", "-q", "--mirror", zero, ours / "git" / "0.git"], check=True, env=repository.ENVIRONMENT
    )
    assert next_epoch(ours) is None
    subprocess.run(
        ["git", "clone", "-q", "--mirror", zero, zero.with_name("1.git")], check=True, env=repository.ENVIRONMENT
    )
    (ours / "git" / "1.part").mkdir()  # a worker was killed
    (ours / "git" / "1.part" / "HEAD").write_text("x")
    assert clone_following(ours) == 1
    assert sorted(each.name for each in (ours / "git").glob("*.git")) == ["0.git", "1.git"]
    assert not (ours / "git" / "1.part").exists()


def test_git_ends_with_its_worker(tmp_path: Path) -> None:
    with silent_server() as port:
        inbox = mirror_of(tmp_path / "list", f"git://127.0.0.1:{port}/x.git")
        code = (
            "import sys; from pathlib import Path; from bot.archives.public_inbox import fetch;"
            "fetch(Path(sys.argv[1]), 600)"
        )
        worker = subprocess.Popen([sys.executable, "-c", code, str(inbox)], cwd=ROOT)
        wait(lambda: fetches_of(inbox))
        worker.kill()
        worker.wait()
        wait(lambda: not fetches_of(inbox))


def fetches_of(inbox: Path) -> list[str]:
    """The git processes that fetch for an inbox."""
    lines = (each / "cmdline" for each in Path("/proc").iterdir() if each.name.isdecimal())
    found = []
    for each in lines:
        with suppress(OSError):
            text = each.read_bytes().replace(b"\0", b" ").decode()
            found += [text] if str(inbox) in text and " fetch " in text else []
    return found


def wait(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)
    return found


@pytest.mark.long
def test_an_approved_mail_leaves_while_list_servers_hang(tmp_path: Path, redis: str) -> None:
    """Among 100 archives three servers hang, over HTTP, git and IMAP: the mail leaves within two beats."""
    hang_for_all(tmp_path, redis)


def hang_for_all(tmp_path: Path, broker: str) -> None:
    with silent_server() as port:
        archives = [
            str(mirror_of(tmp_path / "http", f"http://127.0.0.1:{port}/git/0.git")),
            str(mirror_of(tmp_path / "git", f"git://127.0.0.1:{port}/x.git")),
            f"imap://127.0.0.1:{port}/list",
        ]
        for number in range(97):
            archives.append(str(tmp_path / f"{number}.mbox"))
            Path(archives[-1]).write_bytes(b"")
        catcher = serve(DemoInbox(tmp_path / "inbox"), free_port())
        env = {
            **os.environ,
            "PERFWORK_VAR": str(tmp_path / "var"),
            "EMAIL_URL": f"smtp://127.0.0.1:{catcher.port}",
            "CELERY_BROKER_URL": broker,
            "PERFWORK_ARCHIVES": ",".join(archives),
            "PERFWORK_FETCH": "on",
            "PERFWORK_PERIOD": str(PERIOD),
        }
        database = tmp_path / "var" / "perfwork.sqlite3"
        migrated(database)

        def manage(*arguments: str) -> None:
            command = [sys.executable, "manage.py", *arguments]
            subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)

        manage("ingest", "fixtures/results/01-mm-vmscan.json")
        manage("shell", "-v0", "-c", "from bot.tasks import compose_mail; compose_mail()")
        log = tmp_path / "up.log"
        with log.open("wb") as out:
            command = [sys.executable, "manage.py", "up", "--bind", f"127.0.0.1:{free_port()}", "--workers", "2"]
            running = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            wait(lambda: fetches_of(tmp_path / "http") and fetches_of(tmp_path / "git"), 120)
            with closing(sqlite3.connect(database, timeout=30)) as rows:
                wait(lambda: rows.execute("SELECT count(*) FROM tracker_mirror").fetchone()[0] >= 3)
            assert not catcher.handler.received  # it waits for approval
            manage("outbox", "approve", "1")
            approved = time.monotonic()
            wait(lambda: catcher.handler.received, 30)
            assert time.monotonic() - approved < 2 * PERIOD + 1, log.read_text()[-3000:]
            assert fetches_of(tmp_path / "git")  # still hanging
        finally:
            running.terminate()
            running.wait(60)
            catcher.stop()
        assert not fetches_of(tmp_path)


def test_a_server_that_hangs_takes_ever_less_of_the_time() -> None:
    patience = MirrorPatience(60, timedelta(minutes=5), timedelta(minutes=10), 900)
    assert [patience.fetching(failures) for failures in (0, 1, 4, 99)] == [60, 120, 900, 900]
    waits = [patience.waiting(failures) / timedelta(minutes=1) for failures in (0, 1, 2, 3, 99)]
    assert waits == [10, 10, 20, 40, 320]
