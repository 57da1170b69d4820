"""Fixes measured by the lab, and withdrawn reports: who is informed, and in which thread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kernel import TITLE
from tests.stories.test_thread_mail import FIX, further, mails, measured, read
from tests.world import DANA, DIFF, LEE, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import Commit, Decision, Event, OutgoingState, Report, Suggestion
from tracker.services import event_log, report_actions

# --- a fix that was measured ---


def measure_fix(world: World, report: Report, with_fix: float, without: float = 700) -> str:
    """The lab measures a commit that says to fix the culprit, against its parent."""
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")\nReported-by: x@y.example')
    world.later(24)
    result = measured(world, report, with_fix, with_fix + 5, with_fix - 5, id=f"fix-{with_fix}")
    result["first_bad"] = {
        "sha": sha,
        "subject": FIX,
        "author": {"name": LEE.name, "email": LEE.email},
        "trailers": [{"tag": "Fixes", "value": report.culprit.sha[:12]}],
    }
    result["measurements"][0]["good"]["samples"] = [without, without + 5, without - 5]
    world.ingest(result)
    return sha


def test_a_range_that_merely_ends_in_a_fix_says_nothing_of_it(world: World) -> None:
    """A tip that is the fix, compared with a version before the culprit: both are fast, since the fix cured it."""
    report = world.report()
    parent = world.commit("mm: before the fix")
    sha = world.commit(FIX, f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")\nReported-by: x@y.example')
    world.track()
    fix = {"sha": sha, "subject": FIX, "trailers": [{"tag": "Fixes", "value": report.culprit.sha[:12]}]}
    result = measured(world, report, 1000, 1005, 995, id="tip", outcome="not-reproduced", bad=fix)
    del result["first_bad"], result["parent"]
    world.ingest(result)
    assert not Event.objects.filter(kind__in=("fix_confirmed", "fix_without_effect")).exists()
    world.ingest({**result, "id": "own", "good": {"sha": parent}})
    assert Event.objects.filter(kind="fix_without_effect").exists(), "compared with its own parent"


@pytest.mark.parametrize(
    ("with_fix", "outcome", "tested"),
    [
        (1000, "We tested this fix. It recovers 100% of the regression", True),
        (850, "We tested this fix. It recovers 50% of the regression", False),
        (702, "We tested this fix. It makes no measurable difference", False),
        (500, "We tested this fix. It makes things worse", False),
    ],
)
def test_a_measured_fix_is_told_with_numbers(world: World, with_fix: float, outcome: str, tested: bool) -> None:
    report = world.report()
    sha = measure_fix(world, report, with_fix)
    assert further(world) == 1
    (mail,) = mails(report, "fix_")
    parsed = read(mail)
    assert outcome in parsed.text
    assert f'fix:     {sha} ("{FIX}")' in parsed.text
    assert f"with fix:      700.00 -> {with_fix if with_fix > 999 else f'{with_fix}.00'} 1/s" in parsed.text
    assert ("\nTested-by: Perfwork <perfbot+" + report.tag in parsed.text) is tested
    assert (mail.state, mail.reason) == (OutgoingState.APPROVED, "")
    assert [each.email for each in parsed.to] == [LEE.email]
    assert DANA.email in [each.email for each in parsed.cc]
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
    parsed = read(mails(report, "fix_")[0])
    assert parsed.in_reply_to == ("fix-1@dev.example",)
    assert parsed.subject == f"Re: [PATCH] {FIX}"


@pytest.mark.parametrize("before", [True, False])
def test_the_tag_never_stands_below_another_patch(world: World, before: bool) -> None:
    report = world.report()

    def post_another() -> None:
        text = f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}"
        world.post(LEE, text, subject="[PATCH] mm/vmscan: quite another thing", message_id="other@dev.example")
        world.read()

    if before:
        post_another()
    measure_fix(world, report, 1000)
    if not before:
        post_another()
    assert further(world) == 1
    parsed = read(mails(report, "fix_")[0])
    assert "\nTested-by:" in parsed.text
    assert parsed.in_reply_to == (message_id(report),)


def test_of_two_versions_nobody_can_tell_which_was_measured(world: World) -> None:
    report = world.report()
    text = f"Closes: https://lore.kernel.org/r/{message_id(report)}\nSigned-off-by: {LEE}\n---\n{DIFF}"
    for version in ("", " v2"):
        world.post(LEE, text, subject=f"[PATCH{version}] {FIX}", message_id=f"fix{version.strip()}@dev.example")
    world.read()
    measure_fix(world, report, 1000)
    assert further(world) == 1
    assert read(mails(report, "fix_")[0]).in_reply_to == (message_id(report),)


def test_a_small_but_certain_gain_is_told_as_such(world: World) -> None:
    report = world.report()
    measure_fix(world, report, 725)
    assert further(world) == 1
    assert "It recovers 8% of the regression" in mails(report, "fix_")[0].body


def test_a_kernel_that_is_no_better_than_the_culprit_s_has_recovered_nothing(world: World) -> None:
    """Without the fix 400, with it 700; the culprit had led from 1000 to 700."""
    report = world.report()
    measure_fix(world, report, 700, without=400)
    assert further(world) == 1
    body = mails(report, "fix_")[0].body
    assert "It helps, but does not recover the regression" in body
    assert "Tested-by" not in body


def test_an_author_who_can_t_be_mailed_keeps_nothing_back(world: World) -> None:
    report = world.report()
    sha = measure_fix(world, report, 1000)
    Commit.objects.filter(sha=sha).update(author_email="lee at dev")
    event = EventData(key="i", kind=EventKind.INVALID, occurred_at=world.later(), actor="olga", remark="a wrong kernel")
    event_log.record([event_log.event_row(report, event, world.now)])
    assert further(world) == 2
    fixed, withdrawn = mails(report)
    assert [each.email for each in read(fixed).to] == [DANA.email]
    assert ["lee at dev", "Lee Park", "", "invalid address"] in fixed.people
    assert 'Reason: "a wrong kernel"' in withdrawn.body


# --- withdrawal ---


def test_a_report_that_was_wrong_is_withdrawn(world: World) -> None:
    report = world.report()
    world.post(LEE, "This report is invalid, the machine was throttled.\n\n#lkp invalid", to=message_id(report))
    world.settings = replace(world.settings, trust_policy="verified")
    world.read()
    suggestion = Suggestion.objects.get(report=report, kind="invalid")
    report_actions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
    assert further(world) == 1
    (mail,) = mails(report)
    assert "Please disregard this report; it was wrong." in read(mail).text
    assert 'Reason: "' in read(mail).text
    assert further(world) == 0


def test_it_is_withdrawn_once_though_somebody_wavers(world: World) -> None:
    """What had not gone out is set aside meanwhile, and comes back as the same mail."""
    report = world.report()
    world.post(LEE, "#lkp invalid", to=message_id(report))
    world.settings = replace(world.settings, trust_policy="verified")
    world.read()
    for _ in range(2):
        suggestion = Suggestion.objects.get(report=report, kind="invalid")
        report_actions.decide(suggestion, Decision.ACCEPTED, "olga", world.later())
        further(world)
        assert mails(report)[0].state == OutgoingState.APPROVED
        report_actions.take_back(suggestion, "olga", world.later())
        further(world)
        assert [mail.state for mail in mails(report)] == [OutgoingState.CANCELLED]


def test_what_the_lab_has_said_itself_is_not_said_again(world: World) -> None:
    world.settings = replace(world.settings, operators=frozenset({"olga@lab.example"}))
    report = world.report()
    world.post(replace(DANA, name="Olga", email="olga@lab.example"), "#lkp invalid", to=message_id(report))
    world.read()
    assert Event.objects.filter(report=report, kind="invalid").exists()
    assert further(world) == 0
