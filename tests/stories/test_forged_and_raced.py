"""Forged copies of our mail, hostile bounces, and concurrent changes to the same mail."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from bot.mail.bounces import MOST_BYTES, read_bounce
from bot.notifications import report as composer
from bot.notifications.report import compose_due, refresh_unsent
from bot.outbox import sender
from bot.outbox.transports import SendOutcome, SendStatus
from tests.conftest import ROOT
from tests.outbox import act, claim, reloaded, states_of
from tests.world import LEE, World, message_id
from tracker.models import Correspondent, Mailing, OutgoingMail, OutgoingState, Report
from tracker.services import mail_transitions

S = OutgoingState


def composed(world: World, *, approve_first: bool = False) -> OutgoingMail:
    world.ingest(world.result("b" * 40, "mm: b"))
    compose_due(world.settings, world.now, approve_first=approve_first)
    return OutgoingMail.objects.get()


def test_an_unproven_copy_of_mail_that_waits_makes_a_person_look(world: World) -> None:
    """A backup was restored, or somebody posted our mail before us: nobody can tell, so nobody sends."""
    world.settings = replace(world.settings, trust_policy="verified")
    mail = composed(world)
    world.inbox.add(bytes(mail.raw))
    world.read()
    assert reloaded(mail).state == S.HELD
    assert "check before sending" in reloaded(mail).reason
    assert not Report.objects.get().reported_at
    refresh_unsent(world.settings, world.later(), approve_first=False)
    assert reloaded(mail).state == S.HELD  # no rule lets it go
    assert act(mail, "approve")


def test_a_forgery_that_is_read_first_does_not_keep_the_real_copy_out(world: World) -> None:
    mail = composed(world)
    (claimed,) = claim(world.now)
    mail_transitions.begin_data(claimed, world.now)
    mail_transitions.mark_in_doubt(claimed, world.now, "gone", "worker")
    raw = bytes(mail.raw).replace(b"\r\n", b"\n")
    (world.directory / "forged.eml").write_bytes(raw.replace(b"Perfwork noticed", b"Evil noticed"))
    world.read(world.directory / "forged.eml")
    assert reloaded(mail).state == S.IN_DOUBT
    world.inbox.add(raw)
    world.read()
    assert reloaded(mail).state == S.SENT


def test_a_huge_bounce_is_read_as_far_as_it_matters() -> None:
    head = b"From: MAILER-DAEMON@x.example\nTo: perfbot@bot.example.org\nSubject: failure notice\n\n"
    for junk in (b"To: " + b"a," * 500_000, b"<" * 500_000, b"Final-Recipient: rfc822; " + b"a" * 500_000):
        assert read_bounce(head + junk + b"\n<late@dev.example>:\nno such user\n").failed == {}
    assert MOST_BYTES < 100_000


def test_only_who_left_without_proof_comes_back_without(world: World) -> None:
    world.settings = replace(world.settings, trust_policy="verified")
    report = world.report()
    note = "<1@dev.example>, proven by DKIM of dev.example"
    Correspondent.objects.create(address=LEE.email, mailing=Mailing.OPTED_OUT, note=note, since=world.now)
    world.post(LEE, "subscribe", to=message_id(report))
    world.read()
    assert Correspondent.objects.get().mailing == Mailing.OPTED_OUT


def test_an_hour_without_a_server_uses_up_no_patience(world: World) -> None:
    mail = composed(world)
    for _ in range(60):
        (claimed,) = claim(timezone.now() + timedelta(days=3))
        sender.record(claimed, SendOutcome(SendStatus.NO_SERVER, "nobody there"), "worker")
    for _ in range(40):  # taken by a worker that had no time left for it
        (claimed,) = claim(timezone.now() + timedelta(days=3))
        mail_transitions.release([claimed], timezone.now(), "worker", "no time left")
    (claimed,) = claim(timezone.now() + timedelta(days=3))
    sender.record(claimed, SendOutcome(SendStatus.LATER, "451 later"), "worker")
    assert (reloaded(mail).state, reloaded(mail).tries, reloaded(mail).connection_attempts) == (S.APPROVED, 1, 60)


def test_a_report_is_told_though_its_mail_left_in_two_parts_at_once(world: World) -> None:
    mail = composed(world)
    (claimed,) = claim()
    sender.record(claimed, SendOutcome(SendStatus.SENT, "250", deferred={"dana@dev.example": "451 later"}), "worker")
    (claimed,) = claim(timezone.now() + timedelta(days=1))
    sender.record(claimed, SendOutcome(SendStatus.SENT, "250"), "worker")
    assert reloaded(mail).unrecorded
    mail_transitions.record_sent(timezone.now())
    assert Report.objects.get().reported_at


def test_a_worker_whose_lease_ran_out_forgets_nobody(world: World) -> None:
    mail = composed(world)
    (claimed,) = claim()
    mail_transitions.begin_data(claimed, timezone.now())
    mail_transitions.mark_in_doubt(
        claimed, timezone.now(), "its worker died while it left", "sweep"
    )  # as others must think
    sender.record(claimed, SendOutcome(SendStatus.SENT, "250", deferred={"dana@dev.example": "451 later"}), "worker")
    assert (reloaded(mail).state, reloaded(mail).settled) == (S.APPROVED, ["perf-reports@lists.example.org"])


def while_composing(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Something happens while a mail is composed again."""
    real = composer.compose

    def compose(*arguments: Any) -> Any:
        action()
        return real(*arguments)

    monkeypatch.setattr(composer, "compose", compose)


def test_what_a_person_holds_while_it_is_composed_again_stays_held(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = composed(world, approve_first=True)
    OutgoingMail.objects.update(stale=True)
    while_composing(monkeypatch, lambda: act(mail, "hold"))
    refresh_unsent(world.settings, world.later(), approve_first=False)
    assert reloaded(mail).state == S.HELD
    assert states_of(mail) == ["composed", "held"]


def test_a_mail_does_not_leave_while_it_is_looked_at_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mail = composed(world)
    OutgoingMail.objects.update(stale=True)
    seen: list[int] = []
    while_composing(monkeypatch, lambda: seen.append(len(claim(world.now))))
    refresh_unsent(world.settings, world.later(), approve_first=False)
    assert seen == [0]
    assert not reloaded(mail).stale
    assert claim(world.now)


def test_what_becomes_known_while_it_is_looked_at_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = composed(world)
    OutgoingMail.objects.update(stale=True)
    with monkeypatch.context() as first:
        while_composing(first, lambda: OutgoingMail.objects.update(stale=True, looked_at=None))
        refresh_unsent(world.settings, world.later(), approve_first=False)
    assert reloaded(mail).stale
    refresh_unsent(world.settings, world.later(), approve_first=False)
    assert not reloaded(mail).stale


def test_bytes_that_a_server_has_seen_stay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    mail = composed(world)
    OutgoingMail.objects.update(stale=True)

    def leaves() -> None:
        OutgoingMail.objects.filter(pk=mail.pk).update(attempts=1)

    while_composing(monkeypatch, leaves)
    later = world.later()
    refresh_unsent(world.settings, later, approve_first=False)
    assert bytes(reloaded(mail).raw) == bytes(mail.raw)


def test_words_that_no_database_takes_are_cut(world: World) -> None:
    mail = composed(world)
    assert act(mail, "hold", "why\0not")
    assert reloaded(mail).reason == "whynot"
    assert mail_transitions.stop_sending("dana", world.now, "a\0b")
    assert str(mail_transitions.stopped().reason) == "ab"  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_worker_passes_over_what_another_is_taking(postgres: str, tmp_path: Path) -> None:
    """On PostgreSQL: one worker is in the middle of a claim; another gets the next mails, at once, not none."""
    code = """
import django; django.setup()
import threading
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone
from datetime import timedelta
from bot.outbox import sender as due_mail
from tests.crash import mails
call_command("migrate", verbosity=0)
mails.make(6, timezone.now(), lines=1)
def claim(limit): return [m.pk for m in due_mail.claim_due(timezone.now(), timedelta(minutes=1), limit, "w")]
other = []
with transaction.atomic():
    mine = claim(2)
    def work():
        other.extend(claim(3)); connection.close()
    thread = threading.Thread(target=work); thread.start(); thread.join(20)
    assert not thread.is_alive(), "it waited"
print(len(mine), len(other), len(set(mine) & set(other)))
"""
    env = {**os.environ, "DATABASE_URL": postgres, "DJANGO_SETTINGS_MODULE": "tracker.settings"}
    env["PERFWORK_VAR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "3", "0"], done.stderr[-2000:]
