"""Events fold to a report state, and a report state to a status text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.domain.events import CLOSED, Awaited, EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state import STEPS, ReportState, fold, status_text

H = EventKind
DAY = datetime(2026, 3, 1, tzinfo=UTC)


def events_of(*steps: tuple[EventKind, dict[str, str]] | EventKind) -> list[EventData]:
    """Events a day apart, in this order."""
    events = []
    for number, step in enumerate(steps):
        kind, more = step if isinstance(step, tuple) else (step, {})
        columns = {name: value for name, value in more.items() if name != "role"}
        at, by = DAY + timedelta(days=number), Role(more.get("role", "author"))
        events.append(EventData(f"e{number}", kind, at, by, message_id=f"m{number}", **columns))
    return events


def text_of(*steps: tuple[EventKind, dict[str, str]] | EventKind, verdict: Verdict = Verdict.REGRESSION) -> str:
    return status_text(fold(verdict, events_of(*steps)), mainline_followed=True)


RC1 = (H.LANDED, {"tag": "v5.6-rc1"})
IN_NEXT = (H.IN_NEXT, {"tag": "next-20260301", "tree": "linux-next"})
GONE = (H.GONE, {"tag": "next-20260303", "tree": "linux-next"})
FIX_IN_NEXT = (H.FIX_QUEUED, {"tag": "next-20260302", "tree": "linux-next"})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], "currently not merged, no response from author yet"),
        ([H.REPORTED], "currently not merged, no response from author yet"),
        ([RC1], "merged at v5.6-rc1, no response from author yet"),
        ([(H.LANDED, {})], "merged in the mainline, no response from author yet"),
        ([(H.LANDED, {}), RC1], "merged at v5.6-rc1, no response from author yet"),
        ([(H.LANDED, {"tag": "v5.6-rc3"}), RC1], "merged at v5.6-rc1, no response from author yet"),
        ([H.RESPONDED], "currently not merged, the author has responded"),
        ([H.WORKING], "currently not merged, the author is working on it"),
        ([H.ASKED], "currently not merged, more information was asked for"),
        ([H.ASKED, (H.ANSWERED, {"role": "reporter"})], "currently not merged, the author has responded"),
        ([H.DISPUTED], "currently not merged, the report is disputed"),
        ([H.FIX_PROPOSED], "currently not merged, a fix is proposed"),
        ([H.FIX_PROPOSED, H.FIX_CONFIRMED], "currently not merged, a fix is proposed and confirmed"),
        ([(H.FIX_QUEUED, {"tree": "tip"})], "currently not merged, a fix is queued in tip"),
        ([(H.MERGED, {"tag": "v5.6-rc2"})], "merged after v5.6-rc2, no response from author yet"),
        (
            [(H.MERGED, {"tag": "v5.6-rc2"}), (H.LANDED, {"tag": "v5.6-rc3"}), H.WORKING],
            "merged at v5.6-rc3, the author is working on it",
        ),
        ([IN_NEXT], "currently not merged, in linux-next since next-20260301, no response from author yet"),
        ([IN_NEXT, RC1], "merged at v5.6-rc1, no response from author yet"),
        (
            [IN_NEXT, GONE, H.WORKING],
            "currently not merged, gone from linux-next since next-20260303, the author is working on it",
        ),
        (
            [IN_NEXT, GONE, (H.IN_NEXT, {"tag": "next-20260305"}), H.WORKING],
            "currently not merged, in linux-next since next-20260305, the author is working on it",
        ),
        ([RC1, FIX_IN_NEXT], "merged at v5.6-rc1, the fix is in linux-next since next-20260302"),
        (
            [RC1, FIX_IN_NEXT, (H.FIX_QUEUED, {"tree": "tip"})],
            "merged at v5.6-rc1, the fix is in linux-next since next-20260302",
        ),
        (
            [RC1, (H.FIX_QUEUED, {"tree": "tip"}), (H.FIX_GONE, {"tree": "tip"})],
            "merged at v5.6-rc1, the fix is gone from tip",
        ),
        (
            [RC1, FIX_IN_NEXT, (H.FIX_QUEUED, {"tree": "tip"}), (H.FIX_GONE, {"tree": "linux-next"})],
            "merged at v5.6-rc1, a fix is queued in tip",
        ),
        ([RC1, (H.FIX_MERGED, {"tag": "v5.6-rc2"})], "merged at v5.6-rc1, the fix has been merged after v5.6-rc2"),
        (
            [RC1, (H.FIX_MERGED, {"tag": "v5.6-rc2"}), (H.FIX_GONE, {"tree": "tip"})],
            "merged at v5.6-rc1, the fix has been merged after v5.6-rc2",
        ),
        (
            [RC1, (H.FIX_LANDED, {"tag": "v5.6-rc6"}), (H.FIX_REVERTED, {"tag": "v5.6-rc7"})],
            "merged at v5.6-rc1, but the fix has been reverted in v5.6-rc7",
        ),
        (
            [RC1, (H.FIX_LANDED, {"tag": "v5.6-rc6"}), (H.FIX_REVERTED, {"tag": "v5.6-rc7"}), H.WORKING],
            "merged at v5.6-rc1, the author is working on it",
        ),
        (
            [
                RC1,
                (H.DROPPED, {"tag": "v5.6-rc2", "commit": "a" * 40}),
                (H.FIX_REVERTED, {"tag": "v5.6-rc3", "remark": "a" * 40}),
            ],
            "merged at v5.6-rc1, but the fix has been reverted in v5.6-rc3",
        ),
        ([(H.DROPPED, {"tree": "mm", "commit": "a" * 40})], "currently not merged, the commit has been reverted in mm"),
        ([(H.DROPPED, {"tree": "mm", "commit": "a" * 40}), RC1], "merged at v5.6-rc1, a fix is queued in mm"),
        ([RC1, (H.FIX_LANDED, {"tag": "v5.6-rc6"})], "merged at v5.6-rc1, the regression has been fixed in v5.6-rc6"),
        ([(H.DROPPED, {})], "currently not merged, the commit has been dropped"),
        ([RC1, (H.DROPPED, {"tag": "v5.6-rc2"})], "merged at v5.6-rc1, the commit has been reverted in v5.6-rc2"),
        ([H.EXPECTED], "currently not merged, the regression is expected"),
        ([H.INVALID], "currently not merged, the report was withdrawn"),
        ([(H.DUPLICATE, {"remark": "3b1f0c9d2e"})], "currently not merged, a duplicate of 3b1f0c9d2e"),
        (
            [RC1, (H.DISAPPEARED, {"tag": "v5.6"})],
            "merged at v5.6-rc1, but the regression has disappeared in v5.6",
        ),
        ([RC1, (H.NOTED, {"remark": "cache align issue"})], "merged at v5.6-rc1, cache align issue"),
        (
            [H.WORKING, (H.NOTED, {"remark": "see v2"})],
            "currently not merged, the author is working on it, see v2",
        ),
    ],
)
def test_the_sentence(steps: Sequence[tuple[EventKind, dict[str, str]] | EventKind], expected: str) -> None:
    assert text_of(*[(s[0], dict(s[1])) if isinstance(s, tuple) else s for s in steps]) == expected


@pytest.mark.parametrize("kind", [H.RESPONDED, H.WORKING, H.ASKED, H.DISPUTED])
def test_talk_about_an_improvement_changes_nothing_and_complains_of_nothing(kind: EventKind) -> None:
    assert text_of(RC1, kind, verdict=Verdict.IMPROVEMENT) == "merged at v5.6-rc1"


def test_a_promise_or_thanks_never_moves_a_state_backwards() -> None:
    for late in (H.RESPONDED, H.WORKING, H.ASKED, H.DISPUTED):
        assert fold(Verdict.REGRESSION, events_of(H.FIX_PROPOSED, late)).state is State.FIX_PROPOSED
        assert fold(Verdict.REGRESSION, events_of((H.FIX_LANDED, {"tag": "v5.6"}), late)).state is State.FIXED


def test_a_new_version_of_a_patch_voids_the_confirmation_of_the_old_one() -> None:
    events = events_of(H.FIX_PROPOSED, H.FIX_CONFIRMED, (H.FIX_PROPOSED, {"title": "v2"}))
    report_state = fold(Verdict.REGRESSION, events)
    assert report_state.state is State.FIX_PROPOSED
    assert report_state.fix
    assert report_state.fix.title == "v2"


def test_a_failed_fix_leads_back_to_open() -> None:
    assert fold(Verdict.REGRESSION, events_of(H.FIX_PROPOSED, H.FIX_FAILED)).state is State.RESPONDED
    assert fold(Verdict.IMPROVEMENT, events_of(H.FIX_PROPOSED, H.FIX_FAILED)).state is State.NO_ACTION


def test_what_comes_after_the_fix_does_not_overwrite_it() -> None:
    fixed = (H.FIX_LANDED, {"tag": "v5.6-rc3", "commit": "f1", "title": "the fix"})
    for late in (H.FIX_PROPOSED, H.FIX_FAILED, H.FIX_CONFIRMED, H.FIX_QUEUED, H.DROPPED, H.DUPLICATE):
        report_state = fold(Verdict.REGRESSION, events_of(fixed, (late, {"title": "a backport"})))
        assert report_state.fix
        assert (report_state.fix.commit, report_state.fix_landing) == ("f1", "v5.6-rc3"), late
    again = fold(Verdict.REGRESSION, events_of(fixed, H.REOPENED, (H.FIX_LANDED, {"tag": "v5.8-rc1", "commit": "f2"})))
    assert (again.fix_landing, again.state) == ("v5.8-rc1", State.FIXED)


def test_third_parties_never_make_it_responded() -> None:
    report_state = fold(Verdict.REGRESSION, events_of((H.RESPONDED, {"role": "third_party"})))
    assert report_state.state is State.NO_RESPONSE
    assert report_state.responded_at is None


def test_git_closes_whatever_people_said() -> None:
    for kind in (H.EXPECTED, H.INVALID, H.DUPLICATE, H.DROPPED):
        assert fold(Verdict.REGRESSION, events_of(kind, (H.FIX_LANDED, {"tag": "v5.7"}))).state is State.FIXED


def test_somebody_is_awaited_only_while_it_is_open() -> None:
    for kind in STEPS:
        report_state = fold(Verdict.REGRESSION, events_of(H.FIX_PROPOSED, kind))
        assert (report_state.awaited is Awaited.NOBODY) == (report_state.state in CLOSED), kind


@pytest.mark.parametrize(
    ("steps", "awaited"),
    [
        ([H.REPORTED], Awaited.AUTHOR),
        ([H.ASKED], Awaited.REPORTER),
        ([H.ASKED, H.RESPONDED], Awaited.REPORTER),  # who asked still waits
        ([H.ASKED, (H.ANSWERED, {"role": "reporter"})], Awaited.AUTHOR),
        ([H.ASKED, H.ANSWERED], Awaited.AUTHOR),  # the author takes it on himself
        ([H.ASKED, (H.FIX_FAILED, {"role": "reporter"})], Awaited.AUTHOR),
        ([H.DISPUTED], Awaited.REPORTER),
        ([H.DISPUTED, H.RESPONDED], Awaited.AUTHOR),
        ([H.DISPUTED, (H.RESPONDED, {"role": "third_party"})], Awaited.REPORTER),
        ([H.DISPUTED, (H.ANSWERED, {"role": "reporter"})], Awaited.AUTHOR),
        ([H.FIX_PROPOSED], Awaited.REPORTER),
        ([H.RESPONDED, H.TEST_ASKED], Awaited.REPORTER),
        ([H.FIX_PROPOSED, H.FIX_CONFIRMED], Awaited.AUTHOR),
        ([H.FIX_QUEUED], Awaited.MAINTAINER),
        ([H.FIX_QUEUED, H.RESPONDED], Awaited.MAINTAINER),
        ([H.DROPPED, H.ASKED, H.RESPONDED], Awaited.NOBODY),
    ],
)
def test_who_owes_the_next_move(steps: list[EventKind], awaited: Awaited) -> None:
    assert fold(Verdict.REGRESSION, events_of(*steps)).awaited is awaited


def test_a_confirmation_of_an_older_candidate_confirms_nothing() -> None:
    first, second = (H.FIX_PROPOSED, {"title": "v1"}), (H.FIX_PROPOSED, {"title": "v2"})
    of_the_first = (H.FIX_CONFIRMED, {"role": "reporter", "in_reply_to": "m0"})
    of_the_second = (H.FIX_CONFIRMED, {"role": "reporter", "in_reply_to": "m1"})
    assert fold(Verdict.REGRESSION, events_of(first, second, of_the_first)).state is State.FIX_PROPOSED
    assert fold(Verdict.REGRESSION, events_of(first, second, of_the_second)).state is State.FIX_CONFIRMED
    late = (H.FIX_CONFIRMED, {"role": "reporter", "in_reply_to": "m0"})
    gone = (H.FIX_FAILED, {"role": "reporter", "in_reply_to": "m0"})
    assert fold(Verdict.REGRESSION, events_of(first, gone, first, late)).state is State.FIX_PROPOSED
    assert fold(Verdict.REGRESSION, events_of(first, H.DROPPED, H.REOPENED, late)).state is State.RESPONDED
    failed = (H.FIX_FAILED, {"role": "reporter", "in_reply_to": "m0"})
    assert fold(Verdict.REGRESSION, events_of(first, second, failed)).state is State.FIX_PROPOSED


def test_a_confirmation_of_nothing_confirms_nothing() -> None:
    by_lab = (H.FIX_CONFIRMED, {"role": "reporter"})
    named = (H.FIX_CONFIRMED, {"role": "reporter", "title": "mm: fix it"})
    assert fold(Verdict.REGRESSION, events_of(H.RESPONDED, by_lab)).state is State.RESPONDED
    assert fold(Verdict.REGRESSION, events_of(H.RESPONDED, named)).state is State.FIX_CONFIRMED


def test_words_that_a_patch_was_dropped_give_way_to_later_words_but_a_commit_does_not() -> None:
    assert fold(Verdict.REGRESSION, events_of(H.DROPPED, H.EXPECTED)).state is State.EXPECTED
    reverted = (H.DROPPED, {"commit": "abc", "tag": "v5.6-rc2"})
    both = fold(Verdict.REGRESSION, events_of(H.DROPPED, reverted, H.EXPECTED))
    assert (both.state, both.closed_in) == (State.DROPPED, "v5.6-rc2")
    assert fold(Verdict.REGRESSION, events_of(reverted, H.EXPECTED)).state is State.DROPPED


def test_what_one_mail_takes_back_comes_before_what_it_goes_on_with() -> None:
    proposed, rest = EventData("p", H.FIX_PROPOSED, DAY, message_id="m"), DAY + timedelta(days=1)
    rejected = EventData("r", H.FIX_WITHDRAWN, rest, message_id="n")
    working = EventData("w", H.WORKING, rest, message_id="n")
    assert fold(Verdict.REGRESSION, [proposed, working, rejected]).state is State.WORKING


def test_every_state_can_be_reached_and_has_a_phrase() -> None:
    assert {step.to for step in STEPS.values() if step.to} | {State.NO_RESPONSE, State.NO_ACTION} == set(State)
    for state in set(State) - {State.NO_ACTION}:
        assert status_text(ReportState(Verdict.REGRESSION, state), mainline_followed=True) != "currently not merged", (
            state
        )


TAGS = st.sampled_from(["", "v5.6-rc1", "v5.6-rc2", "v5.6", "v5.7-rc1"])
TEXTS = st.sampled_from(["", "a", "b"])


@st.composite
def histories(draw: st.DrawFn) -> list[EventData]:
    """Any events at all, many at the same time, with reversals of any of them, even in circles."""
    number = draw(st.integers(0, 12))
    kinds = [draw(st.sampled_from(list(EventKind))) for _ in range(number)]
    return [
        EventData(
            key=f"k{index}",
            kind=kind,
            occurred_at=DAY + timedelta(hours=draw(st.integers(0, 3))),
            role=draw(st.sampled_from(list(Role))),
            title=draw(TEXTS),
            tag=draw(TAGS),
            remark=draw(TEXTS),
            message_id=draw(TEXTS),
            reverses=f"k{draw(st.integers(0, number))}" if kind is H.REVERSED else "",
        )
        for index, kind in enumerate(kinds)
    ]


VERDICTS = st.sampled_from(list(Verdict))


@given(VERDICTS, histories(), st.randoms(use_true_random=False))
def test_the_order_of_learning_does_not_matter(
    verdict: Verdict, events: list[EventData], chance: random.Random
) -> None:
    shuffled = list(events)
    chance.shuffle(shuffled)
    assert fold(verdict, shuffled) == fold(verdict, events)
    assert status_text(fold(verdict, shuffled), mainline_followed=False)


@given(
    VERDICTS, histories(), st.sampled_from([kind for kind in EventKind if kind is not H.REVERSED]), st.integers(0, 3)
)
def test_undo_restores(verdict: Verdict, events: list[EventData], kind: EventKind, hour: int) -> None:
    done = EventData("done", kind, DAY + timedelta(hours=hour), Role.AUTHOR, message_id="m", tag="v5.6")
    undone = EventData("undone", H.REVERSED, DAY + timedelta(days=9), actor="somebody", reverses="done")
    redone = EventData("redone", H.REVERSED, DAY + timedelta(days=10), actor="somebody", reverses="undone")
    assert fold(verdict, [*events, done, undone]) == fold(verdict, events)
    assert fold(verdict, [*events, done, undone, redone]) == fold(verdict, [*events, done])


@settings(max_examples=20)
@given(st.integers(100, 3000))
def test_a_long_chain_of_undo_and_redo_has_an_end(length: int) -> None:
    chain = [EventData("k0", H.INVALID, DAY, actor="s")]
    chain += [
        EventData(f"k{n}", H.REVERSED, DAY + timedelta(minutes=n), actor="s", reverses=f"k{n - 1}")
        for n in range(1, length)
    ]
    expected = State.INVALID if length % 2 else State.NO_RESPONSE
    assert fold(Verdict.REGRESSION, chain).state is expected


def test_only_the_fix_that_stands_is_without_effect() -> None:
    """A measured failure reopens what that very commit had closed, and nothing that another one did."""
    at = datetime(2026, 9, 1, tzinfo=UTC)
    landed = EventData("landed", H.FIX_LANDED, at, commit="9" * 40, tag="v9.1")
    for commit, expected in (("9" * 40, State.NO_RESPONSE), ("f" * 40, State.FIXED)):
        measured = EventData("measured", H.FIX_WITHOUT_EFFECT, at + timedelta(days=1), commit=commit, result="lab/1")
        assert fold(Verdict.REGRESSION, [landed, measured]).state is expected


@pytest.mark.parametrize(
    ("before", "commit", "measured"),
    [
        (H.FIX_LANDED, "9" * 40, True),
        (H.FIX_QUEUED, "9" * 40, True),
        (H.FIX_LANDED, "f" * 40, False),  # another commit was measured
    ],
)
def test_a_fix_that_is_measured_later_stays_where_it_is_and_is_measured(
    before: EventKind, commit: str, measured: bool
) -> None:
    at = datetime(2026, 9, 1, tzinfo=UTC)
    landed = EventData("landed", before, at, commit="9" * 40, tag="v9.1")
    later = EventData("later", H.FIX_CONFIRMED, at + timedelta(days=9), commit=commit, result="curve 1")
    alone, both = fold(Verdict.REGRESSION, [landed]), fold(Verdict.REGRESSION, [landed, later])
    assert (both.state, both.fix_measured) == (alone.state, measured)


def test_what_has_disappeared_may_come_back() -> None:
    assert fold(Verdict.REGRESSION, events_of(H.DISAPPEARED, H.STILL_THERE)).state is State.NO_RESPONSE
    assert fold(Verdict.REGRESSION, events_of(H.WORKING, H.STILL_THERE)).state is State.WORKING
