"""Stories of what follows a report: each mail once, in its thread, and none to who has answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.compose.policy import Policy
from bot.outbox import states
from bot.outbox.composing import compose_due
from bot.outbox.further import compose_further
from bot.outbox.house import House
from bot.replies.mail import Mail, parse
from tests.kernel import TITLE, Kernel
from tests.world import DANA, DIFF, LEE, World, message_id
from tracker import decisions
from tracker.models import Correspondent, Decision, Event, OutgoingMail, OutgoingState, Report, Suggestion, Wish

OTHER = {"id": "lab7-m2", "cpus": 8}


def further(world: World, hours: float = 1) -> int:
    return compose_further(world.identity, world.later(hours), approve_first=False)


def mails(report: Report, begins: str = "") -> list[OutgoingMail]:
    return list(report.outgoing.exclude(purpose="report").filter(purpose__startswith=begins).order_by("pk"))


def read(mail: OutgoingMail) -> Mail:
    return parse(bytes(mail.raw))


def measured(world: World, report: Report, *samples: float, **changes: Any) -> dict[str, Any]:
    """The report's test again, with other samples on the bad side."""
    told = world.result(report.culprit.sha, TITLE, created_at=world.now.isoformat(), **changes)
    told["measurements"][0]["bad"]["samples"] = list(samples)
    return told


# --- more findings ---


def test_a_worse_finding_is_told_in_the_thread_once(world: World) -> None:
    report = world.report()
    world.later(24)
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    assert further(world) == 1
    (mail,) = mails(report)
    told = read(mail)
    assert mail.state == OutgoingState.APPROVED
    assert told.subject == "Re: [LKP] [mm/vmscan] " + report.culprit.sha10 + ": -30.0% regression"
    assert told.references == told.in_reply_to == (message_id(report),)
    assert [each.email for each in told.recipients] == [DANA.email, "perf-reports@lists.example.org"]
    assert "   -50.0%  vm-scan.ops_per_sec on lab7-m2" in told.text
    assert "lab7-m1" not in told.text  # that was told before
    assert told.text.count("/report/") == 1
    assert further(world) == 0
    assert further(world, 24 * 30) == 0


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
    compose_due(world.identity, world.later(), approve_first=False)
    report = Report.objects.get()
    world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
    assert further(world) == 0  # never before its report
    mail = OutgoingMail.objects.get()
    states.mark_sent(mail.message_id, world.now, world.now)
    assert further(world) == 1


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
    told = read(mail)
    assert "this regression is still there at v9.1-rc5 (eeeeeeeeee)" in told.text
    assert "reported:  1000 -> 700.00 1/s, -30.0%" in told.text
    assert "now:       1000 -> 690.00 1/s, -31.0%" in told.text
    assert '"#lkp remind off" ends these mails' in told.text
    assert further(world) == 0
    still_there(world, report, "v9.1-rc6")
    assert further(world) == 1


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
    assert "still bad on v9.1-rc3" in OutgoingMail.objects.get(report=report).body


# --- a fix that was measured ---

FIX = "mm/vmscan: stop rescanning"


def measure_fix(world: World, report: Report, with_fix: float) -> str:
    """The lab measures a commit that says to fix the culprit, against its parent."""
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")\nReported-by: x@y.example')
    world.later(24)
    told = measured(world, report, with_fix, with_fix + 5, with_fix - 5, id=f"fix-{with_fix}")
    told["first_bad"] = {
        "sha": sha,
        "subject": FIX,
        "author": {"name": LEE.name, "email": LEE.email},
        "trailers": [{"tag": "Fixes", "value": report.culprit.sha[:12]}],
    }
    told["measurements"][0]["good"]["samples"] = [700, 705, 695]
    world.ingest(told)
    return sha


@pytest.mark.parametrize(
    ("with_fix", "outcome", "tested"),
    [
        (1000, "this fix was measured, and brings back all that was lost", True),
        (850, "this fix was measured, and brings back 50% of what was lost", False),
        (702, "this fix was measured, and makes no difference that we could measure", False),
        (500, "this fix was measured, and makes it worse", False),
    ],
)
def test_a_measured_fix_is_told_with_numbers(world: World, with_fix: float, outcome: str, tested: bool) -> None:
    report = world.report()
    sha = measure_fix(world, report, with_fix)
    assert further(world) == 1
    (mail,) = mails(report, "fix_")
    told = read(mail)
    assert outcome in told.text
    assert f'fix:     {sha} ("{FIX}")' in told.text
    assert f"with the fix:  700.00 -> {with_fix if with_fix > 999 else f'{with_fix}.00'} 1/s" in told.text
    assert ("\nTested-by: Perfwork <perfbot+" + report.tag in told.text) is tested
    assert [each.email for each in told.to] == [LEE.email]
    assert DANA.email in [each.email for each in told.cc]
    assert further(world) == 0


def test_a_fix_that_was_posted_is_answered_there(world: World) -> None:
    """So that b4 finds the tag in the thread of the patch."""
    report = world.report()
    world.post(
        LEE,
        f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}",
        subject=f"[PATCH] {FIX}",
        message_id="fix-1@dev.example",
    )
    world.read()
    measure_fix(world, report, 1000)
    assert further(world) == 1
    told = read(mails(report, "fix_")[0])
    assert told.in_reply_to == ("fix-1@dev.example",)
    assert told.subject == f"Re: [PATCH] {FIX}"


# --- withdrawal ---


def test_a_report_that_was_wrong_is_withdrawn(world: World) -> None:
    report = world.report()
    world.post(LEE, "This report is invalid, the machine was throttled.\n\n#lkp invalid", to=message_id(report))
    world.identity = replace(world.identity, trust="verified")
    world.read()
    suggestion = Suggestion.objects.get(report=report, kind="invalid")
    decisions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
    assert further(world) == 1
    (mail,) = mails(report)
    assert "we withdraw this report" in read(mail).text
    assert further(world) == 0


def test_what_the_lab_has_said_itself_is_not_said_again(world: World) -> None:
    world.identity = replace(world.identity, operators=frozenset({"olga@lab.example"}))
    report = world.report()
    world.post(replace(DANA, name="Olga", email="olga@lab.example"), "#lkp invalid", to=message_id(report))
    world.read()
    assert Event.objects.filter(report=report, kind="invalid").exists()
    assert further(world) == 0


# --- all of them ---


def test_who_opted_out_hears_no_more(world: World) -> None:
    report = world.report()
    Correspondent.objects.create(address=DANA.email, wish=Wish.OPTED_OUT, since=world.now)
    still_there(world, report, "v9.1-rc5")
    assert further(world) == 1
    assert mails(report)[0].recipients == ["perf-reports@lists.example.org"]


def test_they_wait_for_approval_where_reports_do(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    assert compose_further(world.identity, world.later()) == 1
    assert mails(report)[0].state == OutgoingState.COMPOSED


def test_two_rounds_at_once_put_one_mail_into_the_outbox(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker composes between our look and our row."""
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    from bot.outbox import further as module

    first = module._purpose
    at = world.later()

    def twice(event: Any) -> str:
        monkeypatch.setattr(module, "_purpose", first)
        assert compose_further(world.identity, at, approve_first=False) == 1
        return first(event)

    monkeypatch.setattr(module, "_purpose", twice)
    assert compose_further(world.identity, at, approve_first=False) == 0
    assert len(mails(report)) == 1


def test_limits_put_mails_off_to_a_day_with_room(world: World) -> None:
    house = House(policy=Policy(per_author=1))
    for number in range(3):
        world.ingest(world.result(f"{number}" * 40, f"mm: {number}", id=f"n{number}"))
    compose_due(world.identity, world.now, approve_first=False, house=house)
    days = [mail.not_before.date() if mail.not_before else None for mail in OutgoingMail.objects.order_by("pk")]
    today = world.now.date()
    assert days == [None, today + timedelta(days=1), today + timedelta(days=2)]
    world.ingest(world.result("9" * 40, "mm: 9", id="n9"))
    compose_due(world.identity, world.now, approve_first=False, house=house)
    last = OutgoingMail.objects.latest("pk")
    assert last.not_before
    assert last.not_before.date() == today + timedelta(days=3)


def test_another_robot_was_faster(kernel: Kernel) -> None:
    world = kernel.world
    sha = kernel.git.commit(TITLE)
    told = world.report(TITLE, sha=sha)
    Event.objects.filter(report=told).delete()
    OutgoingMail.objects.all().delete()
    from tracker import history, status

    event = status.Event(key="r", kind=status.Happening.REPORTED, at=world.now, message_id="1@robots.example")
    history.record([history.event_row(told, event, world.now)])
    assert compose_due(world.identity, world.later(), approve_first=False) == 1
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == (
        OutgoingState.HELD,
        "already reported by another robot: <1@robots.example>",
    )


def test_a_fix_was_posted_before_anybody_was_told(world: World) -> None:
    sha = world.commit(TITLE)
    world.ingest(world.result(sha, TITLE))
    report = Report.objects.get()
    from tracker import history, status

    event = status.Event(key="f", kind=status.Happening.FIX_QUEUED, at=world.now, commit="f" * 40, title=FIX)
    history.record([history.event_row(report, event, world.now)])
    compose_due(world.identity, world.later(), approve_first=False)
    assert OutgoingMail.objects.get().reason == "a fix was posted on 2026-09-01, less than 7 days ago"
