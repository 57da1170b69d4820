"""Sending with failing servers, operators, policies and full disks: what happens, and what is recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from bot import tasks
from bot.checks import check_settings
from bot.compose.policy import Rates
from bot.demo import DemoInbox, serve
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.outbox import reconcile, sender
from bot.outbox.reconcile import RecoveryPolicy
from bot.outbox.transports import Envelope, SendOutcome, SendStatus, Server, SmtpTransport
from tests.conftest import ROOT, clean_environment
from tests.support.outbox import act, claim, in_state, reloaded, send, states_of
from tests.support.servers import Moody, free_port, mail_server
from tests.support.world import World, status_text
from tracker.models import Archive, Correspondent, DeliveryFailure, Mailing, OutgoingMail, OutgoingState, Report
from tracker.services import mail_transitions

# --- Sending with failing servers, operators, policies and full disks: what happens, and what is recorded ---

S = OutgoingState
NO_RESPONSE = "no response from author yet"


def compose(world: World, number: int = 1) -> list[OutgoingMail]:
    """Approved mails about fresh reports."""
    for each in range(number):
        sha = f"{each + 1:040x}"
        world.ingest(world.result(sha, f"mm: {each}", id=f"n{each}"))
    compose_due(world.settings, world.now, approve_first=False)
    return list(OutgoingMail.objects.order_by("pk"))


def later(minutes: float) -> None:
    """Time passes: what waits has waited so much longer."""
    for mail in OutgoingMail.objects.all():
        moments = {name: getattr(mail, name) for name in ("not_before", "turn_at", "handed_over_at")}
        earlier = {name: at - timedelta(minutes=minutes) for name, at in moments.items() if at}
        OutgoingMail.objects.filter(pk=mail.pk).update(**earlier) if earlier else None


# --- what a server can do ---


def test_a_server_that_says_421_for_ten_minutes(world: World, moody: tuple[Moody, Server]) -> None:
    mails = compose(world, 3)
    mood, server = moody
    mood.answer = "421 4.3.2 shutting down"
    minutes = 0.0
    while minutes < 10:
        send(server)
        assert in_state(S.FAILED, S.IN_DOUBT, S.SENDING) == 0
        later(0.5)
        minutes += 0.5
    assert not mood.taken
    mood.answer = "250 taken"
    later(60)
    assert send(server) == {SendStatus.SENT: 3}
    assert mood.ids == {mail.message_id: 1 for mail in mails}
    assert [status_text(mail.report) for mail in mails] == [NO_RESPONSE] * 3
    tries = states_of(mails[0]).count("sending")
    assert 3 <= tries <= 6  # at growing distances


def test_a_server_that_greets_with_421_is_asked_for_one_mail_at_a_time(world: World) -> None:
    compose(world, 3)
    with mail_server(Moody()) as gone:
        pass  # nobody is there any more
    assert send(gone) == {SendStatus.NO_SERVER: 1}
    assert [mail.attempts for mail in OutgoingMail.objects.order_by("pk")] == [1, 0, 0]
    assert in_state(S.APPROVED) == 3


def test_a_server_that_refuses_3_of_40(world: World, moody: tuple[Moody, Server]) -> None:
    mood, server = moody
    people = [f"p{number:02}@dev.example" for number in range(38)]
    first_bad = {"sha": "b" * 40, "subject": "mm: a", "author": {"name": "Dana Brook", "email": "dana@dev.example"}}
    result = world.result("b" * 40, "mm: a", first_bad=first_bad)
    result["first_bad"]["trailers"] = [{"tag": "Cc", "value": each} for each in people]
    world.ingest(result)
    compose_due(world.settings, world.now, approve_first=False)
    mail = OutgoingMail.objects.get()
    assert len(mail.recipients) == 40
    mood.rcpt = {
        "p03@dev.example": "550 5.1.1 unknown",
        "p04@dev.example": "550 5.7.1 spam",
        "p05@dev.example": "553 ?",
    }
    assert send(server) == {SendStatus.SENT: 1}
    assert (reloaded(mail).state, len(mood.reached[0])) == (S.SENT, 37)
    assert reloaded(mail).reason.startswith("rejected for p03@dev.example: 550 5.1.1 unknown; p04@dev.example: ")
    assert dict(DeliveryFailure.objects.values_list("address", "words")) == mood.rcpt
    assert status_text(mail.report) == NO_RESPONSE
    (bouncing,) = Correspondent.objects.all()  # spam filters and riddles are no proof that nobody is there
    assert (bouncing.address, bouncing.mailing) == ("p03@dev.example", Mailing.BOUNCING)
    assert "550 5.1.1 unknown" in bouncing.note


def test_whom_a_server_asks_to_come_again_for_gets_it_later_and_nobody_twice(
    world: World, moody: tuple[Moody, Server]
) -> None:
    (mail,) = compose(world)
    mood, server = moody
    mood.rcpt = {"dana@dev.example": "451 4.7.1 greylisted, try again"}
    assert send(server) == {SendStatus.SENT: 1}
    assert mood.reached == [["perf-reports@lists.example.org"]]
    assert reloaded(mail).state == S.APPROVED
    assert "deferred for dana@dev.example: 451" in reloaded(mail).reason
    assert status_text(mail.report) == NO_RESPONSE  # most have it
    world.inbox.add(bytes(mail.raw))
    world.read()
    assert reloaded(mail).state == S.APPROVED  # the list's copy says nothing of the author's
    assert send(server) == {}
    mood.rcpt = {}
    later(5)
    assert send(server) == {SendStatus.SENT: 1}
    assert mood.reached == [["perf-reports@lists.example.org"], ["dana@dev.example"]]
    assert (reloaded(mail).state, reloaded(mail).reason) == (S.SENT, "")
    assert mail.report.events.filter(kind="reported").count() == 1


def test_what_some_have_got_is_done_and_not_failed_or_cancelled(world: World, moody: tuple[Moody, Server]) -> None:
    first, second = compose(world, 2)
    mood, server = moody
    mood.rcpt = {"dana@dev.example": "451 later"}
    send(server)
    assert act(first, "cancel")
    assert reloaded(first).state == S.SENT
    mood.rcpt = {"dana@dev.example": "550 5.1.1 no"}
    later(5)
    send(server)
    assert reloaded(second).state == S.SENT
    assert DeliveryFailure.objects.get(mail=second, address="dana@dev.example").words == "550 5.1.1 no"
    assert len(mood.taken) == 2


def test_a_bug_of_ours_keeps_no_other_mail_back(
    world: World, moody: tuple[Moody, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = compose(world, 3)
    real = SmtpTransport.send

    def breaks(self: SmtpTransport, envelope: Envelope, confirm: Any) -> SendOutcome:
        if envelope.message_id == first.message_id:
            raise TypeError("a bug")
        if envelope.message_id == second.message_id:
            confirm()
            raise TypeError("a later bug")
        return real(self, envelope, confirm)

    monkeypatch.setattr(SmtpTransport, "send", breaks)
    assert send(moody[1]) == {SendStatus.REFUSED: 2, SendStatus.SENT: 1}
    assert [reloaded(mail).state for mail in (first, second, third)] == [S.FAILED, S.IN_DOUBT, S.SENT]
    assert reloaded(first).reason == "could not be sent: TypeError: a bug"


# --- doubts ---


def vanished(world: World, moody: tuple[Moody, Server]) -> OutgoingMail:
    """A mail that the server took, and of which nobody here knows."""
    mail = compose(world)[-1]
    moody[0].vanish = True
    assert send(moody[1]) == {SendStatus.IN_DOUBT: 1}
    moody[0].vanish = False
    return reloaded(mail)


def test_a_person_decides_on_a_doubt(world: World, moody: tuple[Moody, Server]) -> None:
    mail = vanished(world, moody)
    assert "the connection broke after the last dot" in mail.reason
    later(600)
    assert reconcile.resolve(RecoveryPolicy(), timezone.now()) == 0  # unless a policy says so
    assert send(moody[1]) == {}
    assert act(mail, "resend", "the list has no copy")
    assert send(moody[1]) == {SendStatus.SENT: 1}
    assert moody[0].ids == {mail.message_id: 2}  # knowingly, with the same Message-ID
    transitions = list(mail.transitions.values_list("became", "by", "words"))
    assert ("approved", "dana", "the list has no copy") in transitions


def test_a_policy_sends_again_what_was_seen_nowhere_and_once(world: World, moody: tuple[Moody, Server]) -> None:
    policy = RecoveryPolicy(timedelta(minutes=30), resend=True)
    mail = vanished(world, moody)
    later(29)
    assert reconcile.resolve(policy, timezone.now()) == 0
    later(31)
    assert reconcile.resolve(policy, timezone.now()) == 0  # no archive was read: it could not have been seen
    Archive.objects.create(path="/a", read_at=timezone.now() - timedelta(minutes=40))
    assert reconcile.resolve(policy, timezone.now()) == 0  # that was too early
    Archive.objects.update(read_at=timezone.now())
    moody[0].vanish = True
    assert reconcile.resolve(policy, timezone.now()) == 1
    assert send(moody[1]) == {SendStatus.IN_DOUBT: 1}
    later(600)
    assert reconcile.resolve(policy, timezone.now()) == 0  # now a person must look
    assert reloaded(mail).state == S.IN_DOUBT
    assert moody[0].ids == {mail.message_id: 2}
    assert "sent again with the same Message-ID" in " ".join(mail.transitions.values_list("words", flat=True))


def test_the_archive_that_holds_our_mail_is_asked_and_no_other(world: World, moody: tuple[Moody, Server]) -> None:
    world.report("net: b")  # its copy is in the list's archive
    world.read()
    held = Archive.objects.get()
    Archive.objects.create(path="/elsewhere", read_at=timezone.now())
    mail = vanished(world, moody)
    later(60)
    policy = RecoveryPolicy(timedelta(minutes=30), resend=True)
    Archive.objects.filter(pk=held.pk).update(read_at=timezone.now() - timedelta(hours=2))
    assert reconcile.resolve(policy, timezone.now()) == 0
    Archive.objects.filter(pk=held.pk).update(read_at=timezone.now())
    assert reconcile.resolve(policy, timezone.now()) == 1
    assert reloaded(mail).state == S.APPROVED


def test_another_mail_under_our_message_id_proves_nothing(world: World, moody: tuple[Moody, Server]) -> None:
    mail = vanished(world, moody)
    forged = bytes(mail.raw).replace(b"\r\n", b"\n").replace(b"regression", b"improvement")
    world.inbox.add(forged)
    world.read()
    assert reloaded(mail).state == S.IN_DOUBT
    assert "it is not a copy" in " ".join(mail.transitions.values_list("words", flat=True))
    assert not Report.objects.get().reported_at


def test_a_copy_with_the_lists_footer_proves_it(world: World, moody: tuple[Moody, Server]) -> None:
    mail = vanished(world, moody)
    world.inbox.add(bytes(mail.raw).replace(b"\r\n", b"\n") + b"\n_______\nA list's footer\n")
    world.read()
    assert reloaded(mail).state == S.SENT
    assert mail.transitions.last().by == "archive"  # type: ignore[union-attr]
    assert status_text(mail.report) == NO_RESPONSE


def test_after_a_backup_was_restored_the_archive_tells_what_went_out(world: World, moody: tuple[Moody, Server]) -> None:
    """The database is of yesterday, when the mail only waited."""
    (mail,) = compose(world)
    assert act(mail, "hold")
    world.inbox.add(bytes(mail.raw))
    world.read()
    assert reloaded(mail).state == S.SENT
    assert not act(mail, "approve")
    assert send(moody[1]) == {}


def test_a_worker_that_dies_between_sending_and_telling_leaves_the_telling_to_the_next(
    world: World, moody: tuple[Moody, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    (mail,) = compose(world)
    with monkeypatch.context() as dying:
        dying.setattr(sender.mail_transitions, "record_sent", lambda *words: None)
        assert send(moody[1]) == {SendStatus.SENT: 1}
    assert reloaded(mail).unrecorded
    assert not Report.objects.get().reported_at
    assert send(moody[1]) == {}
    assert Report.objects.get().reported_at == reloaded(mail).sent_at.replace(microsecond=0)  # type: ignore[union-attr]


# --- the stop switch ---


def test_a_stop_holds_what_has_not_begun_and_lets_it_go_later(world: World, moody: tuple[Moody, Server]) -> None:
    mails = compose(world, 3)
    assert mail_transitions.stop_sending("dana", timezone.now(), "wrong numbers")
    assert not mail_transitions.stop_sending("lee", timezone.now())
    assert send(moody[1]) == {}
    assert in_state(S.APPROVED) == 3
    assert mail_transitions.resume_sending("dana", timezone.now())
    assert not mail_transitions.resume_sending("dana", timezone.now())
    assert send(moody[1]) == {SendStatus.SENT: 3}
    assert moody[0].ids == {mail.message_id: 1 for mail in mails}


def test_a_stop_reaches_a_worker_in_the_middle_of_a_batch(world: World, moody: tuple[Moody, Server]) -> None:
    compose(world, 2)
    mood, server = moody
    batch = claim()
    transport = SmtpTransport(server)
    assert sender.deliver(batch[0], transport, "w", {}) is SendStatus.SENT
    mail_transitions.stop_sending("dana", timezone.now())
    assert sender.deliver(batch[1], transport, "w", {}) is SendStatus.NOT_NOW  # the server was ready for its last dot
    transport.close()
    assert reloaded(batch[1]).state == S.APPROVED
    assert len(mood.taken) == 1


# --- order and pace ---


def test_what_follows_a_report_waits_until_that_has_gone_out(world: World, moody: tuple[Moody, Server]) -> None:
    report = world.report()
    report_mail = OutgoingMail.objects.get()
    world.ingest(world.result(report.culprit.sha, report.culprit.title, id="again", measurements=[worse()]))
    assert compose_follow_ups(world.settings, world.later(), approve_first=False) == 1
    follow_up = OutgoingMail.objects.exclude(pk=report_mail.pk).get()
    assert follow_up.purpose.startswith("follow_up")
    OutgoingMail.objects.filter(pk=report_mail.pk).update(state=S.IN_DOUBT)  # as if its fate were not known
    assert send(moody[1]) == {}
    OutgoingMail.objects.filter(pk=report_mail.pk).update(state=S.SENT)
    assert send(moody[1]) == {SendStatus.SENT: 1}


def worse() -> dict[str, Any]:
    return {
        "metric": "vm-scan.latency_us",
        "unit": "us",
        "direction": "lower",
        "role": "headline",
        "good": {"samples": [100, 101, 99]},
        "bad": {"samples": [300, 303, 297]},
    }


def test_mail_goes_at_the_pace_of_the_lab(world: World, moody: tuple[Moody, Server]) -> None:
    """Six mails a minute to any one address: the first at once, the others ten seconds apart."""
    mails = compose(world, 5)
    rates = Rates(address=6)
    before = timezone.now()
    assert send(moody[1], rates=rates) == {SendStatus.SENT: 1}
    waits = [reloaded(mail).not_before for mail in mails[1:]]
    apart = [round((moment - before).total_seconds()) for moment in waits if moment]
    assert apart == [10, 20, 30, 40]
    assert send(moody[1], rates=rates) == {}
    later(0.34)  # 20 s
    assert send(moody[1], rates=rates) == {SendStatus.SENT: 2}
    later(1)
    assert send(moody[1], rates=rates) == {SendStatus.SENT: 2}
    assert moody[0].ids == {mail.message_id: 1 for mail in mails}


@pytest.mark.slow
def test_a_mail_that_is_nearly_due_is_waited_for(world: World, moody: tuple[Moody, Server]) -> None:
    compose(world, 2)
    assert send(moody[1], rates=Rates(every=24), run=10) == {SendStatus.SENT: 2}  # 2.5 s apart


def test_who_opted_out_since_it_was_approved_gets_nothing(world: World, moody: tuple[Moody, Server]) -> None:
    _, second = compose(world, 2)
    Correspondent.objects.create(address="dana@dev.example", mailing=Mailing.OPTED_OUT, since=world.now)
    OutgoingMail.objects.filter(pk=second.pk).update(recipients=["dana@dev.example"])
    assert send(moody[1]) == {SendStatus.SENT: 1, SendStatus.REFUSED: 1}
    assert moody[0].reached == [["perf-reports@lists.example.org"]]
    assert (reloaded(second).state, reloaded(second).reason) == (
        S.FAILED,
        "all remaining recipients opted out or bounce",
    )


def test_a_worker_rings_again_where_more_is_due_and_nobody_at_it(
    world: World, moody: tuple[Moody, Server], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compose(world, 4)
    settings.EMAIL_URL = f"smtp://127.0.0.1:{moody[1].port}"
    calls: list[int] = []
    monkeypatch.setattr(tasks.send_mail, "apply_async", lambda *arguments, **options: calls.append(1))
    monkeypatch.setattr(tasks, "SENDING", 0.0001)
    assert (tasks.send_mail(), len(calls)) == (1, 1)
    assert len(claim(limit=1)) == 1  # another worker is at it
    assert (tasks.send_mail(), len(calls)) == (1, 1)
    settings.PERFWORK_SENDING = False
    assert (tasks.send_mail(), len(moody[0].taken)) == (0, 2)


def test_settings_that_can_not_be_meant_are_said_at_the_start(settings: Any) -> None:
    settings.EMAIL_URL = "smtp://bot:secret@mail.example.org"
    (error,) = check_settings()
    assert "a password needs encryption" in str(error)
    assert "secret" not in str(error)


# --- a full disk ---

# `outbox send` in a process of its own, which may write no byte more once the server has taken the mail: what a full
# disk is to a database (write(2) fails).
FULL_DISK = """
import os, resource, signal, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
django.setup()
from bot.outbox import sender
real = sender.record
def record(*words):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    return real(*words)
sender.record = record
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


@pytest.mark.long
def test_a_full_disk_when_a_mail_has_gone_out(tmp_path: Path) -> None:
    """It is in doubt then, nothing more is sent, and once there is room, the list's copy tells what became of it."""
    catcher = serve(DemoInbox(tmp_path / "inbox"), free_port())
    env = {
        **os.environ,
        "PERFWORK_VAR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3",
        "EMAIL_URL": f"smtp://127.0.0.1:{catcher.port}",
        "PERFWORK_BOT_ADDRESS": "perfbot@bot.example.org",
        "PERFWORK_APPROVE_FIRST": "off",
        "PERFWORK_LEASE": "1",
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )

    def states() -> list[str]:
        return [line.split()[1] for line in run("manage.py", "outbox", "list").stdout.splitlines()]

    try:
        run("manage.py", "migrate", "-v0")
        run("manage.py", "ingest", "fixtures/results/01-mm-vmscan.json", "fixtures/results/04-net-relay.json")
        assert states() == ["approved", "approved"]
        full = run("-c", FULL_DISK, "outbox", "send")
        assert full.returncode == os.EX_TEMPFAIL
        assert "could not be recorded" in full.stderr
        assert "Traceback" not in full.stderr
        assert len(catcher.handler.received) == 1  # and no second one
        assert sorted(states()) == ["approved", "sending"]  # what became of it could not be written
        time.sleep(1.2)  # the lease
        run("manage.py", "outbox", "send")
        assert sorted(states()) == ["in_doubt", "sent"]
        run("manage.py", "read", str(tmp_path / "inbox"))
        assert states() == ["sent", "sent"]
        assert len(catcher.handler.received) == 2
    finally:
        catcher.stop()


# --- Workers that are killed while sending lose no mail and send none twice. `make crash-test` is the long version
# ---

MAILS = 2_500  # 10,000 in `make crash-test`


def crash(*command: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("database", "broker"), [("sqlite", "filesystem"), ("postgresql", "redis")])
def test_killed_at_random_moments(database: str, broker: str, request: pytest.FixtureRequest) -> None:
    where = request.getfixturevalue("postgres") if database == "postgresql" else database
    broker = request.getfixturevalue(broker) if broker == "redis" else broker
    arguments = ("--mails", "60", "--kills", "10", "--seed", "7", "--database", where, "--broker", broker)
    figures = crash("tests.crash.run", *arguments)
    assert figures["kills"] >= 5  # fewer than ten where the mails ran out
    assert [figures[name] for name in ("lost", "twice_unasked", "other_bytes", "unrecorded")] == [0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.long
def test_three_workers_send_thousands_of_mails_once(postgres: str) -> None:
    """Two from the beginning, a third midway; on PostgreSQL, where they claim at the same time."""
    figures = crash("tests.crash.several", "--mails", str(MAILS), "--database", postgres)
    assert figures["workers"] == 3
    assert figures["least"] > 100  # each had its share
    assert [figures[name] for name in ("mails", "lost", "twice", "in_doubt", "unrecorded")] == [MAILS, 0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.long
def test_killed_between_statements() -> None:
    figures = crash("tests.crash.statements", "--every", "23")
    assert figures["killed"] > 20
    assert figures["in_doubt"] >= 1  # some died between the last dot and the record
    assert [figures[name] for name in ("lost", "left_to_a_person", "twice", "unrecorded")] == [0, 0, 0, 0]


# --- A machine is cut off in the middle of a transaction: PostgreSQL frees its locks, and the others go on ---

PERIOD = 5  # seconds, the shortest time after which PostgreSQL ends an idle transaction
HOLD = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
django.setup()
from django.db import DatabaseError, transaction
from tracker.services import database as locks
from tracker.services.database import is_interruption
from tracker.services.database import outage
try:
    with transaction.atomic():
        locks.take(locks.Lock.CURVES)
        print("holds it", flush=True)
        sys.stdin.read()
        locks.take(locks.Lock.FILING)
except DatabaseError as error:
    assert is_interruption(error)
    print("lost it:", outage(error), flush=True)
"""


def start(url: str) -> subprocess.Popen[str]:
    """Start a process that takes a lock and holds it until its input ends."""
    clean = clean_environment()
    env = {**clean, "DATABASE_URL": url, "PERFWORK_PERIOD": str(PERIOD)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True)


@pytest.mark.slow
@pytest.mark.long
def test_its_locks_are_free_again_and_it_notices(postgres: str) -> None:
    vanished = start(postgres)
    try:
        assert vanished.stdout
        assert vanished.stdout.readline() == "holds it\n"
        vanished.send_signal(signal.SIGSTOP)  # says nothing more, and its connection stays: as if cut off
        began = time.monotonic()
        other = start(postgres)
        try:
            said = other.communicate("", timeout=20)[0]
        except subprocess.TimeoutExpired:
            pytest.fail("the lock was not freed")
        finally:
            other.kill()
        waited = time.monotonic() - began
        vanished.send_signal(signal.SIGCONT)
        late = vanished.communicate("", timeout=20)[0]
    finally:
        vanished.kill()
        vanished.wait()
    assert said == "holds it\n"
    assert waited > 0.8 * PERIOD, "the lock was free before, so this proves nothing"
    assert late == "lost it: the database can't be reached\n"
