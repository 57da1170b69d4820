"""What may be closed by now is suggested with its reason, once; a person closes it, and can undo that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world import World
from tracker.domain.deadlines import closing_of
from tracker.domain.events import OPEN, EventData, EventKind, Role, Verdict
from tracker.domain.report_state import fold
from tracker.models import Decision, Release, Report, Suggestion
from tracker.services import event_log, report_actions
from tracker.services.event_log import suggest_closings

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = timedelta(days=1)


def event(kind: EventKind, days_ago: float, **more: str) -> EventData:
    return EventData(f"{kind}{days_ago}", kind, NOW - days_ago * DAY, **more)  # type: ignore[arg-type]


REPORTED = event(EventKind.REPORTED, 400)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (
            [event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 91)],
            "gone from next since 2026-08-21, and never merged",
        ),
        ([event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 89)], None),
        ([event(EventKind.IN_NEXT, 300), event(EventKind.GONE, 200), event(EventKind.IN_NEXT, 190)], None),
        ([event(EventKind.GONE, 200), event(EventKind.LANDED, 100, tag="v9.1", commit="a" * 40)], None),
        ([event(EventKind.GONE, 200), event(EventKind.EXPECTED, 100, actor="toni")], None),
        ([event(EventKind.IN_NEXT, 300)], None),
        ([], None),
    ],
)
def test_a_culprit_that_left_next(events: list[EventData], reason: str | None) -> None:
    found = closing_of(Verdict.REGRESSION, [REPORTED, *events], None, NOW)
    assert (found.reason if found else None) == reason
    assert found is None or found.kind is EventKind.DROPPED


@pytest.mark.parametrize(("released", "closes"), [(None, False), (NOW - DAY, True), (NOW + DAY, False)])
def test_an_improvement_after_its_release(released: datetime | None, closes: bool) -> None:
    talked_about = [REPORTED, event(EventKind.FIX_PROPOSED, 50, title="x")]
    assert fold(Verdict.IMPROVEMENT, talked_about).state in OPEN
    assert (closing_of(Verdict.IMPROVEMENT, talked_about, released, NOW) is not None) == closes
    assert closing_of(Verdict.IMPROVEMENT, [REPORTED], released, NOW) is None  # closed from the beginning


def test_a_person_decides_once(world: World) -> None:
    report = world.report()
    day = world.now
    for kind, days in ((EventKind.IN_NEXT, 1), (EventKind.GONE, 2)):
        made = EventData(f"{kind}", kind, day + days * DAY, commit=report.culprit.sha, tree="next", role=Role.MACHINE)
        event_log.record([event_log.event_row(report, made, day)])
    assert suggest_closings(day + 50 * DAY) == 0
    assert suggest_closings(day + 100 * DAY) == 1
    assert suggest_closings(day + 101 * DAY) == 0
    [suggestion] = Suggestion.objects.all()
    assert "never merged" in suggestion.quote
    assert report_actions.decide(suggestion, Decision.ACCEPTED, "toni", day + 101 * DAY)
    assert Report.objects.get().state == "dropped"
    assert report_actions.take_back(suggestion, "toni", day + 102 * DAY)
    assert Report.objects.get().state == "no_response"
    suggestion.refresh_from_db()
    assert report_actions.decide(suggestion, Decision.REJECTED, "toni", day + 102 * DAY)
    assert suggest_closings(day + 300 * DAY) == 0


def test_a_suggestion_whose_reason_is_gone_goes(world: World) -> None:
    report = world.report()
    day = world.now
    gone = EventData("g", EventKind.GONE, day + DAY, commit=report.culprit.sha, tree="next", role=Role.MACHINE)
    event_log.record([event_log.event_row(report, gone, day)])
    assert suggest_closings(day + 100 * DAY) == 1
    merged = EventData("m", EventKind.LANDED, day + 101 * DAY, commit=report.culprit.sha, tag="v9.2-rc1")
    event_log.record([event_log.event_row(report, merged, day)])
    assert suggest_closings(day + 102 * DAY) == 0
    assert not Suggestion.objects.exists()


def test_an_improvement_is_closed_as_expected(world: World) -> None:
    report = world.report()
    Report.objects.filter(pk=report.pk).update(verdict="improvement")
    made = EventData("f", EventKind.FIX_PROPOSED, world.later(), actor="toni", title="x")
    event_log.record([event_log.event_row(report, made, world.now)])
    Release.objects.create(version="v9.1", number=90_001_999_0000, released_at=world.now)
    Report.objects.filter(pk=report.pk).update(merged_release="v9.1")
    assert suggest_closings(world.later()) == 1


KINDS = st.sampled_from([EventKind.IN_NEXT, EventKind.GONE, EventKind.MERGED, EventKind.EXPECTED, EventKind.REOPENED])


@given(st.lists(st.tuples(KINDS, st.integers(0, 400)), max_size=8), st.sampled_from(list(Verdict)))
def test_what_is_suggested_closes_it(kinds: list[tuple[EventKind, int]], verdict: Verdict) -> None:
    events = [EventData(f"e{n}", kind, NOW - days * DAY, actor="toni") for n, (kind, days) in enumerate(kinds)]
    if found := closing_of(verdict, events, NOW - DAY, NOW):
        assert fold(verdict, events).state in OPEN
        closed = fold(verdict, [*events, EventData(found.key, found.kind, NOW + DAY, actor="toni")])
        assert closed.state not in OPEN
