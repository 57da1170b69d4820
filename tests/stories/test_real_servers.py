"""Mail through real servers: Postfix delivers and bounces, RabbitMQ carries tasks, Dovecot stores sent mail.

`.ci/run` installs them; if one is missing, its test is skipped with a message.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.demo import DemoInbox, serve
from bot.notifications.report import compose_due
from bot.outbox.sender import SentFolder
from bot.outbox.transports import SendStatus, Server
from tests import postfix
from tests.conftest import ROOT
from tests.mail_server import free_port
from tests.needs import need
from tests.outbox import reloaded, send
from tests.stories.test_hanging_servers import hang_for_all
from tests.world import DANA, World, status_text
from tracker.models import Correspondent, DeliveryFailure, Mailing, OutgoingMail, OutgoingState

# --- Postfix ---


@pytest.fixture
def mta() -> Iterator[postfix.Postfix]:
    need("postfix", "root")
    with postfix.running() as server:
        yield server


@pytest.mark.slow
def test_postfix_delivers_once_and_its_bounce_is_understood(world: World, mta: postfix.Postfix) -> None:
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
    assert Correspondent.objects.get(address="lee@dev.example").mailing == Mailing.BOUNCING
    assert status_text(mail.report) == "no response from author yet"
    assert len(mta.mails("dana")) == len(mta.mails("list")) == 1


# --- RabbitMQ ---


@pytest.mark.slow
@pytest.mark.long
def test_an_approved_mail_leaves_while_list_servers_hang(tmp_path: Path, rabbitmq: str) -> None:
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
