"""A stranger posts as the robot: nothing that exists changes, and nobody gains a right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from bot.archives import filing
from bot.archives.batch import replay_all
from bot.mail.addresses import Address
from bot.mail.authentication import respaced
from bot.mail.bounces import MOST_BYTES, read_bounce
from bot.mail.message import parse
from bot.mail.settings import BotSettings, TrustAnchors
from bot.notifications import report as composer
from bot.notifications.report import compose_due, refresh_unsent
from bot.outbox import sender
from bot.outbox.transports import SendOutcome, SendStatus
from tests.bot.mail.test_authentication import DKIM, RECORD, signed
from tests.bot.robot_reports.test_report import INVENTED
from tests.conftest import ROOT
from tests.support.outbox import act, claim, reloaded, states_of
from tests.support.world import DANA, LEE, World, message_id, state
from tests.support.world import DIFF as PATCH
from tracker.models import (
    Commit,
    Correspondent,
    Decision,
    Event,
    Finding,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    Report,
    Suggestion,
)
from tracker.services import mail_transitions
from tracker.services.accounts import permit_of
from tracker.services.report_actions import decide

# --- Forged copies of our mail, hostile bounces, and concurrent changes to the same mail ---

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


# --- Mail forged in the author's name has no automatic effect; the author's own signed mail has ---

TEXTS = ["#lkp invalid", "I've dropped this patch.", "I'll send a fix tomorrow.", "It is the lock.", "#lkp fix: mm: x"]


@pytest.fixture
def forged_mail_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    return World(
        tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=replace(DKIM, signs=lambda domain: True))
    )


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("forged", ["not signed", "signed by another", "changed since"])
def test_a_forged_mail_changes_nothing_by_itself(forged_mail_world: World, text: str, forged: str) -> None:
    report = forged_mail_world.report()
    raw = forged_mail_world.mail(DANA, text, to=message_id(report))
    if forged == "signed by another":
        raw = signed(raw, domain=b"evil.example")
    elif forged == "changed since":
        raw = signed(forged_mail_world.mail(DANA, "Fine.", to=message_id(report))).replace(b"Fine.", text.encode())
    forged_mail_world.inbox.add(raw)
    before = state(report)
    forged_mail_world.read()
    assert state(report) == before == "no_response"
    assert list(report.events.values_list("kind", flat=True)) == ["reported"]
    assert Suggestion.objects.filter(report=report).exists()  # an operator sees it


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "expected"),
    [("#lkp invalid", "invalid"), ("I've dropped this patch.", "dropped"), ("I'll send a fix tomorrow.", "working")],
)
def test_her_own_signed_mail_acts(forged_mail_world: World, text: str, expected: str) -> None:
    report = forged_mail_world.report()
    forged_mail_world.inbox.add(signed(forged_mail_world.mail(DANA, text, to=message_id(report))))
    forged_mail_world.read()
    assert state(report) == expected
    mail = Message.objects.get(author_email=DANA.email)
    assert (mail.trust, mail.trust_by) == ("pass", f"dkim {DANA.email.partition('@')[2]}")


@pytest.mark.django_db
def test_a_stranger_under_her_name_closes_nothing_though_he_is_proven(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    mallory = Address(DANA.name, "mallory@evil.example")
    key = replace(forged_mail_world.settings.trust_anchors, key=lambda name: RECORD)
    forged_mail_world.settings = replace(forged_mail_world.settings, trust_anchors=key)
    forged_mail_world.inbox.add(
        signed(forged_mail_world.mail(mallory, "I've dropped this patch.", to=message_id(report)), b"evil.example")
    )
    forged_mail_world.read()
    assert Message.objects.get(author_email=mallory.email).trust == "pass"
    assert state(report) == "responded"
    assert Suggestion.objects.get(report=report).kind == "dropped"


@pytest.mark.django_db
def test_the_answers_to_a_strangers_mail_go_with_the_proven_one_that_takes_its_id(forged_mail_world: World) -> None:
    world = forged_mail_world
    report, other = world.report(), world.report("mm/vmscan: walk hot folios first")
    mallory = Address("Mal Stranger", "mal@evil.example")
    world.post(mallory, "Nice work.", to=message_id(other), message_id="same@dev.example")
    world.post(LEE, "I agree with that.", to="same@dev.example", message_id="answer@dev.example")
    world.read()
    assert set(other.messages.values_list("message_id", flat=True)) > {"same@dev.example", "answer@dev.example"}
    raw = world.mail(DANA, "I've dropped this patch.", to=message_id(report), message_id="same@dev.example")
    file = world.directory / "proven.eml"
    file.write_bytes(signed(raw))
    world.read(file)
    assert state(report) == "dropped"
    assert set(report.messages.values_list("message_id", flat=True)) > {"same@dev.example", "answer@dev.example"}
    assert other.messages.count() == 1
    assert state(other) == "no_response"


@pytest.mark.django_db
def test_her_mail_sent_again_into_another_thread_proves_nothing(forged_mail_world: World) -> None:
    one, other = forged_mail_world.report(), forged_mail_world.report("mm: another")
    raw = signed(forged_mail_world.mail(DANA, "I've dropped this patch.", to=message_id(one)))
    forged_mail_world.inbox.add(raw)
    forged_mail_world.inbox.add(
        b"Message-ID: <again@evil.example>\nIn-Reply-To: <" + message_id(other).encode() + b">\n" + raw
    )
    forged_mail_world.read()
    assert (state(one), state(other)) == ("dropped", "responded")


@pytest.mark.django_db
def test_who_proves_his_own_address_takes_nobody_elses_mail_away(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    forged_mail_world.settings = replace(forged_mail_world.settings, trust_policy="open")
    forged_mail_world.post(DANA, "I will send a fix tomorrow.", to=message_id(report))
    forged_mail_world.read()
    hers = Message.objects.get(author_email=DANA.email)
    mallory = Address("Mal", "mal@evil.example")
    anchors = replace(forged_mail_world.settings.trust_anchors, key=lambda name: RECORD)
    forged_mail_world.settings = replace(forged_mail_world.settings, trust_anchors=anchors)
    raw = forged_mail_world.mail(mallory, "Never mind.", to=message_id(report))
    own = next(line for line in raw.splitlines() if line.lower().startswith(b"message-id:"))
    forged_mail_world.inbox.add(signed(raw.replace(own, f"Message-ID: <{hers.message_id}>".encode()), b"evil.example"))
    forged_mail_world.read()
    assert Message.objects.get(message_id=hers.message_id).author_email == DANA.email
    assert state(report) == "working"


@pytest.mark.django_db
def test_what_was_turned_down_stays_so_when_the_proof_comes_later(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    raw = signed(forged_mail_world.mail(DANA, "I've dropped this patch.", to=message_id(report)))
    known = forged_mail_world.settings
    forged_mail_world.settings = replace(known, trust_anchors=TrustAnchors())
    forged_mail_world.inbox.add(raw)
    forged_mail_world.read()
    decide(Suggestion.objects.get(), Decision.REJECTED, "mira", forged_mail_world.now)
    replay_all(known, forged_mail_world.now)
    assert state(report) == "responded"


@pytest.mark.django_db
def test_who_wrote_it_is_shown(forged_mail_world: World, client: object) -> None:
    report = forged_mail_world.report()
    forged_mail_world.inbox.add(signed(forged_mail_world.mail(DANA, "It is the lock.", to=message_id(report))))
    forged_mail_world.read()
    culprit = Report.objects.get(pk=report.pk).culprit
    page = client.get(f"/report/{culprit.sha}/").content.decode()  # type: ignore[attr-defined]
    assert "verified by dkim dev.example" in page
    as_json = client.get(f"/report/{culprit.sha}.json").json()  # type: ignore[attr-defined]
    answer = next(event for event in as_json["events"] if event["kind"] == "responded")
    assert answer["trust"] == "pass"
    listed = client.get(f"/api/v1/events?report={culprit.sha}").json()  # type: ignore[attr-defined]
    assert {event["kind"]: event["trust"] for event in listed}["responded"] == "pass"


@pytest.mark.django_db
def test_a_notice_that_answers_a_fix_counts_as_much_when_it_is_proven(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    text = (
        f"It was slow.\n\nCloses: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {DANA}\n---\n{PATCH}"
    )
    fix = forged_mail_world.mail(DANA, text, subject="[PATCH] mm: mend it")
    forged_mail_world.inbox.add(signed(fix))
    forged_mail_world.read()
    fix_id = Message.objects.get(author_email=DANA.email).message_id
    bot = Address("", "patchwork-bot+linux-mm@kernel.org")
    notice = "Hello:\n\nThis patch was applied to linux-mm/linux.git (main)\nby Lee <lee@dev.example>:\n\n"
    notice += "On Mon you wrote:\n> x\n\n"
    notice += "Here is the summary with links:\n  - mm: mend it\n    https://git.kernel.org/linux-mm/c/0123456789ab\n"
    anchors = replace(forged_mail_world.settings.trust_anchors, key=lambda name: RECORD)
    forged_mail_world.settings = replace(forged_mail_world.settings, trust_anchors=anchors)
    forged_mail_world.inbox.add(
        signed(forged_mail_world.mail(bot, notice, to=fix_id, subject="Re: [PATCH] mm: mend it"), b"kernel.org")
    )
    forged_mail_world.read()
    assert state(report) == "fix_queued"


@pytest.mark.django_db
def test_an_unproven_report_rewrites_no_culprit(forged_mail_world: World) -> None:
    forged_mail_world.report("mm: a", "3b1f0c9d2e" + "0" * 30)
    Commit.objects.filter(sha="3b1f0c9d2e" + "0" * 30).update(sha="3b1f0c9d2e", title="")
    body = f'kernel test robot noticed a -5.0% regression of a.b on:\n\ncommit: 3b1f0c9d2e{"f" * 30} ("evil: title")\n'
    robot = Address("kernel test robot", "oliver.sang@intel.com")
    forged_mail_world.settings = replace(forged_mail_world.settings, robots=frozenset({robot.email}))
    forged_mail_world.post(robot, body, subject="[evil:b] [evil] 3b1f0c9d2e: a.b -5.0% regression")
    forged_mail_world.read()
    assert list(Commit.objects.filter(sha__startswith="3b1f").values_list("sha", "title")) == [("3b1f0c9d2e", "")]


@pytest.mark.django_db
def test_a_mail_without_a_date_was_written_when_it_came_in_however_often_it_is_read(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    forged_mail_world.settings = replace(forged_mail_world.settings, trust_policy="open")
    raw = forged_mail_world.mail(DANA, "I will send a fix tomorrow.", to=message_id(report))
    forged_mail_world.inbox.add(
        b"".join(line for line in raw.splitlines(True) if not line.lower().startswith(b"date:"))
    )
    forged_mail_world.read()
    before = list(Event.objects.values_list("kind", "occurred_at"))
    replay_all(forged_mail_world.settings, forged_mail_world.now + timedelta(days=90))
    assert list(Event.objects.values_list("kind", "occurred_at")) == before


# --- A stranger posts as the robot: nothing that exists changes, and nobody gains a right ---

MALLORY = Address("Mallory", "mallory@evil.example")
ROBOT = "robot@lab.example"
SIGNED = [b"from", b"to", b"cc", b"date", b"subject", b"message-id", b"in-reply-to", b"references", b"content-type"]
DIFF = "---\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -1,2 +1,2 @@\n-a\n+b\n"
SIGNED += [b"content-transfer-encoding", b"mime-version"]


@pytest.fixture(params=["verified", "maintainers"])
def forged_reports_world(request: pytest.FixtureRequest, tmp_path: Path, bot_settings: BotSettings) -> World:
    anchors = replace(DKIM, key=lambda name: RECORD, signs=lambda domain: domain == "lab.example")
    policy = replace(bot_settings, trust_policy=request.param, trust_anchors=anchors, robots=frozenset({ROBOT}))
    return World(tmp_path, policy)


def report_mail(world: World, to: str, name: str) -> bytes:
    """A robot's report about the culprit of the invented one, sent by the robot's address."""
    text = INVENTED.replace("From: kernel test robot <lkp@intel.com>", f"From: robot <{ROBOT}>")
    head, _, body = text.partition("\n\n")
    head = re.sub(r"(?m)^(?:To|Cc|Message-ID): .*\n", "", head + "\n")
    date = "Wed, 11 Mar 2026 04:12:00 +0000"
    return f"To: {to}\nMessage-ID: <{name}@lab.example>\nDate: {date}\n{head}\n{body}".encode()


def real_report(world: World, signed_headers: list[bytes] = SIGNED) -> bytes:
    """The robot's own report, to the author alone."""
    raw = report_mail(world, "Dana <dana@dev.example>", "real")
    return signed(raw, b"lab.example", include_headers=signed_headers)


def read(world: World, raw: bytes, name: str) -> None:
    file = world.directory / f"{name}.eml"
    file.write_bytes(raw)
    world.read(file)


@pytest.mark.django_db
def test_a_strangers_report_adds_nobody_to_a_report(forged_reports_world: World) -> None:
    read(
        forged_reports_world,
        real_report(forged_reports_world),
        "real",
    )
    report = Report.objects.get()
    before = (report.authors, report.recipients, report.state, report.findings.count(), report.held)
    assert before[0] == ["dana@dev.example"]
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    command = forged_reports_world.mail(MALLORY, "#lkp invalid", to="forged@lab.example")
    read(forged_reports_world, signed(command, b"evil.example", include_headers=SIGNED), "command")
    report = Report.objects.get()
    assert (report.authors, report.recipients, report.state, report.findings.count(), report.held) == before
    assert Message.objects.get(author_email=MALLORY.email).role == "third_party"
    assert permit_of(User.objects.create(username="m", email=MALLORY.email))(report) is None
    assert Suggestion.objects.get(kind="reported").message_id == "forged@lab.example"


@pytest.mark.django_db
def test_a_strangers_report_of_a_new_culprit_is_held_and_gives_no_rights(forged_reports_world: World) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    report = Report.objects.get()
    assert (report.held, report.people_verified) == ("not verified: nothing proves that the robot sent it", False)
    command = forged_reports_world.mail(MALLORY, "#lkp invalid", to="forged@lab.example")
    read(forged_reports_world, signed(command, b"evil.example", include_headers=SIGNED), "command")
    assert state(report) == "no_response" or state(report) == "responded"
    assert permit_of(User.objects.create(username="m", email=MALLORY.email))(report) is None
    # The robot's own report comes: its people are those of the report, and no others.
    read(
        forged_reports_world,
        real_report(forged_reports_world),
        "real",
    )
    report = Report.objects.get()
    assert (report.held, report.authors, report.people_verified) == ("", ["dana@dev.example"], True)
    assert report.state != "invalid"


@pytest.mark.django_db
def test_a_strangers_report_adds_nothing_to_one_without_any_mail(forged_reports_world: World) -> None:
    """As those are that came from a fixture."""
    read(forged_reports_world, real_report(forged_reports_world), "real")
    Message.objects.all().delete()
    before = Report.objects.get()
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "forged"), "forged")
    after = Report.objects.get()
    same = ("authors", "recipients", "people_verified", "held", "state")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]


@pytest.mark.django_db
def test_a_strangers_report_under_the_same_message_id_keeps_the_robots_out_of_nothing(
    forged_reports_world: World,
) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, str(MALLORY), "real"), "forged")
    assert not Report.objects.get().people_verified
    read(forged_reports_world, real_report(forged_reports_world), "real")
    report = Report.objects.get()
    assert (report.held, report.authors, report.people_verified) == ("", ["dana@dev.example"], True)
    assert Message.objects.get().trust == "pass"
    assert list(report.events.values_list("kind", flat=True).order_by("kind")) == ["landed", "reported"]
    assert not Suggestion.objects.exists()
    assert report.findings.count() == 2


@pytest.mark.django_db
def test_who_accepts_a_held_report_vouches_for_its_people(forged_reports_world: World) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, "Dana <dana@dev.example>", "old"), "old")
    report = Report.objects.get()
    dana = User.objects.create(username="d", email="dana@dev.example")
    assert permit_of(dana)(report) is None
    assert decide(Suggestion.objects.get(kind="reported"), Decision.ACCEPTED, "mira", forged_reports_world.now)
    assert permit_of(dana)(Report.objects.get()) == "author"


@pytest.mark.django_db
def test_a_recipient_that_the_robot_did_not_sign_is_none(forged_reports_world: World) -> None:
    raw = real_report(forged_reports_world, [each for each in SIGNED if each != b"cc"])
    read(forged_reports_world, b"Cc: Mallory <mallory@evil.example>\n" + raw, "real")
    assert Report.objects.get().recipients == ["dana@dev.example"]


@pytest.mark.django_db
@pytest.mark.parametrize("orders", [2, pytest.param(24, marks=pytest.mark.long)])
def test_whichever_mail_comes_first_the_rows_are_the_same(forged_reports_world: World, orders: int) -> None:
    """A stranger's report under another name and tree, the robot's own two, and what is answered to them."""
    forged = report_mail(forged_reports_world, "Dana <dana@dev.example>, Mallory <mallory@evil.example>", "forged")
    forged = forged.replace(b"[linus:master] [mm/vmscan]", b"[evil:branch] [evil]").replace(b"walk cold", b"steal all")
    later = (
        report_mail(forged_reports_world, "Dana <dana@dev.example>", "later")
        .replace(b"11 Mar", b"12 Mar")
        .replace(b"12.4%", b"12.5%")
    )
    answer = forged_reports_world.mail(DANA, "I can reproduce it. The lock is to blame.", to="real@lab.example")
    mails = {
        "forged": forged,
        "real": real_report(forged_reports_world),
        "later": signed(later, b"lab.example", include_headers=SIGNED),
        "dana": signed(answer, b"dev.example", include_headers=SIGNED),
        "mallory": forged_reports_world.mail(MALLORY, "I will send a fix tomorrow.", to="forged@lab.example"),
        "revert": forged_reports_world.mail(
            MALLORY, f"It is slow since then.\n{DIFF}", subject='[PATCH] Revert "mm/vmscan: steal all folios first"'
        ),
    }
    seen = {
        order: _rows_after(forged_reports_world, mails, order)
        for order in Random(1).sample(list(permutations(mails)), orders)
    }
    first = next(iter(seen.values()))
    assert first["report"] == ["[linus:master] [mm/vmscan] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression"]
    for order, rows in seen.items():
        for name, of_table in rows.items():
            assert of_table == first[name], f"{name}, read in the order {', '.join(order)}"


@pytest.mark.django_db
def test_many_forged_reports_of_before_do_not_keep_the_real_one_out(
    forged_reports_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filing, "MOST_REPORTS", 3)
    read(forged_reports_world, real_report(forged_reports_world), "real")
    columns = ("title", "subsystem", "verdict", "held", "findings__metric__name")
    before = sorted(Report.objects.values_list(*columns))
    for number in range(4):
        forged = report_mail(forged_reports_world, str(MALLORY), f"forged{number}").replace(b"11 Mar", b"01 Mar")
        read(
            forged_reports_world,
            forged.replace(b"[mm/vmscan]", b"[evil]").replace(b"regression", b"improvement"),
            f"forged{number}",
        )
    assert sorted(Report.objects.values_list(*columns)) == before


@pytest.mark.django_db
@pytest.mark.parametrize("accepted", [False, True])
def test_a_replay_keeps_what_an_unproven_report_measured(forged_reports_world: World, accepted: bool) -> None:
    read(forged_reports_world, report_mail(forged_reports_world, "Dana <dana@dev.example>", "old"), "old")
    if accepted:
        assert decide(Suggestion.objects.get(kind="reported"), Decision.ACCEPTED, "mira", forged_reports_world.now)
    columns = ("metric__name", "change_pct", "headline", "report__held", "report__title")
    before = list(Finding.objects.order_by("pk").values_list(*columns))
    replay_all(forged_reports_world.settings, forged_reports_world.now)
    assert list(Finding.objects.order_by("pk").values_list(*columns)) == before
    assert len(before) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(permutations(("one", "two", "later"))))
def test_of_unproven_reports_the_earliest_counts(forged_reports_world: World, order: tuple[str, ...]) -> None:
    mails = {
        "one": report_mail(forged_reports_world, "Dana <dana@dev.example>", "one"),
        "two": report_mail(forged_reports_world, str(MALLORY), "two")
        .replace(b"[mm/vmscan]", b"[evil]")
        .replace(b"11 Mar", b"12 Mar"),
        "later": report_mail(forged_reports_world, "Lee <lee@dev.example>", "later").replace(b"11 Mar", b"13 Mar"),
    }
    for name in order:
        read(forged_reports_world, mails[name], "".join(order) + name)
    report = Report.objects.get()
    assert (report.subsystem, report.authors, report.people_verified) == ("mm/vmscan", ["dana@dev.example"], False)
    assert report.held == "not verified: nothing proves that the robot sent it"


def _rows_after(world: World, mails: dict[str, bytes], order: tuple[str, ...]) -> dict[str, list[object]]:
    """Read mails in this order into an empty database, and return its rows, but for keys and clocks."""
    with transaction.atomic():
        for name in (*order, *order):  # what waits in an mbox for what it names comes once more
            read(world, mails[name], "-".join(order) + name)
        report = Report.objects.all()
        columns = ("message_id", "kind", "role", "key", "quote")
        rows: dict[str, list[object]] = {
            "report": list(report.values_list("title", flat=True)),
            "columns": list(
                report.values_list(
                    "verdict",
                    "subsystem",
                    "tree__name",
                    "branch",
                    "authors",
                    "recipients",
                    "people_verified",
                    "held",
                    "state",
                    "status",
                    "culprit__title",
                    "culprit__author_email",
                )
            ),
            "events": list(Event.objects.order_by("key").values_list(*columns)),
            "suggestions": list(Suggestion.objects.order_by("key").values_list(*columns)),
            "mails": list(
                Message.objects.order_by("message_id").values_list("message_id", "role", "relation", "trust")
            ),
            "findings": list(Finding.objects.order_by("pk").values_list("metric__name", "change_pct", "headline")),
        }
        transaction.set_rollback(True)
    return rows


# --- A proven mail that somebody else sends again: into another thread, under another type, more than once ---
# What a signature does not cover is changed; what it covers is as the author signed it.

# As kernel.org signs: neither the Message-ID nor what says how the body is read.
SIGNED_HEADERS = [b"from", b"to", b"cc", b"date", b"subject", b"in-reply-to", b"references"]


@pytest.fixture
def replayed_mail_world(tmp_path: Path, bot_settings: BotSettings) -> World:
    anchors = replace(DKIM, signs=lambda domain: True)
    return World(tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=anchors))


def kinds(report: Report) -> list[str]:
    return list(report.events.exclude(kind="reported").order_by("pk").values_list("kind", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["Delivered-To", "X-Original-To", "Envelope-To", "Bcc", "Resent-To", "Resent-Cc"])
def test_headers_of_the_delivery_aim_no_proven_command(replayed_mail_world: World, header: str) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(one)), include_headers=SIGNED_HEADERS)
    ours = f"{header}: perfbot+{other.tag}@bot.example.org\n".encode()
    replayed_mail_world.inbox.add(ours + raw)
    replayed_mail_world.read()
    assert (state(one), state(other)) == ("invalid", "no_response")
    assert Suggestion.objects.filter(report=other).exists()


@pytest.mark.django_db
def test_an_unsigned_reference_aims_no_proven_command(replayed_mail_world: World) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = signed(
        replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(one)),
        include_headers=[b"from", b"date", b"subject"],
    )
    replayed_mail_world.inbox.add(raw.replace(message_id(one).encode(), message_id(other).encode()))
    replayed_mail_world.read()
    # Like any mail in her name that nobody signed, it can only say that she answered.
    assert (state(one), state(other)) == ("no_response", "responded")
    assert list(Suggestion.objects.values_list("report", "kind")) == [(other.pk, "invalid")]


@pytest.mark.django_db
def test_a_line_of_another_reading_aims_no_proven_command(replayed_mail_world: World) -> None:
    """The Closes: line is one of hers only if the body is read as the sender of the copy wants it."""
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    mail = replayed_mail_world.mail(DANA, "@", to="nobody@x")
    head, _, _ = mail.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    body = f"#lkp invalid\n\n> x =0ACloses: https://lore.kernel.org/r/{message_id(other)}\n"
    raw = signed(head + b"\n\n" + body.encode(), include_headers=SIGNED_HEADERS)
    replayed_mail_world.inbox.add(b"Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n" + raw)
    replayed_mail_world.read()
    assert "invalid" not in (state(one), state(other))


@pytest.mark.django_db
def test_a_signed_thread_is_the_only_one(replayed_mail_world: World) -> None:
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    raw = replayed_mail_world.mail(DANA, "I'll send a fix tomorrow.", to=message_id(one))
    raw = signed(raw, include_headers=SIGNED_HEADERS)
    link = f"See https://lore.kernel.org/r/{message_id(other)}\n".encode()
    replayed_mail_world.inbox.add(f"X-Original-To: perfbot+{other.tag}@bot.example.org\n".encode() + raw)
    replayed_mail_world.inbox.add(raw.replace(b"\n\n", b"\n\n" + link, 1))
    replayed_mail_world.read()
    assert (state(one), state(other)) == ("working", "no_response")


@pytest.mark.django_db
def test_a_mail_in_two_threads_is_aimed_at_neither(replayed_mail_world: World) -> None:
    """Under a Message-ID that she answered, somebody may have posted elsewhere first."""
    one, other = replayed_mail_world.report(), replayed_mail_world.report("mm: another")
    theirs = replayed_mail_world.mail(DANA, "hello", to=message_id(other))
    name = theirs.split(b"Message-ID: <")[1].split(b">")[0].decode()
    replayed_mail_world.inbox.add(theirs)
    raw = replayed_mail_world.mail(DANA, "#lkp invalid", to=name, References=f"<{message_id(one)}> <{name}>")
    replayed_mail_world.inbox.add(signed(raw, include_headers=SIGNED_HEADERS))
    replayed_mail_world.read()
    assert "invalid" not in (state(one), state(other))


ATTACHED = """\
--x
Content-Type: text/plain

No.
--x
Content-Type: message/rfc822

From: Mallory <mallory@evil.example>
Subject: a mail that she passes on

--y

#lkp invalid
--y--
--x--
"""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "header"),
    [
        # She quoted it in HTML or in an encoding; her text is signed, how to read it is not.
        ("<blockquote><pre>\n#lkp invalid\n</pre></blockquote><p>No, it is valid.</p>", b"text/plain"),
        ("> +AAo-#lkp invalid\n\nNo.\n", b"text/plain; charset=utf-7"),
        ("What about this?\n #lkp invalid\nNo.\n", b"text/plain; format=flowed"),
        (ATTACHED, b"multipart/mixed; boundary=y"),
        ("> =0A#lkp invalid\n\nNo.\n", b"text/plain\nContent-Transfer-Encoding: quoted-printable"),
    ],
)
def test_the_same_bytes_under_another_type_command_nothing(
    replayed_mail_world: World, body: str, header: bytes
) -> None:
    report = replayed_mail_world.report()
    mail = replayed_mail_world.mail(DANA, "@", to=message_id(report))
    head, _, _ = mail.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    raw = signed(head + b"\n\n" + body.encode(), include_headers=SIGNED_HEADERS)
    replayed_mail_world.inbox.add(b"MIME-Version: 1.0\nContent-Type: " + header + b"\n" + raw)
    replayed_mail_world.read()
    assert state(report) != "invalid"
    assert "invalid" not in kinds(report)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", "invalid"),
        (b"Content-Type: text/plain; charset=us-ascii\n", "invalid"),
        (b"Content-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding: 8bit\n", "invalid"),
    ],
)
def test_a_mail_that_all_read_alike_acts_whatever_its_type_says(
    replayed_mail_world: World, header: bytes, expected: str
) -> None:
    report = replayed_mail_world.report()
    raw = replayed_mail_world.mail(DANA, "It was my test machine.\n\n#lkp invalid\n", to=message_id(report))
    head, _, body = raw.partition(b"\n\n")
    head = b"\n".join(line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-")))
    replayed_mail_world.inbox.add(header + signed(head + b"\n\n" + body, include_headers=SIGNED_HEADERS))
    replayed_mail_world.read()
    assert state(report) == expected


@pytest.mark.django_db
def test_a_command_in_html_is_answered_and_not_obeyed(replayed_mail_world: World) -> None:
    report = replayed_mail_world.report()
    raw = replayed_mail_world.mail(DANA, "<p>#lkp invalid</p>", to=message_id(report)).replace(
        b"text/plain", b"text/html"
    )
    replayed_mail_world.inbox.add(
        signed(raw, include_headers=[*SIGNED_HEADERS, b"content-type", b"content-transfer-encoding", b"mime-version"])
    )
    replayed_mail_world.read()
    assert state(report) != "invalid"
    answer = OutgoingMail.objects.get(report=report, purpose__startswith="answer")
    assert b"commands are read from plain text only" in bytes(answer.raw)


@pytest.mark.django_db
@pytest.mark.parametrize("first", ["hers", "copy"])
def test_a_copy_under_another_name_acts_once(replayed_mail_world: World, first: str) -> None:
    report = replayed_mail_world.report()
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(report)), include_headers=SIGNED_HEADERS)
    name = raw.split(b"Message-ID: <")[1].split(b">")[0]
    copy = raw.replace(name, b"copy@evil.example")
    for each in (raw, copy) if first == "hers" else (copy, raw):
        replayed_mail_world.inbox.add(each)
        replayed_mail_world.read()
    assert kinds(report).count("invalid") == 1
    assert Message.objects.filter(author_email=DANA.email).count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize("first", ["hers", "damaged"])
def test_a_damaged_copy_that_comes_first_takes_nothing_from_hers(replayed_mail_world: World, first: str) -> None:
    report = replayed_mail_world.report()
    raw = signed(replayed_mail_world.mail(DANA, "#lkp invalid", to=message_id(report)), include_headers=SIGNED_HEADERS)
    damaged = raw.replace(b"#lkp invalid", b"#lkp note: x")
    for number, each in enumerate((raw, damaged) if first == "hers" else (damaged, raw)):
        file = replayed_mail_world.directory / f"list-{number}.eml"  # two archives
        file.write_bytes(each)
        replayed_mail_world.read(file)
    assert state(report) == "invalid"
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert not Event.objects.filter(kind="noted").exists()


# --- Blanks that a relaxed signature doesn't cover ---

RELAXED = (b"relaxed", b"relaxed")
EXAMPLE = "If it were noise I would write\n\n{}\n\nbut please wait until I have looked at it.\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "written", "as_sent_on", "kind"),
    [
        (EXAMPLE.format(" ```\n#lkp invalid\n ```"), b"\n ```", b"\n     ```", "invalid"),
        (EXAMPLE.format("     #lkp invalid"), b"\n     #lkp", b"\n #lkp", "invalid"),  # in format=flowed
        ("Lee told me:\n\n\tI've dropped this patch.\n\nI have not checked it yet.\n", b"\n\t", b"\n ", "dropped"),
    ],
)
def test_other_blanks_than_she_wrote_close_nothing(
    forged_mail_world: World, text: str, written: bytes, as_sent_on: bytes, kind: str
) -> None:
    world = forged_mail_world
    report = world.report()
    raw = world.mail(DANA, text, to=message_id(report))
    raw = raw.replace(b'charset="utf-8"', b'charset="utf-8"; format=flowed') if b"     #lkp" in raw else raw
    raw = signed(raw, canonicalize=RELAXED)
    assert written in raw
    read(world, raw.replace(written, as_sent_on), "sent-on")
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert state(report) not in ("invalid", "dropped")
    assert [suggestion.kind for suggestion in Suggestion.objects.all()] == [kind]


@pytest.mark.django_db
def test_a_command_of_hers_acts_whatever_blanks_are_around(forged_mail_world: World) -> None:
    world = forged_mail_world
    report = world.report()
    text = "A table of mine:\n\n    1 2\n\t3 4\n\n#lkp invalid\n\nThanks,\n-- \nDana\n"
    read(world, signed(world.mail(DANA, text, to=message_id(report)), canonicalize=RELAXED), "hers")
    assert state(report) == "invalid"


@pytest.mark.django_db
def test_her_copy_of_our_mail_does_not_make_it_sent_though_she_is_proven(forged_mail_world: World) -> None:
    mail = composed(forged_mail_world)
    copy = re.sub(rb"(?m)^From: .*$", f"From: {DANA.email}".encode(), bytes(mail.raw).replace(b"\r\n", b"\n"), count=1)
    read(forged_mail_world, signed(copy), "copy")
    assert reloaded(mail).state == S.HELD


@pytest.mark.django_db
def test_words_below_a_patch_are_tried_with_other_blanks_too(forged_mail_world: World) -> None:
    world = forged_mail_world
    report = world.report()
    text = f"Look:\n\n{PATCH}\n\tI've dropped this patch.\n\nSays Lee.\n"
    raw = signed(world.mail(DANA, text, to=message_id(report)), canonicalize=RELAXED)
    read(world, raw.replace(b"\n\tI've", b"\n I've"), "sent-on")
    assert Message.objects.get(author_email=DANA.email).trust == "pass"
    assert state(report) != "dropped"


def test_a_mail_padded_with_blanks_says_nothing_surely() -> None:
    raw = b"From: Dana <dana@dev.example>\nMessage-ID: <1@x>\n\n#lkp invalid\n" + b" " * 600_000 + b"\n"
    assert [mail.text for mail in respaced(raw, parse(raw))] == [""]
