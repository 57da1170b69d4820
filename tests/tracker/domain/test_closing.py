"""When a report is closed and opened again by commits: several fixes, reverts, a culprit that comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tracker.domain.test_remembered import DAY, NEW, event, folded
from tracker.domain.events import Awaited, EventData, EventKind, State, Verdict
from tracker.domain.report_state import Fix, fold, status_text

H = EventKind
FIRST = event(H.FIX_LANDED, commit="f1", tag="v5.7", title="one")
SECOND = event(H.FIX_LANDED, commit="f2", tag="v5.8", title="two")


def revert(commit: str) -> EventData:
    return event(H.FIX_REVERTED, remark=commit, tag="v5.9")


def test_of_two_fixes_the_other_decides_when_one_is_reverted() -> None:
    left = folded(FIRST, SECOND, revert("f1"))
    assert (left.state, left.fix_landing, left.decided_by, left.awaited) == (State.FIXED, "v5.8", "e1", Awaited.NOBODY)
    assert left.fix == Fix("two", "", "f2")
    assert [each.commit for each in left.cures] == ["f2"]
    none = folded(FIRST, SECOND, revert("f1"), revert("f2"))
    assert (none.state, none.fix, none.cures, none.fix_reverted_in) == (State.NO_RESPONSE, None, (), "v5.9")
    assert status_text(none, mainline_followed=False) == "but the fix has been reverted in v5.9"


def test_a_revert_of_the_culprit_decides_when_its_fix_is_reverted() -> None:
    """The culprit was reverted after its fix had landed; then the fix is reverted, too."""
    dropped = event(H.DROPPED, commit="r", tag="v5.8", title="Revert one")
    left = folded(FIRST, dropped, revert("f1"))
    assert (left.state, left.closed_in, left.fix, left.decided_by) == (
        State.DROPPED, "v5.8", Fix("Revert one", "", "r"), "e1")  # fmt: skip


def test_a_merged_culprit_reverted_in_a_tree_is_fixed_there_since_that_day() -> None:
    found = folded(event(H.MERGED), event(H.DROPPED, commit="r", tree="tip", remark="2026-03-02"))
    assert (found.state, found.fix_trees) == (State.FIX_QUEUED, (("tip", "2026-03-02"),))


def test_words_that_it_was_dropped_let_only_a_commit_count_again() -> None:
    said = folded(event(H.DROPPED))
    assert (said.state, said.dropped_by_person, said.fix) == (State.DROPPED, True, None)
    proposed = folded(event(H.DROPPED), event(H.FIX_PROPOSED, title="late"))
    assert (proposed.state, proposed.fix, proposed.dropped_by_person) == (State.DROPPED, None, True)
    proven = folded(event(H.DROPPED), event(H.DROPPED, commit="r", tag="v5.8"))
    assert (proven.state, proven.closed_in, proven.dropped_by_person) == (State.DROPPED, "v5.8", False)
    fixed = folded(FIRST, event(H.DROPPED))
    assert (fixed.state, fixed.dropped_by_person) == (State.FIXED, False)
    assert folded(FIRST, event(H.DROPPED, commit="r")).closed_in == "", "the fix had closed it"


def test_a_candidate_without_a_commit_may_be_without_effect() -> None:
    found = folded(event(H.FIX_PROPOSED, title="one"), event(H.FIX_WITHOUT_EFFECT, commit="f1", result="7"))
    assert (found.state, found.fix) == (State.RESPONDED, None)


@pytest.mark.parametrize(
    ("after", "state", "awaited", "decided_by"),
    [
        (event(H.FIX_GONE, tree="tip"), State.RESPONDED, Awaited.AUTHOR, "e2"),
        (event(H.FIX_GONE, tree="mm"), State.DROPPED, Awaited.NOBODY, "e1"),
        (event(H.NOTED, remark="x"), State.DROPPED, Awaited.NOBODY, "e1"),
        # The mainline has the culprit: its revert in another tree is a fix that waits there.
        (event(H.MERGED), State.FIX_QUEUED, Awaited.MAINTAINER, "e1"),
        (event(H.LANDED, tag="v5.7"), State.FIX_QUEUED, Awaited.MAINTAINER, "e1"),
    ],
)
def test_what_comes_after_a_revert_in_a_tree(after: EventData, state: State, awaited: Awaited, decided_by: str) -> None:
    found = folded(event(H.RESPONDED), event(H.DROPPED, commit="r", tree="tip"), after)
    assert (found.state, found.awaited, found.decided_by) == (state, awaited, decided_by)


def test_a_person_said_that_it_was_dropped_and_then_it_was_merged() -> None:
    state = folded(event(H.DROPPED), event(H.LANDED, tag="v5.7"))
    assert (state.state, state.awaited, state.decided_by) == (State.NO_RESPONSE, Awaited.AUTHOR, "e1")


def test_when_it_was_closed() -> None:
    closed = folded(event(H.RESPONDED), event(H.INVALID), event(H.NOTED, remark="n"))
    assert closed.closed_at == DAY.replace(day=2)
    assert folded(event(H.INVALID), event(H.REOPENED)).closed_at is None
    again = folded(event(H.INVALID), event(H.REOPENED), event(H.EXPECTED))
    assert again.closed_at == DAY.replace(day=3)
    still = folded(event(H.INVALID), event(H.NOTED, remark="n"))
    assert still.closed_at == DAY
    quiet = fold(Verdict.IMPROVEMENT, [])
    assert (quiet.state, quiet.closed_at, quiet.awaited) == (State.NO_ACTION, None, Awaited.NOBODY)
    back = fold(Verdict.IMPROVEMENT, [event(H.INVALID), replace(event(H.REOPENED), key="r")])
    assert (back.state, back.awaited) == (State.NO_ACTION, Awaited.NOBODY)
    assert folded(event(H.NOTED)).verdict is Verdict.REGRESSION


def test_of_two_events_that_undo_each_other_the_earlier_one_stands() -> None:
    """Nobody can record this; a damaged table may hold it."""
    one = event(H.INVALID, reverses="e1")
    two = event(H.NOTED, remark="later", reverses="e0")
    found = folded(one, two)
    assert (found.state, found.remark) == (State.INVALID, "")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"state": State.FIXED, "fix_landing": "v5.8"}, "the regression has been fixed in v5.8"),
        ({"state": State.FIXED}, "the regression has been fixed"),
        ({"state": State.FIXED, "fix_measured": True}, "the regression has been fixed, as measured"),
        ({"state": State.FIXED, "verdict": Verdict.IMPROVEMENT},
         "the change behind the improvement has been corrected"),
        ({"state": State.EXPECTED, "verdict": Verdict.IMPROVEMENT}, "the improvement is expected"),
        ({"state": State.DUPLICATE}, "a duplicate of another report"),
        ({"state": State.DUPLICATE, "duplicate_of": "abc"}, "a duplicate of abc"),
        ({"state": State.FIX_QUEUED}, "a fix is queued"),
        ({"state": State.FIX_QUEUED, "fix_trees": (("mm", ""),)}, "a fix is queued in mm"),
        ({"state": State.FIX_QUEUED, "fix_merged": True}, "the fix has been merged"),
        ({"state": State.FIX_QUEUED, "fix_merged": True, "fix_merged_after": "v5.8-rc1"},
         "the fix has been merged after v5.8-rc1"),
        ({"state": State.NO_ACTION}, "reported"),
        ({"state": State.NO_RESPONSE, "remark": "see the thread"}, "see the thread"),
    ],
)  # fmt: skip
def test_the_sentence_of_a_state(changes: dict[str, object], text: str) -> None:
    assert status_text(replace(NEW, **changes), mainline_followed=False) == text
