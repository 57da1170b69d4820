"""Mail forged in the author's name has no automatic effect; the author's own signed mail has."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.archives.batch import replay_all
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings, TrustAnchors
from tests.bot.mail.test_trust import DKIM, RECORD, signed
from tests.world import DANA, DIFF, World, message_id, state
from tracker.models import Commit, Decision, Event, Message, Report, Suggestion
from tracker.services.report_actions import decide

pytestmark = pytest.mark.django_db
TEXTS = ["#lkp invalid", "I've dropped this patch.", "I'll send a fix tomorrow.", "It is the lock.", "#lkp fix: mm: x"]


@pytest.fixture
def world(tmp_path: Path, bot_settings: BotSettings) -> World:
    return World(
        tmp_path, replace(bot_settings, trust_policy="verified", trust_anchors=replace(DKIM, signs=lambda domain: True))
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("forged", ["not signed", "signed by another", "changed since"])
def test_a_forged_mail_changes_nothing_by_itself(world: World, text: str, forged: str) -> None:
    report = world.report()
    raw = world.mail(DANA, text, to=message_id(report))
    if forged == "signed by another":
        raw = signed(raw, domain=b"evil.example")
    elif forged == "changed since":
        raw = signed(world.mail(DANA, "Fine.", to=message_id(report))).replace(b"Fine.", text.encode())
    world.inbox.add(raw)
    before = state(report)
    world.read()
    assert state(report) == before == "no_response"
    assert list(report.events.values_list("kind", flat=True)) == ["reported"]
    assert Suggestion.objects.filter(report=report).exists()  # an operator sees it


@pytest.mark.parametrize(
    ("text", "expected"),
    [("#lkp invalid", "invalid"), ("I've dropped this patch.", "dropped"), ("I'll send a fix tomorrow.", "working")],
)
def test_her_own_signed_mail_acts(world: World, text: str, expected: str) -> None:
    report = world.report()
    world.inbox.add(signed(world.mail(DANA, text, to=message_id(report))))
    world.read()
    assert state(report) == expected
    mail = Message.objects.get(author_email=DANA.email)
    assert (mail.trust, mail.trust_by) == ("pass", f"dkim {DANA.email.partition('@')[2]}")


def test_a_stranger_under_her_name_closes_nothing_though_he_is_proven(world: World) -> None:
    report = world.report()
    mallory = Address(DANA.name, "mallory@evil.example")
    key = replace(world.settings.trust_anchors, key=lambda name: RECORD)
    world.settings = replace(world.settings, trust_anchors=key)
    world.inbox.add(signed(world.mail(mallory, "I've dropped this patch.", to=message_id(report)), b"evil.example"))
    world.read()
    assert Message.objects.get(author_email=mallory.email).trust == "pass"
    assert state(report) == "responded"
    assert Suggestion.objects.get(report=report).kind == "dropped"


def test_her_mail_sent_again_into_another_thread_proves_nothing(world: World) -> None:
    one, other = world.report(), world.report("mm: another")
    raw = signed(world.mail(DANA, "I've dropped this patch.", to=message_id(one)))
    world.inbox.add(raw)
    world.inbox.add(b"Message-ID: <again@evil.example>\nIn-Reply-To: <" + message_id(other).encode() + b">\n" + raw)
    world.read()
    assert (state(one), state(other)) == ("dropped", "responded")


def test_who_proves_his_own_address_takes_nobody_elses_mail_away(world: World) -> None:
    report = world.report()
    world.settings = replace(world.settings, trust_policy="open")
    world.post(DANA, "I will send a fix tomorrow.", to=message_id(report))
    world.read()
    hers = Message.objects.get(author_email=DANA.email)
    mallory = Address("Mal", "mal@evil.example")
    anchors = replace(world.settings.trust_anchors, key=lambda name: RECORD)
    world.settings = replace(world.settings, trust_anchors=anchors)
    raw = world.mail(mallory, "Never mind.", to=message_id(report))
    own = next(line for line in raw.splitlines() if line.lower().startswith(b"message-id:"))
    world.inbox.add(signed(raw.replace(own, f"Message-ID: <{hers.message_id}>".encode()), b"evil.example"))
    world.read()
    assert Message.objects.get(message_id=hers.message_id).author_email == DANA.email
    assert state(report) == "working"


def test_what_was_turned_down_stays_so_when_the_proof_comes_later(world: World) -> None:
    report = world.report()
    raw = signed(world.mail(DANA, "I've dropped this patch.", to=message_id(report)))
    known = world.settings
    world.settings = replace(known, trust_anchors=TrustAnchors())
    world.inbox.add(raw)
    world.read()
    decide(Suggestion.objects.get(), Decision.REJECTED, "mira", world.now)
    replay_all(known, world.now)
    assert state(report) == "responded"


def test_who_wrote_it_is_shown(world: World, client: object) -> None:
    report = world.report()
    world.inbox.add(signed(world.mail(DANA, "It is the lock.", to=message_id(report))))
    world.read()
    culprit = Report.objects.get(pk=report.pk).culprit
    page = client.get(f"/report/{culprit.sha}/").content.decode()  # type: ignore[attr-defined]
    assert "verified by dkim dev.example" in page


def test_a_notice_that_answers_a_fix_counts_as_much_when_it_is_proven(world: World) -> None:
    report = world.report()
    text = f"It was slow.\n\nCloses: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {DANA}\n---\n{DIFF}"
    fix = world.mail(DANA, text, subject="[PATCH] mm: mend it")
    world.inbox.add(signed(fix))
    world.read()
    fix_id = Message.objects.get(author_email=DANA.email).message_id
    bot = Address("", "patchwork-bot+linux-mm@kernel.org")
    notice = "Hello:\n\nThis patch was applied to linux-mm/linux.git (main)\nby Lee <lee@dev.example>:\n\n"
    notice += "On Mon you wrote:\n> x\n\n"
    notice += "Here is the summary with links:\n  - mm: mend it\n    https://git.kernel.org/linux-mm/c/0123456789ab\n"
    anchors = replace(world.settings.trust_anchors, key=lambda name: RECORD)
    world.settings = replace(world.settings, trust_anchors=anchors)
    world.inbox.add(signed(world.mail(bot, notice, to=fix_id, subject="Re: [PATCH] mm: mend it"), b"kernel.org"))
    world.read()
    assert state(report) == "fix_queued"


def test_an_unproven_report_rewrites_no_culprit(world: World) -> None:
    world.report("mm: a", "3b1f0c9d2e" + "0" * 30)
    Commit.objects.filter(sha="3b1f0c9d2e" + "0" * 30).update(sha="3b1f0c9d2e", title="")
    body = f'kernel test robot noticed a -5.0% regression of a.b on:\n\ncommit: 3b1f0c9d2e{"f" * 30} ("evil: title")\n'
    robot = Address("kernel test robot", "oliver.sang@intel.com")
    world.settings = replace(world.settings, robots=frozenset({robot.email}))
    world.post(robot, body, subject="[evil:b] [evil] 3b1f0c9d2e: a.b -5.0% regression")
    world.read()
    assert list(Commit.objects.filter(sha__startswith="3b1f").values_list("sha", "title")) == [("3b1f0c9d2e", "")]


def test_a_mail_without_a_date_was_written_when_it_came_in_however_often_it_is_read(world: World) -> None:
    report = world.report()
    world.settings = replace(world.settings, trust_policy="open")
    raw = world.mail(DANA, "I will send a fix tomorrow.", to=message_id(report))
    world.inbox.add(b"".join(line for line in raw.splitlines(True) if not line.lower().startswith(b"date:")))
    world.read()
    before = list(Event.objects.values_list("kind", "occurred_at"))
    replay_all(world.settings, world.now + timedelta(days=90))
    assert list(Event.objects.values_list("kind", "occurred_at")) == before
