"""Reminders: one screen, in the thread, on real silence only; twice at most, and cancelled by any word."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.compose.conventions import Conventions
from bot.compose.policy import Action, Policy, ReminderPolicy
from bot.mail.addresses import Address
from bot.mail.message import ParsedMail, parse
from bot.mail.settings import BotSettings, read_mailmap
from bot.notifications import reminder
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.reminder import (
    LastWord,
    QuietReport,
    _wrapped,
    batches,
    compose_reminders,
    is_due,
    last_word,
)
from bot.outbox import sender
from bot.outbox.drafts import ComposeConfig
from tests.support.outbox import act, reloaded, unrecorded
from tests.support.world import DANA, LEE, World, message_id
from tracker.domain.deadlines import ReportClock, Stage
from tracker.domain.events import Awaited, EventData, EventKind, State
from tracker.models import (
    Commit,
    Correspondent,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    Release,
    ReleaseCandidate,
    Reminder,
    Report,
)
from tracker.services import event_log, mail_transitions

# --- Reminders: one screen, in the thread, on real silence only; twice at most, and cancelled by any word ---

SEND = ComposeConfig(policy=Policy(reminders=ReminderPolicy(action=Action.SEND)))
WEEK, DAY = 24 * 7, 24


def remind(world: World, hours: float = 1, config: ComposeConfig = SEND) -> int:
    return compose_reminders(world.settings, world.later(hours), config)


def reminders(**filters: object) -> list[OutgoingMail]:
    rows = OutgoingMail.objects.filter(purpose__startswith="reminder ", **filters)
    return list(rows.order_by("pk"))


def sent(world: World, mail: OutgoingMail) -> None:
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)


def read(mail: OutgoingMail) -> ParsedMail:
    return parse(bytes(mail.raw))


def claimable(world: World) -> list[str]:
    """The purposes of the mails that a worker would send now."""
    return [each.purpose for each in sender.claim_due(world.now, timedelta(minutes=5), 50, "worker")]


def test_a_silent_author_is_reminded_on_one_screen(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * DAY) == 0
    assert remind(world, WEEK) == 1
    [mail] = reminders()
    parsed = read(mail)
    assert (mail.state, mail.purpose) == (OutgoingState.APPROVED, "reminder 1")
    assert parsed.in_reply_to == (message_id(report),)
    assert [each.email for each in parsed.to] == [DANA.email]
    assert parsed.text.startswith(
        "Hello Dana,\n\nThis regression is open, and nobody has written about it since 2026-09-01:"
    )
    assert "state:     no response from author yet" in parsed.text
    assert "A short reply in plain words is enough" in parsed.text
    assert '"#lkp remind off"' in parsed.text
    assert len(parsed.text.splitlines()) <= 30
    assert max(len(line) for line in parsed.text.splitlines() if not line.startswith("commit: ")) <= 78


def test_the_labs_own_limit_of_recipients_holds_for_further_mail(world: World) -> None:
    world.report()
    assert remind(world, WEEK, replace(SEND, conventions=Conventions(most_people=1))) == 1
    [mail] = reminders()
    assert mail.recipients == [DANA.email]


def test_two_in_a_life_and_none_in_between(world: World) -> None:
    world.report()
    for expected in (1, 1, 0, 0):
        assert remind(world, 3 * WEEK) == expected
        for mail in reminders(state=OutgoingState.APPROVED):
            sent(world, mail)
        assert remind(world, DAY) == 0
    assert [mail.purpose for mail in reminders()] == ["reminder 1", "reminder 2"]
    assert unrecorded() == []


def test_by_default_a_person_approves_it(world: World) -> None:
    world.report()
    assert remind(world, 2 * WEEK, ComposeConfig()) == 1
    assert reminders()[0].state == OutgoingState.COMPOSED
    assert claimable(world) == []
    assert remind(world, DAY, ComposeConfig()) == 0  # it waits, and so does the next
    assert act(reminders()[0], "approve")
    assert claimable(world) == ["reminder 1"]


def test_the_lab_can_turn_them_off(world: World) -> None:
    world.report()
    config = ComposeConfig(policy=Policy(reminders=ReminderPolicy(action=Action.HOLD)))
    assert remind(world, 4 * WEEK, config) == 0


@pytest.mark.parametrize(
    "text",
    [
        "This is expected, it is the cost of the mitigation.",
        "Can you test the patch below?",
        "Which config did you use?",
        "#lkp remind off",
    ],
)
def test_who_answered_or_asked_is_left_alone(world: World, text: str) -> None:
    world.settings = type(world.settings)(address=world.settings.address, trust_policy="open")
    report = world.report()
    world.post(DANA, text, to=message_id(report))
    world.read()
    if text.startswith("This is expected"):  # a suggestion, until somebody accepts it
        event = EventData("e", EventKind.EXPECTED, world.later(), actor="toni")
        event_log.record([event_log.event_row(report, event, world.now)])
    for _ in range(4):
        assert remind(world, 2 * WEEK) == 0


def test_who_works_on_it_has_time_and_is_quoted_then(world: World) -> None:
    report = world.report()
    world.post(DANA, "Thanks.\n\nI'm looking into it, it must be the new lock.\n> old\n", to=message_id(report))
    world.read()
    Report.objects.filter(pk=report.pk).update(change=-12.0)  # a large one has less time
    assert remind(world, 8 * DAY) == 0
    assert remind(world, 8 * DAY) == 1
    text = read(reminders()[0]).text
    assert "The last word, from Dana Brook on 2026-09-01:" in text
    assert "> Thanks. I'm looking into it, it must be the new lock." in text
    assert f"Closes: https://lore.kernel.org/r/{message_id(report)}" in text


def test_a_reply_between_composing_and_sending_cancels_it(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    world.post(DANA, "Thanks.", to=message_id(report))  # changes no state that would be told
    world.read()
    assert claimable(world) == []
    assert remind(world) == 0
    assert [mail.state for mail in reminders()] == [OutgoingState.CANCELLED]
    assert not Reminder.objects.exists()
    assert remind(world, 4 * WEEK) == 1  # silent again: the first one is composed anew
    assert [(mail.purpose, mail.state) for mail in reminders()] == [("reminder 1", "approved")]


def test_even_an_approved_one_does_not_leave_after_a_reply(world: World) -> None:
    report = world.report()
    remind(world, 2 * WEEK, ComposeConfig())
    assert act(reminders()[0], "approve")
    world.post(LEE, "Isn't this fixed already?", to=message_id(report))
    world.read()
    assert claimable(world) == []
    compose_follow_ups(world.settings, world.later(), approve_first=False)
    assert claimable(world) == []


def test_all_reports_of_a_person_are_in_one_mail_a_week(world: World) -> None:
    first, second = world.report(), world.report("mm: second", "b" * 40, id="second")
    Report.objects.filter(pk=second.pk).update(urgency=1 << 60)
    assert remind(world, 2 * WEEK) == 1
    [mail] = reminders()
    assert mail.about == second  # in the thread of the more urgent one
    text = read(mail).text
    assert f"Also waiting for you:\n\nhttps://lore.kernel.org/r/{message_id(first)}" in text
    assert sorted(Reminder.objects.values_list("report", flat=True)) == sorted([first.pk, second.pk])
    sent(world, mail)
    third = world.report("mm: third", "c" * 40, id="third")
    assert remind(world, 6 * DAY) == 0
    assert remind(world, 2 * DAY) == 1
    assert {row.report_id for row in Reminder.objects.exclude(mail=mail)} == {third.pk}


def test_a_word_about_any_of_them_cancels_the_mail(world: World) -> None:
    first, second = world.report(), world.report("mm: second", "b" * 40, id="second")
    assert remind(world, 2 * WEEK) == 1
    [mail] = reminders()
    other = first if mail.about == second else second
    world.post(DANA, "I am working on a fix.", to=message_id(other))
    world.read()
    assert reloaded(mail).stale
    assert claimable(world) == []
    assert remind(world) == 1  # about the other one alone
    assert [row.report_id for row in Reminder.objects.all()] == [mail.about.pk]


def test_a_merged_duplicate_and_a_changed_author(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    Commit.objects.filter(pk=report.culprit.pk).update(author_name="Lee", author_email=LEE.email)  # as git tells
    assert remind(world) == 1
    [mail] = reminders()
    assert [each.email for each in read(mail).to] == [LEE.email]
    duplicate = EventData("d", EventKind.DUPLICATE, world.later(), actor="toni", remark="0" * 10)
    event_log.record([event_log.event_row(report, duplicate, world.now)])
    assert claimable(world) == []
    assert remind(world) == 0
    assert reminders()[0].state == OutgoingState.CANCELLED


@pytest.mark.parametrize("mailing", [Mailing.BOUNCING, Mailing.OPTED_OUT, Mailing.STOPPED])
def test_who_gets_no_mail_gets_no_reminder(world: World, mailing: Mailing) -> None:
    world.report()
    assert remind(world, 2 * WEEK) == 1
    Correspondent.objects.create(address=DANA.email, mailing=mailing, since=world.now)
    assert remind(world) == 0
    assert reminders()[0].state == OutgoingState.CANCELLED
    assert remind(world, 4 * WEEK) == 0


def test_who_is_away_is_reminded_later(world: World) -> None:
    report = world.report()
    world.later(2 * DAY)
    away = {"Auto-Submitted": "auto-replied"}
    world.post(DANA, "I am out of office until Monday.", to=message_id(report), subject="Out of office: Re", **away)
    world.read()
    assert remind(world, 10 * DAY) == 0
    assert remind(world, 14 * DAY) == 1


def test_small_changes_and_reports_of_others_are_left_alone(world: World) -> None:
    report = world.report()
    Report.objects.filter(pk=report.pk).update(change=-4.0)
    assert remind(world, 4 * WEEK) == 0
    Report.objects.filter(pk=report.pk).update(change=-40.0)
    OutgoingMail.objects.filter(report=report).update(purpose="somebody else's")
    assert remind(world) == 0


def test_still_there_counts_as_a_reminder(world: World) -> None:
    """What goes to a person unasked is the report, and two mails at most after it."""
    report = world.report()
    for number in (3, 4, 5, 6):
        tag = f"v9.1-rc{number}"
        event = EventData(f"s{number}", EventKind.STILL_THERE, world.later(WEEK), commit=f"{number}" * 40, tag=tag)
        event_log.record([event_log.event_row(report, event, world.now)])
        compose_follow_ups(world.settings, world.later(), approve_first=False)
        for mail in OutgoingMail.objects.filter(state=OutgoingState.APPROVED):
            sent(world, mail)
        remind(world)
    unasked = OutgoingMail.objects.exclude(purpose="report").exclude(state=OutgoingState.CANCELLED)
    assert unasked.count() == 2


def test_a_patch_in_the_last_word_and_a_long_state(world: World) -> None:
    report = world.report()
    text = (
        "The sibling is dearer, this is better:\n\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-a\n+b\n"
    )
    world.post(Address("Kim Doe", "kim@x.example"), text, to=message_id(report))
    world.read()
    assert last_word(report.pk) == LastWord("Kim Doe", "2026-09-01", ["The sibling is dearer, this is better:"])
    status = "in linux-next since 2026-11-29, no response from the author, nor from anybody else who got it"
    assert _wrapped(status, 66, "  ") == (
        "in linux-next since 2026-11-29, no response from the author, nor\n  from anybody else who got it"
    )


def test_what_was_written_to_the_bot_alone_is_not_quoted(world: World) -> None:
    """A reminder goes to the lists, and its text is on a page once it is sent."""
    report = world.report()
    world.post(DANA, "Thanks. I'm looking into the new lock.\n", to=message_id(report))
    world.post(DANA, "Call me at 555-0100, the board is not announced yet.\n", to=message_id(report))
    world.read()
    Message.objects.filter(own_text__contains="555-0100").update(public=False)
    word = last_word(report.pk)
    assert word is not None
    assert word.lines == ["Thanks. I'm looking into the new lock."]


def test_a_hostile_last_word_is_only_quoted(world: World) -> None:
    report = world.report()
    evil = "Reviewed-by: Evil <evil@x.example>\n\u202ex\x1b[31m" + "y" * 5000
    world.post(Address("Evil\u202e {{ 7*7 }}", "evil@x.example"), f"I looked.\n{evil}", to=message_id(report))
    world.read()
    Report.objects.filter(pk=report.pk).update(last_human_reply_at=None)
    assert remind(world, 6 * WEEK) == 1
    [mail] = reminders()
    text = read(mail).text
    assert mail.state == OutgoingState.APPROVED, mail.reason
    assert "\n> I looked. Reviewed-by: Evil" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("commit: ")) <= 78


@pytest.mark.parametrize(
    ("kinds", "closes"),
    [
        ([], "A short reply in plain words is enough"),
        ([EventKind.WORKING], "\nfix with: Closes: https://lore.kernel.org/r/"),
        ([EventKind.FIX_PROPOSED, EventKind.FIX_CONFIRMED], "closed once the fix is in a mainline version"),
    ],
)
def test_each_stage_says_what_closes_it(world: World, kinds: list[EventKind], closes: str) -> None:
    report = world.report()
    for number, kind in enumerate(kinds):
        event = EventData(f"k{number}", kind, world.later(), actor="toni", title="a fix")
        event_log.record([event_log.event_row(report, event, world.now)])
    assert remind(world, 3 * WEEK) == 1
    [mail] = reminders()
    assert (mail.state, mail.reason) == (OutgoingState.APPROVED, "")
    assert closes in read(mail).text


# --- Reminders at the edges: forged senders, decisions of operators, failed deliveries, late mail, and two workers
# ---

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
    assert to(reminders()[0]) == [DANA.email]


def test_what_an_operator_cancels_counts_and_silences_nobody(world: World) -> None:
    first, second = world.report(), world.report("mm: second", "b" * 40, id="second")
    Report.objects.filter(pk=first.pk).update(urgency=10**15)
    assert remind(world, 2 * WEEK, ComposeConfig()) == 1
    assert act(reminders()[0], "cancel")
    third = world.report("mm: third", "c" * 40, id="third")
    composed = [remind(world, WEEK) for _ in range(2)]
    assert sum(composed) == 1  # the rest of what is due, after two weeks
    assert Reminder.objects.filter(mail=reminders()[1], report=third).exists()
    for _ in range(8):
        for mail in reminders(state=OutgoingState.APPROVED):
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
    assert act(reminders()[0], "hold")
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert remind(world) == 0
    assert reminders()[0].state == OutgoingState.CANCELLED
    assert remind(world, 4 * WEEK) == 1  # it counts as one, and the second is of another word
    assert [mail.purpose for mail in reminders()] == ["reminder 1", "reminder 2"]


def test_one_that_the_server_deferred_is_cancelled_by_an_answer(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    mail_transitions.retry_later(claim_one(world), world.now, "greylisted", "worker")
    world.post(DANA, "I am working on a fix.", to=message_id(report))
    world.read()
    assert remind(world, DAY) == 0
    assert reminders()[0].state == OutgoingState.CANCELLED
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
    assert reminders()[0].state == OutgoingState.CANCELLED


def test_what_closes_a_report_while_a_reminder_is_composed_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    report = world.report()
    take = reminder.database.take

    def closed_meanwhile(lock: object) -> None:
        take(lock)  # type: ignore[arg-type]
        if lock is reminder.Lock.REMINDERS:
            record(world, report, EventKind.INVALID, actor="toni")

    monkeypatch.setattr(reminder.database, "take", closed_meanwhile)
    assert remind(world, 2 * WEEK) == 0
    assert reminders() == []


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
    assert len(reminders()) == 1


def test_holding_reminders_takes_back_those_that_wait(world: World) -> None:
    world.report()
    assert remind(world, 2 * WEEK) == 1
    assert remind(world, 1, HOLD) == 0
    assert reminders()[0].state == OutgoingState.CANCELLED


def test_still_there_keeps_its_distance(world: World) -> None:
    report = world.report()
    assert remind(world, 2 * WEEK) == 1
    sent(world, reminders()[0])
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
    sent(world, reminders()[0])
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
    assert to(reminders()[0]) == ["max@dev.example"]
    assert "the release that has this regression comes nearer" in read(reminders()[0]).text


def test_it_says_which_reminders_a_command_ends(world: World) -> None:
    world.report()
    world.report("mm: second", "b" * 40, id="second")
    assert remind(world, 2 * WEEK) == 1
    text = " ".join(read(reminders()[0]).text.split())
    assert 'Reply "#lkp remind off" to stop reminders about this report.' in text


@pytest.mark.parametrize(
    ("name", "greeting"), [("Dana Brook", "Hello Dana,"), ("Brook, Dana", "Hello Brook, Dana,"), ("", "Hello,")]
)
def test_the_greeting(world: World, name: str, greeting: str) -> None:
    report = world.report()
    Commit.objects.filter(pk=report.culprit.pk).update(author_name=name)
    assert remind(world, 2 * WEEK) == 1
    assert read(reminders()[0]).text.splitlines()[0] == greeting


# --- When one is due ---

FRIDAY, A_DAY = datetime(2026, 11, 20, 15, 30, tzinfo=UTC), timedelta(days=1)
CLOCK = ReportClock(Stage.RESPONSE, Awaited.AUTHOR, FRIDAY, FRIDAY + 7 * A_DAY)
QUIET = QuietReport(1, "dana@dev.example", State.NO_RESPONSE, CLOCK, -12.0, 100)
NOW = FRIDAY + 8 * A_DAY


@pytest.mark.parametrize(
    ("report", "due"),
    [
        (QUIET, True),
        (replace(QUIET, clock=None), False),
        (replace(QUIET, person=""), False),
        (replace(QUIET, silenced="opted out"), False),
        (replace(QUIET, change_pct=-4.9), False),
        (replace(QUIET, change_pct=None), True),  # from zero
        (replace(QUIET, change_pct=90.0), True),
        (replace(QUIET, state=State.DISPUTED), False),
        (replace(QUIET, clock=replace(CLOCK, due_at=NOW)), False),
        (replace(QUIET, reminded=(NOW - 13 * A_DAY,)), False),
        (replace(QUIET, reminded=(NOW - 14 * A_DAY,)), True),
        (replace(QUIET, reminded=(NOW - 90 * A_DAY, NOW - 60 * A_DAY)), False),  # two are enough
    ],
)
def test_who_is_due(report: QuietReport, due: bool) -> None:
    assert is_due(report, ReminderPolicy(), NOW) is due


def test_a_person_gets_one_mail_about_all_their_reports() -> None:
    reports = [replace(QUIET, key=1), replace(QUIET, key=2, urgency=900), replace(QUIET, key=3, person="lee@x.example")]
    found = batches(reports, {}, ReminderPolicy(), NOW)
    assert [(each[0].person, [report.key for report in each]) for each in found] == [
        ("dana@dev.example", [2, 1]),
        ("lee@x.example", [3]),
    ]
    lately = {"dana@dev.example": NOW - 6 * A_DAY}
    assert [each[0].person for each in batches(reports, lately, ReminderPolicy(), NOW)] == ["lee@x.example"]


# --- Years of old mail, read into an empty database: not one reminder, nor any other mail unasked (issue: no nagging)
# ---

BOXES = ("threads-dev.mbox", "threads-dev-2.mbox", "reports-dev.mbox")


@pytest.mark.slow
@pytest.mark.long
def test_not_one_reminder(shared: Path, lkp: BotSettings, db: None, tmp_path: Path) -> None:
    epoch = tmp_path / "cgroups" / "git" / "0.git"
    subprocess.run(
        ["git", "clone", "-q", "--mirror", str(shared / "lore" / "cgroups.0.bundle"), str(epoch)], check=True
    )
    now = datetime(2026, 9, 1, tzinfo=UTC)
    for path in (*(shared / box for box in BOXES), epoch):
        for source in open_sources(str(path)):
            read_source(source, lkp, now)
    assert Report.objects.filter(state="no_response", verdict="regression").count() > 20  # there is what to nag about
    assert Message.objects.count() > 300
    newest = max(Report.objects.exclude(reported_at=None).values_list("reported_at", flat=True))
    for at in (newest + timedelta(days=30), now, now + timedelta(days=30), now + timedelta(days=400)):
        assert compose_reminders(lkp, at, SEND) == 0
        assert compose_follow_ups(lkp, at, approve_first=False) == 0
    assert not OutgoingMail.objects.exclude(purpose__startswith="answer ").exists()
