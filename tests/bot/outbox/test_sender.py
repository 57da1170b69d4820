"""The outbox with a real mail server on loopback: every mail is sent once, whatever the server does."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from bot.demo import DemoInbox, serve
from bot.notifications.report import compose_due
from bot.outbox import reconcile, sender
from bot.outbox.transports import SendOutcome, SendStatus, Server, SmtpTransport, transport_of
from tests.conftest import ROOT
from tests.support.databases import migrated
from tests.support.outbox import LEASE, act, claim, reloaded, send, states_of
from tests.support.servers import Moody, free_port
from tests.support.world import World, status_text
from tracker.models import OutgoingMail, OutgoingState, Report
from tracker.services import mail_transitions


@pytest.fixture
def mail(world: World) -> OutgoingMail:
    """An approved mail about a fresh report."""
    world.ingest(world.result(world.commit("mm: a"), "mm: a"))
    compose_due(world.settings, world.now, approve_first=False)
    return OutgoingMail.objects.get()


def test_an_approved_mail_is_sent_once_and_the_report_is_told(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    mood, server = moody
    assert send(server) == {SendStatus.SENT: 1}
    assert send(server) == {}
    assert reloaded(mail).state == OutgoingState.SENT
    assert len(mood.taken) == 1
    assert mood.taken[0] == bytes(mail.raw)
    assert mood.reached == [mail.recipients]
    assert Report.objects.get().reported_at
    assert mail.report.events.get().message_id == mail.message_id


def test_one_connection_carries_many(world: World, moody: tuple[Moody, Server]) -> None:
    for number in range(5):
        world.ingest(world.result(world.commit(f"mm: {number}"), f"mm: {number}"))
    assert compose_due(world.settings, world.now, approve_first=False) == 5
    assert compose_due(world.settings, world.now, approve_first=False) == 0  # a report is told once
    assert send(moody[1]) == {SendStatus.SENT: 5}
    assert len(moody[0].taken) == 5


def test_what_is_not_approved_stays(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    assert act(mail, "hold")
    assert send(moody[1]) == {}
    assert act(mail, "approve")
    assert not act(mail, "approve")
    assert send(moody[1]) == {SendStatus.SENT: 1}
    assert not act(mail, "cancel")


def test_a_refused_recipient_does_not_keep_the_others_from_it(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    moody[0].rcpt = {"dana@dev.example": "550 no such user"}
    assert send(moody[1]) == {SendStatus.SENT: 1}
    assert moody[0].reached == [["perf-reports@lists.example.org"]]
    assert reloaded(mail).reason == "rejected for dana@dev.example: 550 no such user"


def test_refused_by_everybody_it_has_failed(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    moody[0].rcpt = dict.fromkeys(mail.recipients, "550 no")
    assert send(moody[1]) == {SendStatus.REFUSED: 1}
    assert (reloaded(mail).state, reloaded(mail).reason) == (OutgoingState.FAILED, "550 no")
    assert not moody[0].taken


@pytest.mark.parametrize(
    ("answer", "status", "state"),
    [
        ("451 come back later", SendStatus.LATER, OutgoingState.APPROVED),
        ("554 we do not like it", SendStatus.REFUSED, OutgoingState.FAILED),
    ],
)
def test_the_servers_no_is_kept_in_its_words(
    mail: OutgoingMail, moody: tuple[Moody, Server], answer: str, status: SendStatus, state: OutgoingState
) -> None:
    moody[0].answer = answer
    assert send(moody[1]) == {status: 1}
    assert reloaded(mail).state == state
    assert reloaded(mail).reason == answer
    assert send(moody[1]) == {}  # later is later


def test_it_gives_up_in_the_end(mail: OutgoingMail) -> None:
    refused = SendOutcome(SendStatus.LATER, "451 later")
    delays = []
    for _ in range(mail_transitions.MOST_TRIES):
        (mine,) = claim(timezone.now() + timedelta(days=9))
        before = timezone.now()
        sender.record(mine, refused, "worker")
        after = reloaded(mail).not_before
        if after and reloaded(mail).state == OutgoingState.APPROVED:
            delays.append((after - before).total_seconds())
    assert reloaded(mail).state == OutgoingState.FAILED
    assert "gave up after 24 attempts: 451 later" in reloaded(mail).reason
    assert len(delays) == 23
    assert delays[:5] == sorted(delays[:5])
    assert max(delays) < 1.25 * 6 * 3600 + 1
    assert len(set(delays)) == 23  # no two of them the same: a hundred mails do not come back at once
    assert timedelta(days=4) < timedelta(seconds=sum(delays)) < timedelta(days=6)  # RFC 5321 section 4.5.4.1
    assert act(mail, "resend")
    (mine,) = claim()
    sender.record(mine, refused, "worker")
    assert reloaded(mail).state == OutgoingState.APPROVED  # a person's word is a new beginning


def test_no_server_at_all_is_later(mail: OutgoingMail) -> None:
    assert send(Server("127.0.0.1", free_port(), timeout=2)) == {SendStatus.NO_SERVER: 1}
    assert reloaded(mail).state == OutgoingState.APPROVED
    assert "refused" in reloaded(mail).reason.lower()


def test_a_wrong_password_fails_no_mail(world: World, moody: tuple[Moody, Server]) -> None:
    for number in range(3):
        world.ingest(world.result(world.commit(f"mm: {number}"), f"mm: {number}"))
    compose_due(world.settings, world.now, approve_first=False)
    server = Server("127.0.0.1", moody[1].port, user="bot", password="wrong", timeout=5)
    assert send(server) == {SendStatus.NO_SERVER: 1}  # and the next ones are not even tried
    assert set(OutgoingMail.objects.values_list("state", flat=True)) == {OutgoingState.APPROVED}


def test_a_server_that_vanishes_after_the_last_dot_leaves_a_doubt(
    world: World, mail: OutgoingMail, moody: tuple[Moody, Server]
) -> None:
    mood, server = moody
    mood.vanish = True
    assert send(server) == {SendStatus.IN_DOUBT: 1}
    assert reloaded(mail).state == OutgoingState.IN_DOUBT
    assert send(server) == {}  # never blindly again
    assert status_text(mail.report) == "not reported yet"
    world.inbox.add(mood.taken[0].replace(b"\r\n", b"\n"))  # the list's copy turns up
    world.read()
    assert reloaded(mail).state == OutgoingState.SENT
    assert mail.report.events.filter(kind="reported").count() == 1


def test_a_worker_that_died_before_the_bytes_left_does_no_harm(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    assert claim(timezone.now() - 2 * LEASE)
    assert send(moody[1]) == {SendStatus.SENT: 1}
    assert len(moody[0].taken) == 1
    assert states_of(mail) == ["approved", "sending", "approved", "sending", "sent"]


def test_a_worker_that_lost_its_lease_does_not_send(mail: OutgoingMail, moody: tuple[Moody, Server]) -> None:
    (slow,) = claim(timezone.now() - 2 * LEASE)
    assert reconcile.sweep(timezone.now()) == (1, 0)
    (quick,) = claim()
    transport = SmtpTransport(moody[1])
    assert sender.deliver(slow, transport, "slow", {}) is SendStatus.NOT_NOW
    assert sender.deliver(quick, transport, "quick", {}) is SendStatus.SENT
    transport.close()
    assert len(moody[0].taken) == 1


def test_a_late_verdict_of_a_worker_that_lost_its_lease_moves_nothing(mail: OutgoingMail) -> None:
    (slow,) = claim(timezone.now() - 2 * LEASE)
    reconcile.sweep(timezone.now())
    (quick,) = claim()
    assert mail_transitions.begin_data(quick, timezone.now())  # the other's bytes are leaving
    for status in (SendStatus.LATER, SendStatus.REFUSED, SendStatus.IN_DOUBT):
        sender.record(slow, SendOutcome(status, "timed out"), "slow")
        assert reloaded(mail).state == OutgoingState.SENDING
        assert reloaded(mail).handed_over_at


def test_a_claimed_mail_is_not_claimed_again(mail: OutgoingMail) -> None:
    assert [len(claim()) for _ in range(2)] == [1, 0]


def test_a_mail_to_nobody_is_held_with_the_reason(world: World) -> None:
    world.settings = type(world.settings)(address=world.settings.address)
    first_bad = {"sha": "b" * 40, "subject": "mm: a", "author": {"email": "stable@kernel.org"}}
    world.ingest(world.result("b" * 40, "mm: a", first_bad=first_bad))
    compose_due(world.settings, world.now, approve_first=False)
    held = OutgoingMail.objects.get()
    assert (held.state, "no recipients" in held.reason) == (OutgoingState.HELD, True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "EMAIL_URL is not set"),
        ("http://x", "expected smtp://"),
        ("consolemail://", "expected smtp://"),
        ("smtp://host:port", "expected smtp://"),
        ("maildir:///var/mail/out", "expected smtp://"),
        ("smtp://bot:secret@mail.example.org:25", "a password needs encryption"),
    ],
)
def test_a_wrong_address_of_the_server_is_said(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        transport_of(url)
    assert "secret" not in str(refused.value)


def test_the_address_of_the_server() -> None:
    transport = transport_of("smtp+tls://bot:p%40ss@mail.example.org:587", ehlo="perf.example.org")
    assert isinstance(transport, SmtpTransport)
    server = transport.server
    assert server.ehlo == "perf.example.org"
    assert (server.host, server.port, server.user, server.password) == ("mail.example.org", 587, "bot", "p@ss")
    assert (server.starttls, server.tls) == (True, False)


# --- the command ---


def outbox(*arguments: str) -> str:
    out = io.StringIO()
    call_command("outbox", *arguments, stdout=out)
    return out.getvalue()


def test_the_command(mail: OutgoingMail, moody: tuple[Moody, Server], settings: Any) -> None:
    settings.EMAIL_URL = ""
    assert f"{mail.pk}  approved" in outbox("list")
    shown = outbox("show", str(mail.pk))
    assert "Subject: [LKP] [mm]" in shown
    assert "Perfwork noticed a -30.0% regression" in shown
    assert outbox("show", str(mail.pk), "--raw").startswith(f"Message-ID: <{mail.message_id}>")
    assert outbox("hold", str(mail.pk)) == "hold: 1 mail\n"
    assert outbox("approve", "all") == "approve: 1 mail\n"
    with pytest.raises(CommandError, match="can't approve: must be composed or held"):
        outbox("approve", str(mail.pk))
    with pytest.raises(CommandError, match="no such mail"):
        outbox("show", "99")
    with pytest.raises(CommandError, match="EMAIL_URL is not set"):
        outbox("send")
    settings.EMAIL_URL = f"smtp://127.0.0.1:{moody[1].port}"
    assert outbox("send") == "1 sent\n"
    assert outbox("send") == "nothing is due\n"


# --- killed for real ---


# manage.py, but that it dies without a word, as by kill -9, where the outcome of a sending would be recorded.
DIES_BEFORE_IT_RECORDS = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
django.setup()
from bot.outbox import sender
sender.record = lambda *arguments: os._exit(137)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


@pytest.mark.long
@pytest.mark.slow
def test_killed_between_send_and_record_it_is_not_sent_twice(tmp_path: Path) -> None:
    """A process dies, as by kill -9, when the server has the mail and the database does not know it yet."""
    inbox = DemoInbox(tmp_path / "inbox")
    catcher = serve(inbox, free_port())
    env = {
        **os.environ,
        "PERFWORK_VAR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "EMAIL_URL": f"smtp://127.0.0.1:{catcher.port}",
        "PERFWORK_BOT_ADDRESS": "perfbot@bot.example.org",
        "PERFWORK_APPROVE_FIRST": "off",
        "PERFWORK_LEASE": "1",
    }

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    def mails() -> list[tuple[str]]:
        with sqlite3.connect(tmp_path / "db.sqlite3") as database:
            return database.execute("select state from tracker_outgoingmail").fetchall()

    try:
        migrated(tmp_path / "db.sqlite3")
        assert manage("ingest", "fixtures/results/01-mm-vmscan.json").returncode == 0
        dying = [sys.executable, "-c", DIES_BEFORE_IT_RECORDS, "outbox", "send"]
        assert subprocess.run(dying, cwd=ROOT, env=env, check=False).returncode == 137
        assert mails() == [("sending",)]
        time.sleep(1.2)  # the lease of the dead one
        manage("outbox", "send")
        assert mails() == [("in_doubt",)]
        assert manage("read", str(tmp_path / "inbox")).returncode == 0
        assert mails() == [("sent",)]
        manage("outbox", "send")
        assert len(catcher.handler.received) == 1
        assert "no response from author yet" in manage("export", "reports").stdout
    finally:
        catcher.stop()
