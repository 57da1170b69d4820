"""What each kind of event adds beside the state, and that it changes nothing else: the whole value is compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tracker.domain.events import Awaited, EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state import Fix, ReportState, fold, remember, status_text

H = EventKind
DAY = datetime(2026, 3, 1, tzinfo=UTC)
NEW = ReportState(Verdict.REGRESSION, State.NO_RESPONSE, awaited=Awaited.AUTHOR)
# Every field is set, so that nothing is lost unseen.
FULL = ReportState(
    Verdict.REGRESSION,
    State.FIX_QUEUED,
    decided_by="k",
    reported_at=DAY,
    responded_at=DAY,
    merged=True,
    landing="v5.6-rc4",
    fix=Fix("old title", "old@x", "old"),
    older_fixes=frozenset({"first@x"}),
    fix_landing="v5.8-rc2",
    fix_measured=True,
    fix_trees=(("mm", ""), ("linux-next", "2026-03-02")),
    fix_merged=True,
    fix_merged_after="v5.7-rc1",
    fix_gone="mm",
    fix_reverted_in="v5.8",
    closed_in="tip",
    dropped_by_person=True,
    duplicate_of="abc",
    in_next="2026-02-20",
    gone="next-20260221",
    remark="r",
    title="t",
    assignee="kim",
    blocks="v5.9",
)
FORGOTTEN: dict[str, Any] = {
    "fix": None,
    "older_fixes": frozenset({"first@x", "old@x"}),
    "fix_landing": "",
    "fix_measured": False,
    "fix_trees": (),
    "fix_merged": False,
    "fix_gone": "",
    "fix_reverted_in": "",
    "closed_in": "",
    "duplicate_of": "",
    "dropped_by_person": False,
}
SEEN = {"fix_gone": "", "fix_reverted_in": ""}  # by whatever is heard of the fix


def event(kind: EventKind, role: Role = Role.AUTHOR, **columns: str) -> EventData:
    return EventData("key", kind, DAY + timedelta(days=9), role, **{"message_id": "m@x", **columns})


@pytest.mark.parametrize(
    ("kind", "columns", "changes"),
    [
        (H.REPORTED, {}, {}),
        (H.RESPONDED, {}, {}),
        (H.TEST_ASKED, {}, {}),
        (H.IN_NEXT, {"tag": "next-20260301"}, {"in_next": "next-20260301", "gone": ""}),  # a tag is better than a date
        (H.IN_NEXT, {"tag": "2026-03-01"}, {"gone": ""}),
        (H.GONE, {"tag": "next-20260303"}, {"in_next": "", "gone": "next-20260303"}),
        (H.MERGED, {"tag": "v5.6-rc2"}, {"merged_after": "v5.6-rc2"}),
        (H.LANDED, {"tag": "v5.6-rc5"}, {}),
        (H.LANDED, {"tag": "v5.6-rc3"}, {"landing": "v5.6-rc3"}),
        (H.LANDED, {"tag": ""}, {}),
        (H.LANDED, {"tag": "some-tag"}, {}),
        (H.FIX_PROPOSED, {"title": "new"}, {**SEEN, "fix": Fix("new", "m@x", ""), "fix_measured": False,
         "older_fixes": frozenset({"first@x", "old@x"})}),
        (H.FIX_CONFIRMED, {"title": "new"}, {**SEEN, "fix": Fix("new", "old@x", "old"), "fix_measured": False}),
        (H.FIX_CONFIRMED, {"result": "7"}, {**SEEN, "fix_measured": True}),
        (H.FIX_QUEUED, {"tree": "tip", "commit": "new"}, {**SEEN, "fix": Fix("old title", "old@x", "new"),
         "fix_trees": (("mm", ""), ("linux-next", "2026-03-02"), ("tip", ""))}),
        (H.FIX_QUEUED, {"tree": "linux-next", "tag": "2026-03-09"}, {**SEEN}),
        (H.FIX_QUEUED, {"tree": "mm", "tag": "2026-03-09"}, {**SEEN,
         "fix_trees": (("linux-next", "2026-03-02"), ("mm", "2026-03-09"))}),
        (H.FIX_MERGED, {"tag": "v5.8-rc1"}, {**SEEN, "fix_merged_after": "v5.8-rc1"}),
        (H.FIX_LANDED, {"tag": "v5.8-rc1", "commit": "f"}, {**SEEN, "fix": Fix("old title", "old@x", "f"),
         "fix_landing": "v5.8-rc1"}),
        (H.FIX_LANDED, {"tag": "v5.8"}, {**SEEN}),
        *((kind, {"tag": "v5.9"}, FORGOTTEN) for kind in (H.FIX_FAILED, H.FIX_WITHDRAWN, H.FIX_WITHOUT_EFFECT,
          H.STILL_THERE, H.REOPENED, H.UNDUPLICATED)),
        (H.FIX_REVERTED, {"tag": "v5.9"}, {**FORGOTTEN, "fix_reverted_in": "v5.9"}),
        (H.FIX_GONE, {"tree": "mm"}, {"fix_trees": (("linux-next", "2026-03-02"),), "fix_gone": ""}),
        (H.FIX_GONE, {"tree": "tip"}, {"fix_gone": "", "closed_in": ""}),
        (H.DROPPED, {}, {"closed_in": ""}),
        (H.DROPPED, {"tree": "tip"}, {"closed_in": ""}),  # a person who names a tree proves nothing there
        (H.DROPPED, {"tree": "net", "commit": "rev", "title": "Revert"},
         {"closed_in": "net", "dropped_by_person": False, "fix": Fix("Revert", "", "rev")}),
        (H.DISAPPEARED, {"tag": "v5.9-rc1"}, {"closed_in": "v5.9-rc1"}),
        (H.DUPLICATE, {"remark": "def"}, {"duplicate_of": "def"}),
        (H.NOTED, {"remark": "n"}, {"remark": "n"}),
        (H.RETITLED, {"title": "n"}, {"title": "n"}),
        (H.ASSIGNED, {"remark": "lee"}, {"assignee": "lee"}),
        (H.REMINDERS_OFF, {}, {"reminders": False}),
        (H.BLOCKS, {"tag": "v6.0"}, {"blocks": "v6.0"}),
        (H.UNBLOCKED, {}, {"blocks": ""}),
    ],
)  # fmt: skip
def test_what_an_event_adds(kind: EventKind, columns: dict[str, str], changes: dict[str, Any]) -> None:
    assert remember(FULL, event(kind, **columns)) == replace(FULL, **changes)


@pytest.mark.parametrize(
    ("kind", "role", "responded"),
    [
        *((kind, Role.AUTHOR, True) for kind in (H.RESPONDED, H.WORKING, H.ASKED, H.DISPUTED)),
        (H.FIX_PROPOSED, Role.AUTHOR, True),
        *((H.RESPONDED, role, role is Role.MAINTAINER) for role in Role if role is not Role.AUTHOR),
        *((kind, Role.AUTHOR, False) for kind in (H.ANSWERED, H.FIX_QUEUED, H.NOTED, H.EXPECTED, H.REPORTED)),
    ],
)  # fmt: skip
def test_who_answered_first(kind: EventKind, role: Role, responded: bool) -> None:
    state = remember(NEW, event(kind, role))
    assert state.responded_at == (DAY + timedelta(days=9) if responded else None)
    later = replace(event(H.RESPONDED), occurred_at=DAY + timedelta(days=20))
    assert remember(state, later).responded_at == (state.responded_at or later.occurred_at)


def test_when_it_was_first_reported() -> None:
    at = DAY + timedelta(days=9)
    state = remember(NEW, event(H.REPORTED))
    assert state == replace(NEW, reported_at=at)
    assert remember(state, replace(event(H.REPORTED), occurred_at=DAY + timedelta(days=20))) == state


def test_a_fix_is_gone_only_with_its_last_tree() -> None:
    queued = replace(FULL, fix_merged=False)
    assert remember(queued, event(H.FIX_GONE, tree="mm")).fix_gone == ""
    last = replace(queued, fix_trees=(("mm", ""),))
    assert remember(last, event(H.FIX_GONE, tree="mm")).fix_gone == "mm"


@pytest.mark.parametrize(
    ("tags", "first"),
    [
        (("v5.6-rc2", "v5.6-rc2"), "v5.6-rc2"),
        (("v5.6", "v5.6-rc7"), "v5.6-rc7"),
        (("v5.6-rc7", "v5.6"), "v5.6-rc7"),
        (("odd", "v5.6"), "v5.6"),
        (("v5.6", "odd"), "v5.6"),
        (("odd", "odder"), "odd"),
        (("", "odd"), "odd"),
    ],
)
def test_the_earlier_version_is_the_landing(tags: tuple[str, str], first: str) -> None:
    landed = remember(remember(NEW, event(H.LANDED, tag=tags[0])), event(H.LANDED, tag=tags[1]))
    assert (landed.landing, landed.merged) == (first, True)
    fixed = remember(remember(NEW, event(H.FIX_LANDED, tag=tags[0])), event(H.FIX_LANDED, tag=tags[1]))
    assert fixed.fix_landing == first


@pytest.mark.parametrize(
    ("days", "since"),
    [
        (("2026-03-02", "2026-03-01"), "2026-03-02"),  # the first one that was seen
        (("2026-03-02", "next-20260301"), "next-20260301"),
        (("next-20260301", "2026-03-02"), "next-20260301"),
        (("next-20260301", "next-20260228"), "next-20260301"),
        (("", "2026-03-02"), "2026-03-02"),
        (("", ""), ""),
    ],
)
def test_since_when_it_is_in_next(days: tuple[str, str], since: str) -> None:
    state = remember(remember(NEW, event(H.IN_NEXT, tag=days[0])), event(H.IN_NEXT, tag=days[1]))
    assert (state.in_next, state.gone) == (since, "")


def folded(*events: EventData) -> ReportState:
    """Events a day apart, each with a key of its own."""
    apart = [replace(each, key=f"e{n}", occurred_at=DAY + timedelta(days=n)) for n, each in enumerate(events)]
    return fold(Verdict.REGRESSION, apart)


@pytest.mark.parametrize("column", ["title", "commit", "result", "actor", "remark"])
def test_a_confirmation_counts_if_it_says_of_which_fix_or_a_person_gave_it(column: str) -> None:
    assert folded(event(H.FIX_CONFIRMED)).state is State.NO_RESPONSE
    assert folded(event(H.FIX_CONFIRMED, **{column: "x"})).state is State.FIX_CONFIRMED


@pytest.mark.parametrize(
    ("before", "confirmed", "measured"),
    [
        ({"commit": "f"}, {"result": "7", "commit": "f"}, True),
        ({"commit": ""}, {"result": "7", "commit": "f"}, True),  # which commit it is was not known
        ({"commit": "f"}, {"result": "7", "commit": "g"}, False),
        ({"commit": "f"}, {"result": "", "commit": "f"}, False),
    ],
)
@pytest.mark.parametrize("kind", [H.FIX_QUEUED, H.FIX_LANDED])
def test_a_result_measures_the_fix_that_is_on_its_way(
    kind: EventKind, before: dict[str, str], confirmed: dict[str, str], measured: bool
) -> None:
    state = folded(event(kind, **before), event(H.FIX_CONFIRMED, **confirmed))
    assert state.fix_measured is measured
    assert state.state is (State.FIXED if kind is H.FIX_LANDED else State.FIX_QUEUED)
    assert folded(event(kind, **before), event(H.FIX_FAILED, result="7", commit="f")).fix_measured is False


def test_each_state_has_its_own_sentence() -> None:
    texts = {status_text(replace(NEW, state=state), mainline_followed=False) for state in State}
    assert len(texts) == len(State)
