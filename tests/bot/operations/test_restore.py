"""After a restore, nothing leaves by itself that may have left since the backup."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.notifications.report import compose_due
from bot.operations import _settle
from bot.results.grading import FORGOTTEN
from tests.world import World
from tracker.models import OutgoingMail, OutgoingState, Report
from tracker.services import mail_transitions


def settle(world: World) -> None:
    _settle(world.now - timedelta(days=1), world.now)


@pytest.mark.django_db
def test_what_a_rule_held_waits_for_a_person(world: World) -> None:
    """A person may have approved it since; its reason may be gone by the time that it is checked again."""
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=True)
    reason = "rule 1 of the policy"
    mail_transitions.transition(OutgoingMail.objects.all(), OutgoingState.HELD, "x", world.now, reason, reason=reason)
    settle(world)
    [mail] = OutgoingMail.objects.all()
    assert mail.decided_by_person
    OutgoingMail.objects.update(stale=True, looked_at=None)
    compose_due(world.settings, world.now + timedelta(days=30), approve_first=False)
    assert OutgoingMail.objects.get().state == OutgoingState.HELD


@pytest.mark.django_db
def test_a_report_that_was_held_is_held_for_the_restore_as_well(world: World) -> None:
    """Its reason may have been cleared since, and its mail sent."""
    world.ingest(world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b"))
    Report.objects.filter(culprit__sha="b" * 40).update(held="the samples overlap")
    settle(world)
    settle(world)
    assert sorted(Report.objects.values_list("held", flat=True)) == sorted(
        [FORGOTTEN, f"the samples overlap\n{FORGOTTEN}"]
    )
    clear = world.result("b" * 40, "mm: a", id="clear", created_at=(world.now + timedelta(days=20)).isoformat())
    world.now += timedelta(days=20)
    world.ingest(clear)
    assert FORGOTTEN in Report.objects.get(culprit__sha="b" * 40).held
