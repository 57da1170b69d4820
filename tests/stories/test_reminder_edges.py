"""Reminders at the edges: forged senders, decisions of operators, failed deliveries, late mail, and two workers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.compose.policy import Action, Policy, ReminderPolicy
from bot.mail.addresses import Address
from bot.mail.settings import read_mailmap
from bot.notifications import reminder
from bot.notifications.follow_ups import compose_follow_ups
from bot.outbox import sender
from bot.outbox.drafts import ComposeConfig
from tests.outbox import act
from tests.stories.test_reminders import DAY, SEND, WEEK, claimable, read, remind, sent
from tests.stories.test_reminders import reminders as stored
from tests.world import DANA, LEE, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import (
    Commit,
    Correspondent,
    Mailing,
    OutgoingMail,
    OutgoingState,
    Release,
    ReleaseCandidate,
    Reminder,
    Report,
)
from tracker.services import event_log, mail_transitions

HOLD = ComposeConfig(policy=Policy(reminders=ReminderPolicy(action=Action.HOLD)))


def record(world: World, report: Report, kind: EventKind, **more: str) -> None:
    event = EventData(f"{kind}{world.later()}", kind, world.now, **more)  # type: ignore[arg-type]
    event_log.record([event_log.event_row(report, event, world.now)])


def claim_one(world: World) -> OutgoingMail:
    [mail] = sender.claim_due(world.now, timedelta(minutes=5), 50, "worker")
    return mail


def to(mail: OutgoingMail) -> list[str]:
    return [each.email for each in read(mail).to]


def test_a_forged_fix_redirects_no_reminder(world: World) -> None:
    report = world.report()
    diff = "diff --git a/mm/a.c b/mm/a.c\n--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-a\n+b\n"
    world.post(Address("Mallory", "victim@elsewhere.example"), f"This should help:\n\n{diff}", to=message_id(report))
    world.read()
    assert Report.objects.get().state == "fix_proposed"
    world.post(DANA, "Thanks, looks good to me.", to=message_id(report))
    world.read()
    assert remind(world, 4 * WEEK) == 1
    assert to(stored()[0]) == [DANA.email]


def test_what_an_operator_cancels_counts_and_silences_nobody(world: World) -> None:
    first, second = world.report(), world.report("mm: second", "b" * 40, id="second")
    Report.objects.filter(pk=first.pk).update(urgency=10**15)
    assert remind(world, 2 * WEEK, ComposeConfig()) == 1
    assert act(stored()[0], "cancel")
    third = world.report("mm: third", "c" * 40, id="third")
    composed = [remind(world, WEEK) for _ in range(2)]
    assert sum(composed) == 1  # the rest of what is due, after two weeks
    assert Reminder.objects.filter(mail=stored()[1], report=third).exists()
    for _ in range(8):
        for mail in stored(state=OutgoingState.APPROVED):
            sent(world, mail)
        remind(world, 2 * WEEK)
    for report in (first, second, third):
        assert Reminder.objects.filter(report=report).count() == 2


def test_one_that_failed_does_not_silence_its_person(world: World) -> None:
    world.report()
    assert remind(world, 2 * WEEK) == 1
    mail_transitions.fail(claim_one(world), world.now, "gave up", "worker")
    second = world.report("mm: second", "b" * 40, id="second")
    assert remind(world, 2 * WEEK) == 1
    assert Reminder.objects.filter(report=second).exists()


def test_one_that_a_person_holds_is_cancelled_by_an_answer(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    assert act(stored()[0], "hold")
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert remind(world) == 0
    assert stored()[0].state == OutgoingState.CANCELLED
    assert remind(world, 4 * WEEK) == 1  # it counts as one, and the second is of another word
    assert [mail.purpose for mail in stored()] == ["reminder 1", "reminder 2"]


def test_one_that_the_server_deferred_is_cancelled_by_an_answer(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    mail_transitions.retry_later(claim_one(world), world.now, "greylisted", "worker")
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert remind(world, DAY) == 0
    assert stored()[0].state == OutgoingState.CANCELLED
    assert claimable(world) == []
    assert remind(world, 4 * WEEK) == 1


def test_mail_written_before_and_read_after_stops_it(world: World) -> None:
    report = world.report()
    world.later(2 * WEEK)
    world.post(LEE, "Isn't this fixed already?", to=message_id(report))
    assert remind(world, 2) == 1
    world.later(1)
    world.read()
    assert claimable(world) == []
    assert remind(world) == 0  # the clock starts again with that word
    assert stored()[0].state == OutgoingState.CANCELLED


def test_what_closes_a_report_while_a_reminder_is_composed_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    report = world.report()
    take = reminder.database.take

    def closed_meanwhile(lock: object) -> None:
        take(lock)  # type: ignore[arg-type]
        if lock is reminder.Lock.REMINDERS:
            record(world, report, EventKind.INVALID, actor="toni")

    monkeypatch.setattr(reminder.database, "take", closed_meanwhile)
    assert remind(world, 2 * WEEK) == 0
    assert stored() == []


def test_two_workers_send_a_person_one_mail(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.report()
    world.report("mm: second", "b" * 40, id="second")
    take, others = reminder.database.take, [True]

    def another_was_faster(lock: object) -> None:
        if lock is reminder.Lock.REMINDERS and others.pop() if others else False:
            Report.objects.filter(culprit__sha="b" * 40).update(urgency=10**15)
            assert reminder.compose_reminders(world.settings, world.now, SEND) == 1
        take(lock)  # type: ignore[arg-type]

    monkeypatch.setattr(reminder.database, "take", another_was_faster)
    assert remind(world, 2 * WEEK) == 0
    assert len(stored()) == 1


def test_holding_reminders_takes_back_those_that_wait(world: World) -> None:
    world.report()
    assert remind(world, 2 * WEEK) == 1
    assert remind(world, 1, HOLD) == 0
    assert stored()[0].state == OutgoingState.CANCELLED


def test_still_there_keeps_its_distance(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    sent(world, stored()[0])
    for number, days in ((3, 1), (4, 14)):
        world.later(days * DAY)
        record(world, report, EventKind.STILL_THERE, commit=f"{number}" * 40, tag=f"v9.1-rc{number}")
        compose_follow_ups(world.settings, world.later(), approve_first=False)
    measured = OutgoingMail.objects.filter(purpose__startswith="still_there ")
    assert [mail.purpose for mail in measured] == ["still_there v9.1-rc4"]


def test_two_addresses_are_one_person(world: World) -> None:
    aliases = read_mailmap(f"Dana Brook <{DANA.email}> <dana@home.example>\n")
    world.settings = type(world.settings)(address=world.settings.address, aliases=aliases)
    world.report()
    second = world.report("mm: second", "b" * 40, id="second")
    Commit.objects.filter(pk=second.culprit.pk).update(author_email="dana@home.example")
    assert remind(world, 2 * WEEK) == 1
    assert Reminder.objects.count() == 2
    sent(world, stored()[0])
    assert remind(world, DAY) == 0


def test_away_holds_for_all_threads(world: World) -> None:
    first = world.report()
    world.report("mm: second", "b" * 40, id="second")
    world.later(2 * DAY)
    away = {"Auto-Submitted": "auto-replied"}
    world.post(DANA, "I am out of office until Monday.", to=message_id(first), subject="Out of office: Re", **away)
    world.read()
    assert remind(world, 10 * DAY) == 0
    assert remind(world, 14 * DAY) == 1


def test_the_next_maintainer_is_asked_if_the_first_wants_no_mail(world: World) -> None:
    report = world.report()
    mail = OutgoingMail.objects.get(report=report)
    people = [[LEE.email, LEE.name, "Cc", "maintainer of MM"], ["max@dev.example", "Max", "Cc", "maintainer of MM"]]
    both = [address for address, *_ in people]
    OutgoingMail.objects.filter(pk=mail.pk).update(people=[*mail.people, *people], maintainers=both)
    record(world, report, EventKind.FIX_QUEUED, actor="toni", title="a fix", tree="mm")
    Correspondent.objects.create(address=LEE.email, mailing=Mailing.OPTED_OUT, since=world.now)
    assert remind(world, 6 * WEEK) == 0  # no release in development has the regression
    release = Release.objects.create(version="v9.1", number=90_001_999_0000)
    ReleaseCandidate.objects.create(release=release, number=2, version="v9.1-rc2", tagged_at=world.now)
    Report.objects.filter(pk=report.pk).update(merged_release="v9.1")
    assert remind(world, DAY) == 1
    assert to(stored()[0]) == ["max@dev.example"]
    assert "the release that has this regression comes nearer" in read(stored()[0]).text


def test_it_says_which_reminders_a_command_ends(world: World) -> None:
    world.report()
    world.report("mm: second", "b" * 40, id="second")
    assert remind(world, 2 * WEEK) == 1
    text = " ".join(read(stored()[0]).text.split())
    assert 'Reply "#lkp remind off" to stop reminders about this report.' in text


@pytest.mark.parametrize(
    ("name", "greeting"), [("Dana Brook", "Hello Dana,"), ("Brook, Dana", "Hello Brook, Dana,"), ("", "Hello,")]
)
def test_the_greeting(world: World, name: str, greeting: str) -> None:
    report = world.report()
    Commit.objects.filter(pk=report.culprit.pk).update(author_name=name)
    assert remind(world, 2 * WEEK) == 1
    assert read(stored()[0]).text.splitlines()[0] == greeting
