"""A list server that takes the call and says no word: nothing else waits for it, and everybody sees it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bot.archives.public_inbox import clone_following, next_epoch
from bot.archives.reader import MirrorPatience, read_mirror, read_source
from bot.archives.sources import open_sources
from bot.demo import DemoInbox, serve
from bot.git import repository
from bot.git.repository import Busy
from bot.leases import acquire
from bot.mail.settings import BotSettings
from bot.notifications.report import compose_due
from bot.outbox.sender import SentFolder
from bot.outbox.transports import SendStatus, Server
from tests.conftest import ROOT
from tests.support import servers
from tests.support.databases import migrated
from tests.support.needs import need
from tests.support.outbox import reloaded, send
from tests.support.people import person
from tests.support.servers import free_port
from tests.support.world import DANA, World, status_text
from tracker.models import Archive, Correspondent, DeliveryFailure, Mailing, Mirror, OutgoingMail, OutgoingState

# --- A list server that takes the call and says no word: nothing else waits for it, and everybody sees it ---

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
    for page in ("/", "/review/"):
        assert "git fetch took more" not in client.get(page).content.decode()
    operator = person("operator", "olga")
    client.force_login(operator)
    for page in ("/", "/review/"):
        assert "git fetch took more than 1 s" in client.get(page).content.decode()
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
            command = [sys.executable, "manage.py", "up", "--bind", f"127.0.0.1:{free_port()}"]
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


# --- Mail through real servers: Postfix delivers and bounces, RabbitMQ carries tasks, Dovecot stores sent mail ---
# `.ci/run` installs them; if one is missing, its test is skipped with a message.

# --- Postfix ---


@pytest.fixture
def mta() -> Iterator[servers.Postfix]:
    need("postfix", "root")
    with servers.running() as server:
        yield server


@pytest.mark.slow
def test_postfix_delivers_once_and_its_bounce_is_understood(world: World, mta: servers.Postfix) -> None:
    """To Dana and the list into Maildirs; Lee's address is dead, which Postfix finds out after it took the mail."""
    result = world.result("b" * 40, "mm: größer ± 3")
    result["first_bad"]["trailers"] = [{"tag": "Reviewed-by", "value": "Lee Park <lee@dev.example>"}]
    world.ingest(result)
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    assert send(Server("127.0.0.1", mta.port, timeout=10)) == {SendStatus.SENT: 1}
    assert "queued as" in mail.transitions.last().words  # type: ignore[union-attr]
    (delivered,) = mta.wait("dana")
    (listed,) = mta.wait("list")
    assert f"Return-Path: <{mail.sender}>".encode() in delivered
    body = bytes(mail.raw).replace(b"\r\n", b"\n").partition(b"\n\n")[2]
    assert delivered.partition(b"\n\n")[2] == body == listed.partition(b"\n\n")[2]

    (returned,) = mta.wait("bot")
    world.inbox.add(returned)
    world.read()
    failure = DeliveryFailure.objects.get()
    assert (failure.address, failure.by, failure.dead) == ("lee@dev.example", "bounce", True)
    assert "unknown user" in failure.words
    assert not Correspondent.objects.exists(), "Dana and the list have this return path, too"
    assert status_text(mail.report) == "no response from author yet"
    assert len(mta.mails("dana")) == len(mta.mails("list")) == 1

    result = world.result("c" * 40, "mm: c", id="c")
    result["first_bad"]["trailers"] = [{"tag": "Reviewed-by", "value": "Lee Park <lee@dev.example>"}]
    world.ingest(result)
    compose_due(world.settings, world.later(), approve_first=False)
    for _ in range(2):  # one envelope for Dana and the list, and one for Lee alone
        OutgoingMail.objects.filter(state=OutgoingState.APPROVED).update(not_before=None)
        send(Server("127.0.0.1", mta.port, timeout=10), settings=world.settings)
    assert len(mta.wait("dana", 2)) == len(mta.wait("list", 2)) == 2
    for raw in mta.wait("bot", 2):
        world.inbox.add(raw)
    world.read()
    assert Correspondent.objects.get(address="lee@dev.example").mailing == Mailing.BOUNCING


# --- RabbitMQ ---


@pytest.mark.slow
@pytest.mark.long
def test_an_approved_mail_leaves_through_postfix_while_list_servers_hang(tmp_path: Path, rabbitmq: str) -> None:
    hang_for_all(tmp_path, rabbitmq)


@pytest.mark.slow
@pytest.mark.long
def test_nudges_over_rabbitmq_and_a_worker_that_is_killed(tmp_path: Path, rabbitmq: str) -> None:
    """The crash of tests/crash, short, over this broker: nothing lost, nothing twice."""
    arguments = ("--mails", "60", "--kills", "6", "--broker", rabbitmq)
    command = [sys.executable, "-m", "tests.crash.run", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(done.stdout)
    assert figures["broker"] == "amqp"
    assert figures["kills"] >= 3
    assert [figures[name] for name in ("lost", "twice_unasked", "other_bytes", "unrecorded")] == [0, 0, 0, 0]


# --- Dovecot ---

DOVECOT = """\
base_dir = {place}/run
state_dir = {place}/state
log_path = {place}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = nobody
default_internal_group = nogroup
default_login_user = nobody
mail_location = maildir:{place}/mail/%u
first_valid_uid = 1
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid=65534 gid=65534 home={place}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    auto = create
  }}
}}
"""


@pytest.fixture
def mailbox() -> Iterator[str]:
    """The Sent folder of a mailbox on a real IMAP server."""
    need("dovecot", "root")
    directory, port = Path(tempfile.mkdtemp(prefix="dovecot-")), free_port()
    directory.chmod(0o755)
    for each in ("mail", "run", "state"):
        (directory / each).mkdir()
    os.chown(directory / "mail", 65534, 65534)
    (directory / "dovecot.conf").write_text(DOVECOT.format(place=directory, port=port))
    server = subprocess.Popen(["/usr/sbin/dovecot", "-F", "-c", str(directory / "dovecot.conf")])
    until = time.monotonic() + 20
    while not (directory / "log").exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)
    yield f"imap://perfbot:secret@127.0.0.1:{port}/Sent"
    server.terminate()
    server.wait(20)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.slow
def test_a_copy_in_the_sent_folder_tells_what_went_out(world: World, tmp_path: Path, mailbox: str) -> None:
    """Sent, and kept there; then a backup of the database is restored, in which the mail only waits."""
    from urllib.parse import urlsplit

    world.ingest(world.result("b" * 40, "mm: größer ± 3"))
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    catcher = serve(DemoInbox(tmp_path / "list"), free_port())
    try:
        server = Server("127.0.0.1", catcher.port, timeout=5)
        assert send(server, sent_folder=SentFolder(urlsplit(mailbox))) == {SendStatus.SENT: 1}
        mail.transitions.exclude(became=OutgoingState.APPROVED).delete()
        mail.save()  # as it was
        (source,) = open_sources(mailbox)
        assert read_source(source, world.settings, timezone.now()).seen == 1
        assert reloaded(mail).state == OutgoingState.SENT
        assert send(server) == {}
        assert len(catcher.handler.received) == 1
    finally:
        catcher.stop()


@pytest.mark.slow
def test_a_sent_folder_that_is_not_there_is_no_mails_trouble(world: World, tmp_path: Path) -> None:
    from urllib.parse import urlsplit

    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=False)
    catcher = serve(DemoInbox(tmp_path / "list"), free_port())
    try:
        nowhere = SentFolder(urlsplit(f"imap://u:p@127.0.0.1:{free_port()}/Sent"))
        assert send(Server("127.0.0.1", catcher.port), sent_folder=nowhere) == {SendStatus.SENT: 1}
    finally:
        catcher.stop()
    assert DANA.email in OutgoingMail.objects.get(state="sent").recipients


# --- The same tasks over another broker: Redis, from a wheel, on a Unix socket ---

NUDGE = "from bot.tasks import send_mail; send_mail.delay()"


@pytest.mark.slow
@pytest.mark.long
def test_an_enqueued_task_over_redis_sends_the_mail(tmp_path: Path, redis: str) -> None:
    catcher = serve(DemoInbox(tmp_path / "inbox"), free_port())
    env = {
        **os.environ,
        "PERFWORK_VAR": str(tmp_path / "var"),
        "EMAIL_URL": f"smtp://127.0.0.1:{catcher.port}",
        "PERFWORK_APPROVE_FIRST": "off",
        "CELERY_BROKER_URL": redis,
    }

    def manage(*arguments: str) -> None:
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=env, check=True, capture_output=True)

    migrated(tmp_path / "var" / "perfwork.sqlite3")
    manage("ingest", "fixtures/results/01-mm-vmscan.json")
    command = [sys.executable, "-m", "celery", "-A", "bot", "--quiet", "worker", "--concurrency", "1"]
    worker = subprocess.Popen([*command, "--loglevel", "ERROR"], cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    try:
        manage("shell", "-v0", "-c", NUDGE)
        manage("shell", "-v0", "-c", NUDGE)  # twice, which must not matter
        deadline = time.monotonic() + 60
        while not catcher.handler.received and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1)  # for the second nudge
        assert len(catcher.handler.received) == 1
    finally:
        worker.terminate()
        worker.wait(30)
        catcher.stop()


@pytest.mark.slow
def test_what_a_page_enqueues_goes_to_the_queue_of_its_kind() -> None:
    """In a process that never imported the worker's code, such as a web server's."""
    code = (
        "import django; django.setup(); import bot.urls; from celery import current_app;"
        "print(*(current_app.amqp.router.route({}, name)['queue'].name for name in ('send_mail', 'send_links')))"
    )
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tracker.settings"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "mail web\n"
