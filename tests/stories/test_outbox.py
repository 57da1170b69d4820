"""Mail that waits in the outbox is checked again before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from bot.compose.policy import Action, Policy, PolicyRule
from bot.notifications import report as composer
from bot.notifications.follow_ups import compose_follow_ups
from bot.notifications.report import compose_due
from bot.outbox.drafts import ComposeConfig
from tests.kernel import TITLE
from tests.outbox import act, claim
from tests.stories.test_thread_mail import OTHER, mails, measured, still_there
from tests.world import DANA, World, message_id
from tracker.domain.events import EventData, EventKind
from tracker.models import BisectResult, Commit, Correspondent, Mailing, OutgoingMail, OutgoingState, Report
from tracker.services import event_log, mail_transitions

ONE_A_DAY = ComposeConfig(policy=Policy(per_author=1))


def culprits(world: World, number: int = 1) -> None:
    for each in range(number):
        world.ingest(world.result(f"{each}" * 40, TITLE if number == 1 else f"mm: {each}", id=f"n{each}"))


def by_itself(world: World, config: ComposeConfig = ONE_A_DAY) -> int:
    return compose_due(world.settings, world.later(), approve_first=False, config=config)


def drop(world: World, report: Report) -> None:
    event = EventData(key="d", kind=EventKind.DROPPED, occurred_at=world.later(), tree="linus", commit="d" * 40)
    event_log.record([event_log.event_row(report, event, world.now)])


def test_a_reminder_that_waits_is_cancelled_when_somebody_answers(world: World) -> None:
    report = world.report()
    still_there(world, report, "v9.1-rc5")
    assert compose_follow_ups(world.settings, world.later()) == 1
    world.post(DANA, "I will look into it.", to=message_id(report))
    world.read()
    compose_follow_ups(world.settings, world.later())
    (mail,) = mails(report)
    assert (mail.state, mail.reason) == (
        OutgoingState.CANCELLED,
        "no longer due: the author has responded",
    )


def test_a_report_that_waits_is_held_when_its_culprit_is_dropped(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    drop(world, Report.objects.get())
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason[:33]) == (OutgoingState.HELD, "closed before any mail was sent: ")


def test_so_is_one_that_was_put_off_to_another_day(world: World) -> None:
    culprits(world, 2)
    by_itself(world)
    late = OutgoingMail.objects.exclude(not_before=None).get()
    drop(world, late.report)
    by_itself(world)
    late.refresh_from_db()
    assert late.state == OutgoingState.HELD


def test_who_opts_out_meanwhile_is_left_out(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.later())
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert mail.recipients == ["perf-reports@lists.example.org"]
    assert [DANA.email, DANA.name, "", "opted out"] in mail.people


def test_what_a_person_holds_is_let_go_by_a_person_alone(world: World) -> None:
    culprits(world)
    compose_due(world.settings, world.later())
    mail = OutgoingMail.objects.get()
    assert act(mail, "hold")
    for held in ("we wait for something", ""):
        Report.objects.update(held=held)
        OutgoingMail.objects.update(stale=True)
        by_itself(world)
        mail.refresh_from_db()
        assert mail.state == OutgoingState.HELD


def test_what_a_rule_held_goes_within_the_limits_once_it_may(world: World) -> None:
    culprits(world, 3)
    by_itself(world, ComposeConfig(policy=Policy(rules=(PolicyRule(Action.HOLD),), per_author=1)))
    assert set(OutgoingMail.objects.values_list("state", "reason")) == {("held", "rule 1 of the policy (every report)")}
    OutgoingMail.objects.update(stale=True)
    by_itself(world)
    rows = OutgoingMail.objects.all()
    assert {row.state for row in rows} == {OutgoingState.APPROVED}
    assert len({row.not_before for row in rows}) == 3


def test_the_quiet_time_after_a_fix_passes(world: World) -> None:
    culprits(world)
    report = Report.objects.get()
    event = EventData(key="f", kind=EventKind.FIX_PROPOSED, occurred_at=world.later(), commit="f" * 40, title="a fix")
    event_log.record([event_log.event_row(report, event, world.now)])
    by_itself(world)
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == ("held", "a fix was posted on 2026-09-01, less than 7 days ago")
    world.later(24 * 7)
    by_itself(world)
    mail.refresh_from_db()
    assert (mail.state, mail.reason, mail.not_before) == ("approved", "", None)


@pytest.mark.parametrize("before", ["composed", "composed again"])
def test_what_is_found_while_a_mail_is_composed_is_told_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    culprits(world)
    if before == "composed again":
        compose_due(world.settings, world.later())
        OutgoingMail.objects.update(stale=True)
    report, real = Report.objects.get(), composer.compose

    def slowly(*arguments: Any) -> Any:
        monkeypatch.setattr(composer, "compose", real)
        world.ingest(measured(world, report, 500, 505, 495, id="2", machine=OTHER))
        return real(*arguments)

    monkeypatch.setattr(composer, "compose", slowly)
    by_itself(world)
    if before == "composed":
        mail = OutgoingMail.objects.get()
        mail_transitions.mark_sent(mail.message_id, world.now, world.now)
        OutgoingMail.objects.update(stale=True)
        assert compose_follow_ups(world.settings, world.later(), approve_first=False) == 1
    else:
        by_itself(world)
        assert "lab7-m2" in OutgoingMail.objects.get().body


def test_the_same_patch_in_two_trees_is_told_once_in_one_round(world: World) -> None:
    for name in "12":
        world.ingest(world.result(name * 40, TITLE, id=name, tree={"name": f"t{name}", "branch": "b"}))
    Commit.objects.filter(sha__in=["1" * 40, "2" * 40]).update(patch_message_id="p@dev.example")
    by_itself(world, ComposeConfig())
    assert dict(OutgoingMail.objects.values_list("report__culprit__sha", "reason")) == {
        "1" * 40: "",
        "2" * 40: "the same patch was reported as 1111111111 in t1",
    }


def test_where_a_list_is_addressed_nobody_has_a_limit(world: World) -> None:
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.now)
    culprits(world, 3)
    by_itself(world)
    assert set(OutgoingMail.objects.values_list("not_before", flat=True)) == {None}


# --- what a person decided ---


def test_what_a_person_let_go_is_not_held_again(world: World) -> None:
    culprits(world)
    config = ComposeConfig(policy=Policy(rules=(PolicyRule(Action.HOLD),)))
    by_itself(world, config)
    mail = OutgoingMail.objects.get()
    before = bytes(mail.raw)
    assert act(mail, "approve")
    Correspondent.objects.create(address="x@dev.example", mailing=Mailing.BOUNCING, since=world.later())
    drop(world, mail.report)
    by_itself(world, config)
    mail.refresh_from_db()
    assert (mail.state, mail.stale, bytes(mail.raw) == before) == (OutgoingState.APPROVED, False, True)


def test_what_a_rule_sends_is_looked_at_again_though_the_rest_waits_for_people(world: World) -> None:
    config = ComposeConfig(policy=Policy(rules=(PolicyRule(Action.SEND),), per_author=1))
    culprits(world, 2)
    compose_due(world.settings, world.later(), config=config)
    late = OutgoingMail.objects.exclude(not_before=None).get()
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.later())
    compose_due(world.settings, world.later(), config=config)
    late.refresh_from_db()
    assert (late.state, late.recipients) == (OutgoingState.APPROVED, ["perf-reports@lists.example.org"])


def test_a_hold_by_hand_outlasts_the_quiet_time(world: World) -> None:
    culprits(world)
    event = EventData(key="f", kind=EventKind.FIX_PROPOSED, occurred_at=world.later(), commit="f" * 40, title="a fix")
    event_log.record([event_log.event_row(Report.objects.get(), event, world.now)])
    by_itself(world)
    mail = OutgoingMail.objects.get()
    assert act(mail, "hold")
    world.later(24 * 9)
    by_itself(world)
    mail.refresh_from_db()
    assert mail.state == OutgoingState.HELD


def test_what_a_server_may_have_seen_keeps_its_bytes(world: World) -> None:
    culprits(world)
    by_itself(world)
    mail = OutgoingMail.objects.get()
    (mail,) = claim(world.now)
    mail_transitions.mark_in_doubt(mail, world.now, "gone", "worker")
    assert act(mail, "resend")
    OutgoingMail.objects.update(stale=True, decided_by_person=False)
    world.later(24)
    by_itself(world)
    assert bytes(OutgoingMail.objects.get().raw) == bytes(mail.raw)


def test_what_must_be_looked_at_again_is_not_sent_before(world: World) -> None:
    culprits(world)
    by_itself(world)
    OutgoingMail.objects.update(stale=True)
    assert not claim(world.now)
    by_itself(world)
    assert claim(world.now)


def test_who_was_looked_at_is_not_looked_at_for_ever(world: World, django_assert_num_queries: Any) -> None:
    culprits(world, 3)
    compose_due(world.settings, world.later())
    for report in Report.objects.all():
        drop(world, report)
    Correspondent.objects.create(address=DANA.email, mailing=Mailing.OPTED_OUT, since=world.now)
    compose_due(world.settings, world.later())
    assert set(OutgoingMail.objects.values_list("state", "stale")) == {("held", False)}
    with django_assert_num_queries(6):
        compose_due(world.settings, world.later())


def test_the_same_patch_is_free_again_when_the_other_commit_goes_before_anybody_was_told(world: World) -> None:
    """linux-next is rebased: one commit goes away, the other stays."""
    for name in "12":
        world.ingest(world.result(name * 40, TITLE, id=name, tree={"name": f"t{name}", "branch": "b"}))
    Commit.objects.filter(sha__in=["1" * 40, "2" * 40]).update(patch_message_id="p@dev.example")
    by_itself(world)
    drop(world, Report.objects.get(culprit__sha="1" * 40))
    by_itself(world)
    by_itself(world)
    assert OutgoingMail.objects.get(report__culprit__sha="2" * 40).state == OutgoingState.APPROVED


# --- one odd report harms one report ---


@pytest.mark.parametrize("payload", ["[]", "null", '{"bisect": {"steps": null}}', "{"])
def test_a_result_that_can_t_be_read_holds_its_report_alone(world: World, payload: str) -> None:
    world.ingest(world.result(world.commit("mm: odd"), "mm: odd"))
    BisectResult.objects.update(payload=payload)
    world.ingest(world.result(world.commit("mm: good"), "mm: good"))
    for _ in range(2):
        compose_due(world.settings, world.later(), limit=1)
    assert OutgoingMail.objects.filter(report__culprit__title="mm: good").count() == 1
    odd = Report.objects.get(culprit__title="mm: odd")
    assert odd.held.startswith("composing its mail failed: ") or odd.outgoing.exists()


def test_a_report_without_numbers_stands_in_nobody_s_way(world: World) -> None:
    world.ingest(world.result(world.commit("mm: odd"), "mm: odd"))
    Report.objects.get().findings.update(old_mean=None)
    world.ingest(world.result(world.commit("mm: good"), "mm: good"))
    for _ in range(2):
        compose_due(world.settings, world.later(), limit=1)
    assert OutgoingMail.objects.get().report.culprit.title == "mm: good"
    assert Report.objects.get(culprit__title="mm: odd").held.endswith("all its findings are held")
