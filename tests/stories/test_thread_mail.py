"""Follow-up mail: each is sent once, in its thread, and not to people who have replied."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import InternalError

from bot.compose.policy import Action, Policy, PolicyRule
from bot.mail.message import ParsedMail, parse
from bot.mail.settings import read_mailmap
from bot.notifications import follow_ups
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.outbox.drafts import ComposeConfig
from tests.support.world import DANA, DIFF, TITLE, Kernel, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import (
    BisectResult,
    Correspondent,
    Decision,
    Event,
    FailureSource,
    Mailing,
    OutgoingMail,
    OutgoingState,
    Reminder,
    Report,
    Suggestion,
)
from tracker.services import corrections, event_log, mail_transitions, report_actions

OTHER = {"id": "lab7-m2", "cpus": 8}
FIX = "mm/vmscan: stop rescanning"
RC5 = {"sha": "e" * 40, "describe": "v9.1-rc5"}


def further(world: World, hours: float = 1) -> int:
    return compose_follow_ups(world.settings, world.later(hours), approve_first=False)


def mails(report: Report, begins: str = "") -> list[OutgoingMail]:
    return list(report.outgoing.exclude(purpose="report").filter(purpose__startswith=begins).order_by("pk"))


def read(mail: OutgoingMail) -> ParsedMail:
    return parse(bytes(mail.raw))


def measured(world: World, report: Report, *samples: float, **changes: Any) -> dict[str, Any]:
    """The report's test again, with other samples on the bad side."""
    result = world.result(report.culprit.sha, TITLE, created_at=world.now.isoformat(), **changes)
    result["measurements"][0]["bad"]["samples"] = list(samples)
    return result


# --- more findings ---


def told_of_worse(world: World) -> tuple[Report, OutgoingMail]:
    """A report, and the mail in its thread about a worse finding."""
    report = world.report()
    world.later(24)
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    assert further(world) == 1
    (mail,) = mails(report)
    return report, mail


def test_a_worse_finding_is_told_in_the_thread_once(world: World) -> None:
    report, mail = told_of_worse(world)
    parsed = read(mail)
    assert mail.state == OutgoingState.APPROVED
    assert parsed.subject == "Re: [LKP] [mm/vmscan] " + report.culprit.sha10 + ": -30.0% regression"
    assert parsed.references == parsed.in_reply_to == (message_id(report),)
    assert [each.email for each in parsed.recipients] == [DANA.email, "perf-reports@lists.example.org"]
    assert "   -50.0%  vm-scan.ops_per_sec on lab7-m2" in parsed.text
    assert "lab7-m1" not in parsed.text  # that was told before
    assert parsed.text.count("/report/") == 1
    assert further(world) == 0
    assert further(world, 24 * 30) == 0


def test_a_list_stays_a_list_in_every_mail_of_the_thread(world: World) -> None:
    _, mail = told_of_worse(world)
    assert mail.lists == ["perf-reports@lists.example.org"]
    gone = {"perf-reports@lists.example.org": "550 5.1.1 User unknown"}
    mail_transitions.record_failures(mail, gone, FailureSource.SERVER, world.now)
    assert not Correspondent.objects.filter(mailing=Mailing.BOUNCING).exists()


def interruption() -> InternalError:
    """What a transaction ends with on PostgreSQL if its machine stood still for too long."""
    cause = Exception("terminating connection due to idle-in-transaction timeout")
    cause.sqlstate = "25P03"  # type: ignore[attr-defined]
    error = InternalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("where", ["_follow_up", "_mail"])
def test_what_an_interruption_kept_from_being_composed_is_composed_in_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    report = world.report()
    world.later(24)
    if where == "_follow_up":
        world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    else:
        still_there(world, report, "v9.1-rc5")
    world.later(2)  # past those that may still be on their way

    def interrupted(*arguments: object) -> None:
        raise interruption()

    with monkeypatch.context() as patch:
        patch.setattr(follow_ups._FollowUpRound, where, interrupted)
        assert further(world) == 0
    assert further(world) == 1


def test_what_matters_little_is_not_mailed(world: World) -> None:
    report = world.report()
    world.ingest(measured(world, report, 900, 905, 895, id="2", machine=OTHER))  # a third of what was told
    world.ingest(measured(world, report, 1500, 1505, 1495, id="3", machine={"id": "m3", "cpus": 2}))  # better
    assert further(world) == 0
    assert mails(report) == []


def test_follow_ups_have_a_week_between_them_and_tell_what_came_meanwhile(world: World) -> None:
    report = world.report()
    for number in range(2, 5):
        world.ingest(measured(world, report, 500, 505, 495, id=str(number), machine={"id": f"m{number}", "cpus": 2}))
        further(world, 24)
    (first,) = mails(report)
    assert further(world, 24 * 7) == 1
    _, second = mails(report)
    assert "on m2" in first.body
    assert ("on m2" in second.body, "on m3" in second.body, "on m4" in second.body) == (False, True, True)


def test_a_finding_that_came_while_the_mail_was_approved_is_not_lost(world: World) -> None:
    sha = world.commit(TITLE)
    world.ingest(world.result(sha, TITLE))
    compose_due(world.settings, world.later(), approve_first=False)
    report = Report.objects.get()
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    assert further(world) == 0  # never before its report
    mail = OutgoingMail.objects.get()
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    assert further(world) == 1


def test_a_finding_that_was_held_then_is_told_when_it_is_freed(world: World) -> None:
    report = world.report()
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    BisectResult.objects.filter(external_id="2").update(held="a doubt")
    world.ingest(measured(world, report, 600, 605, 595, id="3", machine={"id": "m3", "cpus": 2}))
    assert further(world) == 1
    assert "lab7-m2" not in mails(report)[0].body
    corrections.release(report)
    assert further(world, 24 * 8) == 1
    assert ("lab7-m2" in mails(report)[1].body, "m3" in mails(report)[1].body) == (True, False)


def test_rules_hold_what_follows_too(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    config = ComposeConfig(policy=Policy(rules=(PolicyRule(Action.HOLD, suites=("vm-*",)),)))
    compose_follow_ups(world.settings, world.later(), approve_first=False, config=config)
    assert mails(report)[0].reason.startswith("rule 1 of the policy (")


def test_nobody_is_followed_up_in_the_quiet_time_after_a_fix(world: World) -> None:
    report = world.report()
    event = EventData(key="f", kind=EventKind.FIX_QUEUED, occurred_at=world.later(), commit="f" * 40, title=FIX)
    event_log.record([event_log.event_row(report, event, world.now)])
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    further(world)
    assert mails(report)[0].reason == "a fix was posted on 2026-09-01, less than 7 days ago"


def test_one_that_was_held_for_the_quiet_time_goes_when_it_is_over(world: World) -> None:
    report = world.report()
    event = EventData(key="f", kind=EventKind.FIX_PROPOSED, occurred_at=world.later(), commit="f" * 40, title=FIX)
    event_log.record([event_log.event_row(report, event, world.now)])
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    further(world)
    assert mails(report)[0].state == OutgoingState.HELD
    assert further(world, 24 * 7) == 1
    assert [mail.state for mail in mails(report)] == [OutgoingState.APPROVED]


def test_a_follow_up_waits_no_longer_when_its_report_is_closed_and_goes_when_it_is_open_again(world: World) -> None:
    report = world.report()
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    compose_follow_ups(world.settings, world.later())
    for kind, state in ((EventKind.EXPECTED, "cancelled"), (EventKind.REOPENED, "composed")):
        event = EventData(key=kind, kind=kind, occurred_at=world.later(), actor="olga")
        event_log.record([event_log.event_row(report, event, world.now)])
        compose_follow_ups(world.settings, world.later())
        assert [mail.state for mail in mails(report)] == [state]


def test_what_waits_is_told_by_what_is_known_when_it_goes(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    compose_follow_ups(world.settings, world.later())
    event = EventData(key="d", kind=EventKind.DISPUTED, occurred_at=world.later(), actor="olga")
    event_log.record([event_log.event_row(report, event, world.now)])
    compose_follow_ups(world.settings, world.later())
    (mail,) = mails(report)
    assert (mail.state, "Could you" in mail.body) == (OutgoingState.COMPOSED, False)


def test_the_lab_s_own_recheck_has_no_numbers(world: World) -> None:
    report = world.report()
    world.later(24)
    rechecks = {"rechecks": [{"ref": "v9.1-rc5", "sha": "c" * 40, "state": "still-bad"}]}
    world.ingest(measured(world, report, 690, 695, 685, id="2", bisect=rechecks))
    assert further(world) == 1
    body = mails(report, "still_there v9.1-rc5")[0].body
    assert "still present in v9.1-rc5 (cccccccccc):" in body
    assert "now:" not in body


def test_a_report_that_the_lab_doubts_can_be_withdrawn(world: World) -> None:
    report = world.report()
    BisectResult.objects.update(held="the machine was throttled")
    event = EventData(key="i", kind=EventKind.INVALID, occurred_at=world.later(), actor="olga")
    event_log.record([event_log.event_row(report, event, world.now)])
    assert further(world) == 1
    assert mails(report)[0].state == OutgoingState.APPROVED


def test_every_report_with_news_gets_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.report("mm: one"), world.report("mm: two")
    for number, report in enumerate((one, two)):
        world.later(24)
        world.ingest(
            measured(world, report, 690, 695, 685, id=f"r{number}", bad={"sha": "e" * 40, "describe": "v9.1-rc5"})
        )
    monkeypatch.setattr(follow_ups, "AT_ONCE", 1)
    assert (further(world), further(world)) == (1, 1)


def test_what_can_t_be_read_any_more_keeps_no_other_mail_back(world: World) -> None:
    one, two = world.report("mm: one"), world.report("mm: two")
    for number, report in enumerate((one, two)):
        world.later(24)
        world.ingest(
            measured(world, report, 690, 695, 685, id=f"r{number}", bad={"sha": "e" * 40, "describe": "v9.1-rc5"})
        )
    BisectResult.objects.filter(external_id="r0").update(payload='{"schema": "perf-bisect-result/1"}')
    assert further(world) == 1
    assert (mails(one), len(mails(two))) == ([], 1)


def test_measured_again_and_not_there_is_no_reminder(world: World) -> None:
    report = world.report()
    world.later(24)
    world.ingest(measured(world, report, 1001, 1006, 996, id="r", bad=RC5))
    assert further(world) == 0


def test_names_that_look_like_placeholders_hold_no_further_mail(world: World) -> None:
    report = world.report("mm/slub: fix null dereference of a {{ page }} on free, and say so in " + "a long title " * 4)
    still_there(world, report, "v9.1-rc5")
    further(world)
    assert (mails(report)[0].state, mails(report)[0].reason) == (OutgoingState.APPROVED, "")


def test_a_closed_report_gets_no_follow_up(world: World) -> None:
    report = world.report()
    world.post(DANA, "#lkp invalid", to=message_id(report))
    world.read()
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    assert further(world) == 0


# --- still there ---


def still_there(world: World, report: Report, ref: str, days: float = 1) -> None:
    world.later(24 * days)
    world.ingest(measured(world, report, 690, 695, 685, id=ref, bad={"sha": "e" * 40, "describe": ref}))


def test_still_there_is_told_once_a_candidate_while_nobody_answers(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    assert further(world) == 1
    (mail,) = mails(report, "still_there v9.1-rc5")
    parsed = read(mail)
    assert (
        "This regression is still present in v9.1-rc5 (eeeeeeeeee),\nwith the same test on the same machine:"
        in parsed.text
    )
    assert "reported:  1000 -> 700.00 1/s (-30.0%)" in parsed.text
    assert "now:       1000 -> 690.00 1/s (-31.0%)" in parsed.text
    assert 'Reply "#lkp remind off" to stop these mails.' in parsed.text
    assert further(world) == 0
    still_there(world, report, "v9.1-rc6")
    assert further(world) == 1


def test_who_was_reminded_under_another_address_of_theirs_is_not_nagged(world: World) -> None:
    aliases = read_mailmap(f"Dana Brook <dana@home.example> <{DANA.email}>\n")
    world.settings = replace(world.settings, aliases=aliases)
    report, other = world.report(), world.report("mm: another")
    still_there(world, report, "v9.1-rc5")
    told = other.outgoing.get()
    Reminder.objects.create(report=other, mail=told, person="dana@home.example", composed_at=world.now)
    assert further(world) == 0


@pytest.mark.parametrize(
    "answer",
    ["I will look into it.", "#lkp remind off", "Does this help?\n\n" + DIFF, "This is expected.\n\n#lkp expected"],
)
def test_who_has_answered_is_not_nagged(world: World, answer: str) -> None:
    report = world.report()
    world.post(DANA, answer, to=message_id(report))
    world.read()
    still_there(world, report, "v9.1-rc5")
    assert further(world) == 0


def test_who_doubts_it_is_told_and_asked_nothing(world: World) -> None:
    report = world.report()
    world.post(DANA, "I can't reproduce this here, it looks like noise to me.", to=message_id(report))
    world.read()
    suggestion = Suggestion.objects.filter(report=report, kind="disputed").first()
    if suggestion:
        report_actions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
    assert Report.objects.get().state == "disputed"
    still_there(world, report, "v9.1-rc5")
    assert further(world) == 1
    body = mails(report)[0].body
    assert "no action is needed from you" in body
    assert "Could you" not in body


def test_a_commit_between_candidates_is_no_news(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5-123-gabcdef012345")
    assert further(world) == 0


def test_only_the_latest_candidate_is_told(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    still_there(world, report, "v9.1-rc6")
    assert further(world) == 1
    assert [mail.purpose for mail in mails(report)] == ["still_there v9.1-rc6"]


def test_what_the_report_itself_told_is_not_told_again(world: World) -> None:
    rechecks = [{"ref": "v9.1-rc3", "sha": "c" * 40, "state": "still-bad"}]
    report = world.report(bisect={"rechecks": rechecks})
    assert further(world) == 0
    assert "v9.1-rc3 is still bad" in OutgoingMail.objects.get(report=report).body


# --- all of them ---


def test_who_opted_out_hears_no_more(world: World) -> None:
    report = world.report()
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.now)
    still_there(world, report, "v9.1-rc5")
    assert further(world) == 1
    assert mails(report)[0].recipients == ["perf-reports@lists.example.org"]


def test_they_wait_for_approval_where_reports_do(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    assert compose_follow_ups(world.settings, world.later()) == 1
    assert mails(report)[0].state == OutgoingState.COMPOSED


def test_two_rounds_at_once_put_one_mail_into_the_outbox(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker composes between our look and our row."""
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    first = follow_ups._purpose
    at = world.later(0.5)

    def twice(event: Any) -> str:
        monkeypatch.setattr(follow_ups, "_purpose", first)
        assert compose_follow_ups(world.settings, at, approve_first=False) == 1
        return first(event)

    monkeypatch.setattr(follow_ups, "_purpose", twice)
    assert compose_follow_ups(world.settings, at, approve_first=False) == 0
    assert len(mails(report)) == 1


def test_limits_put_mails_off_to_a_day_with_room(world: World) -> None:
    config = ComposeConfig(policy=Policy(per_author=1))
    for number in range(3):
        world.ingest(world.result(f"{number}" * 40, f"mm: {number}", id=f"n{number}"))
    compose_due(world.settings, world.now, approve_first=False, config=config)
    days = [mail.not_before.date() if mail.not_before else None for mail in OutgoingMail.objects.order_by("pk")]
    today = world.now.date()
    assert days == [None, today + timedelta(days=1), today + timedelta(days=2)]
    world.ingest(world.result("9" * 40, "mm: 9", id="n9"))
    compose_due(world.settings, world.now, approve_first=False, config=config)
    last = OutgoingMail.objects.latest("pk")
    assert last.not_before
    assert last.not_before.date() == today + timedelta(days=3)


def test_another_robot_was_faster(kernel: Kernel) -> None:
    world = kernel.world
    sha = kernel.git.commit(TITLE)
    report = world.report(TITLE, sha=sha)
    Event.objects.filter(report=report).delete()
    OutgoingMail.objects.all().delete()
    event = EventData(key="r", kind=EventKind.REPORTED, occurred_at=world.now, message_id="1@robots.example")
    event_log.record([event_log.event_row(report, event, world.now)])
    assert compose_due(world.settings, world.later(), approve_first=False) == 1
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == (
        OutgoingState.HELD,
        "already reported by another robot: <1@robots.example>",
    )


def test_a_fix_was_posted_before_anybody_was_told(world: World) -> None:
    sha = world.commit(TITLE)
    world.ingest(world.result(sha, TITLE))
    report = Report.objects.get()
    event = EventData(key="f", kind=EventKind.FIX_QUEUED, occurred_at=world.now, commit="f" * 40, title=FIX)
    event_log.record([event_log.event_row(report, event, world.now)])
    compose_due(world.settings, world.later(), approve_first=False)
    assert OutgoingMail.objects.get().reason == "a fix was posted on 2026-09-01, less than 7 days ago"
