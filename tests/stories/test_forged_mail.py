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


@pytest.mark.django_db
def test_a_notice_that_answers_a_fix_counts_as_much_when_it_is_proven(forged_mail_world: World) -> None:
    report = forged_mail_world.report()
    text = f"It was slow.\n\nCloses: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {DANA}\n---\n{DIFF}"
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
