"""Events fold to a report state, and a report state to a status text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.domain.events import CLOSED, Awaited, EventData, EventKind, Role, State, Verdict
from tracker.domain.report_state import STEPS, Fix, ReportState, fold, reads_like, remember, status_text

# --- Events fold to a report state, and a report state to a status text ---

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
        ([], "currently not merged, not reported yet"),
        ([H.REPORTED], "currently not merged, no response from author yet"),
        ([H.REPORTED, RC1], "merged at v5.6-rc1, no response from author yet"),
        ([H.REPORTED, (H.LANDED, {})], "merged in the mainline, no response from author yet"),
        ([H.REPORTED, (H.LANDED, {}), RC1], "merged at v5.6-rc1, no response from author yet"),
        ([H.REPORTED, (H.LANDED, {"tag": "v5.6-rc3"}), RC1], "merged at v5.6-rc1, no response from author yet"),
        ([H.RESPONDED], "currently not merged, the author has responded"),
        ([(H.RESPONDED, {"role": "maintainer"})], "currently not merged, a maintainer has responded"),
        ([H.RESPONDED, (H.RESPONDED, {"role": "maintainer"})], "currently not merged, the author has responded"),
        ([(H.WORKING, {"role": "maintainer"})], "currently not merged, a maintainer is working on it"),
        (
            [(H.WORKING, {"role": "maintainer"}), H.RESPONDED],  # "thanks"
            "currently not merged, a maintainer is working on it",
        ),
        (
            [(H.WORKING, {"role": "third_party"}), (H.RESPONDED, {"role": "maintainer"})],
            "currently not merged, a maintainer is working on it",
        ),
        ([(H.WORKING, {"role": "maintainer"}), H.WORKING], "currently not merged, the author is working on it"),
        (
            [(H.ASKED, {"role": "maintainer"}), (H.ANSWERED, {"role": "reporter"})],
            "currently not merged, a maintainer has responded",
        ),
        ([H.WORKING], "currently not merged, the author is working on it"),
        ([H.ASKED], "currently not merged, more information was asked for"),
        ([H.ASKED, (H.ANSWERED, {"role": "reporter"})], "currently not merged, the author has responded"),
        ([H.DISPUTED], "currently not merged, the report is disputed"),
        ([H.FIX_PROPOSED], "currently not merged, a fix is proposed"),
        ([H.FIX_PROPOSED, H.FIX_CONFIRMED], "currently not merged, a fix is proposed and confirmed"),
        ([(H.FIX_QUEUED, {"tree": "tip"})], "currently not merged, a fix is queued in tip"),
        ([H.REPORTED, (H.MERGED, {"tag": "v5.6-rc2"})], "merged after v5.6-rc2, no response from author yet"),
        (
            [(H.MERGED, {"tag": "v5.6-rc2"}), (H.LANDED, {"tag": "v5.6-rc3"}), H.WORKING],
            "merged at v5.6-rc3, the author is working on it",
        ),
        ([H.REPORTED, IN_NEXT], "currently not merged, in linux-next since next-20260301, no response from author yet"),
        ([H.REPORTED, IN_NEXT, RC1], "merged at v5.6-rc1, no response from author yet"),
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


BY_PAT = (H.REPORTED, {"role": "reporter", "remark": "Pat", "title": "5.15 good, 5.16 bad"})
BISECTED_BY_PAT = (H.REPORTED, {"role": "reporter", "remark": "Pat"})
WHERE = "5.15 good, 5.16 bad, not bisected"
FIX = (H.FIX_PROPOSED, {"title": "mm: fix"})
REPORTER, USER = {"role": "reporter"}, {"role": "third_party"}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([BY_PAT], f"{WHERE}, reported by Pat, unanswered"),
        ([BISECTED_BY_PAT], "reported by Pat, unanswered"),
        ([(H.REPORTED, {"remark": "Pat", "title": "not bisected"})], "not bisected, reported by Pat, unanswered"),
        ([BISECTED_BY_PAT, RC1], "merged at v5.6-rc1, reported by Pat, unanswered"),
        ([BY_PAT, H.REPORTED], f"{WHERE}, reported by Pat, unanswered"),  # a robot's, later: the first one counts
        ([BY_PAT, (H.BISECTED, {"commit": "a" * 40})], "reported by Pat, unanswered"),
        ([BY_PAT, (H.CORRECTED, {"commit": "a" * 40})], "reported by Pat, unanswered"),
        (
            [BISECTED_BY_PAT, (H.CORRECTED, {"title": "v5.15..v5.16-rc1"})],
            "v5.15..v5.16-rc1, not bisected, reported by Pat, unanswered",
        ),
        ([BY_PAT, H.RESPONDED], f"{WHERE}, reported by Pat, answered"),
        ([BY_PAT, H.WORKING], f"{WHERE}, a developer is working on a fix"),
        ([BY_PAT, (H.WORKING, REPORTER)], f"{WHERE}, Pat is working on a fix"),
        ([BY_PAT, (H.ASKED, {"remark": "Can you bisect?"})], f'{WHERE}, waiting for Pat: "Can you bisect?"'),
        ([BY_PAT, H.ASKED], f"{WHERE}, waiting for Pat"),
        ([BY_PAT, (H.ASKED, REPORTER)], f"{WHERE}, waiting for an answer"),
        ([BY_PAT, (H.DISPUTED, {"remark": "Lee"})], f"{WHERE}, disputed by Lee"),
        ([BY_PAT, H.DISPUTED], f"{WHERE}, disputed"),
        ([BY_PAT, FIX], f"{WHERE}, a fix is proposed"),
        ([BY_PAT, FIX, (H.FIX_CONFIRMED, REPORTER)], f'{WHERE}, "mm: fix" works for Pat'),
        ([BY_PAT, FIX, (H.FIX_CONFIRMED, USER)], f'{WHERE}, "mm: fix" works for another user'),
        ([BY_PAT, FIX, H.FIX_CONFIRMED], f'{WHERE}, "mm: fix" works for a developer'),
        ([BY_PAT, H.FIX_PROPOSED, (H.FIX_CONFIRMED, REPORTER)], f"{WHERE}, the proposed fix works for Pat"),
        (
            [BY_PAT, H.RESPONDED, FIX, (H.FIX_FAILED, REPORTER)],
            f'{WHERE}, reported by Pat, "mm: fix" did not help Pat',
        ),
        (
            [BY_PAT, H.RESPONDED, H.FIX_PROPOSED, (H.FIX_FAILED, USER)],
            f"{WHERE}, reported by Pat, the proposed fix did not help another user",
        ),
        ([BY_PAT, H.RESPONDED, FIX, H.FIX_FAILED], f'{WHERE}, reported by Pat, "mm: fix" did not help a developer'),
        (
            [BY_PAT, H.RESPONDED, FIX, H.FIX_FAILED, FIX, H.FIX_CONFIRMED, H.FIX_WITHDRAWN],
            f"{WHERE}, reported by Pat, answered",  # another one did help
        ),
        (
            [BY_PAT, H.RESPONDED, FIX, H.FIX_FAILED, H.DISPUTED, FIX, H.FIX_WITHDRAWN],
            f'{WHERE}, reported by Pat, "mm: fix" did not help a developer',  # talk doesn't change that
        ),
        ([BY_PAT, (H.EXPECTED, {"remark": "Lee"})], f"{WHERE}, intended, says Lee"),
        (
            [BY_PAT, (H.EXPECTED, {"remark": "Lee"}), (H.ASKED, {"remark": "Which config?"})],
            f"{WHERE}, intended, says Lee",  # what is asked afterwards is nobody's statement
        ),
        ([BY_PAT, FIX, (H.FIX_CONFIRMED, REPORTER), H.ASKED], f'{WHERE}, "mm: fix" works for Pat'),
        ([BY_PAT, (H.INVALID, REPORTER), (H.DISPUTED, {"remark": "Lee"})], f"{WHERE}, withdrawn by Pat"),
        ([BY_PAT, H.EXPECTED], f"{WHERE}, intended"),
        ([BY_PAT, (H.INVALID, REPORTER)], f"{WHERE}, withdrawn by Pat"),
        ([BY_PAT, (H.INVALID, {"remark": "a wrong kernel"})], f"{WHERE}, called invalid: a wrong kernel"),
        ([BY_PAT, H.INVALID], f"{WHERE}, called invalid"),
        ([BY_PAT, (H.DISAPPEARED, {"tag": "v6.15-rc3"})], f"{WHERE}, gone in v6.15-rc3, cause unknown"),
        ([BY_PAT, H.DISAPPEARED], f"{WHERE}, gone, cause unknown"),
        ([BY_PAT, (H.NOTED, {"remark": "see v2"})], f"{WHERE}, reported by Pat, unanswered, see v2"),
        (
            [BISECTED_BY_PAT, RC1, (H.FIX_LANDED, {"tag": "v5.6-rc6"})],
            "merged at v5.6-rc1, the regression has been fixed in v5.6-rc6",
        ),
    ],
)
def test_the_sentence_of_a_persons_report(
    steps: Sequence[tuple[EventKind, dict[str, str]] | EventKind], expected: str
) -> None:
    assert text_of(*steps) == expected


def test_a_person_who_reports_and_fixes_it_is_awaited() -> None:
    assert fold(Verdict.REGRESSION, events_of(BY_PAT, (H.WORKING, REPORTER))).awaited is Awaited.REPORTER
    assert fold(Verdict.REGRESSION, events_of(BY_PAT, H.WORKING)).awaited is Awaited.AUTHOR


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
        merged = kind is H.FIX_MERGED  # and in the next version
        assert (report_state.awaited is Awaited.NOBODY) == (report_state.state in CLOSED or merged), kind


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


# --- What each kind of event adds beside the state, and that it changes nothing else: the whole value is compared ---

NEW = ReportState(Verdict.REGRESSION, State.NO_RESPONSE, awaited=Awaited.AUTHOR)
# Every field is set, so that nothing is lost unseen.
FULL = ReportState(
    Verdict.REGRESSION,
    State.FIX_QUEUED,
    decided_by="k",
    reported_at=DAY,
    responded_at=DAY,
    by=Role.AUTHOR,
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
        (H.TAGGED, {"remark": "numa thp"}, {"tags": "numa thp"}),
        (H.SUCCEEDED, {"remark": "def"}, {"successor": "def"}),
        (H.CORRECTED, {"commit": "c" * 40}, {"corrected": "c" * 40, "bisected": True, "span": ""}),
        (H.CORRECTED, {"title": "v1..v2"}, {"corrected": "v1..v2", "bisected": False, "span": "v1..v2"}),
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
        *((kind, Role.AUTHOR, True) for kind in (H.FIX_PROPOSED, H.EXPECTED, H.INVALID, H.DUPLICATE)),
        *((H.RESPONDED, role, role is Role.MAINTAINER) for role in Role if role is not Role.AUTHOR),
        *((kind, Role.AUTHOR, False) for kind in (H.ANSWERED, H.FIX_QUEUED, H.NOTED, H.REPORTED)),
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


# --- When a report is closed and opened again by commits: several fixes, reverts, a culprit that comes back ---

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
    assert status_text(none, mainline_followed=False) == "the fix has been reverted in v5.9"


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


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-400, "currently not merged, no response from author yet"),
        (6, "currently not merged, no response from author yet"),
        (8, "not known whether it is merged: tree last walked 2020-03-29, no response from author yet"),
    ],
)
def test_what_the_last_walk_can_not_know_is_said(days: int, text: str) -> None:
    walked = datetime(2020, 3, 29, tzinfo=UTC)
    state = replace(NEW, reported_at=walked + timedelta(days=days))
    assert status_text(state, mainline_followed=True, as_of=walked) == text
    landed = replace(state, landing="v5.6", merged=True)
    assert status_text(landed, mainline_followed=True, as_of=walked).startswith("merged at v5.6")
    unsent = replace(state, reported_at=None)
    said = status_text(unsent, mainline_followed=True, as_of=walked, now=walked + timedelta(days=days))
    assert said == text.replace("no response from author yet", "not reported yet")


def test_a_test_that_was_asked_for_before_the_mail_went_out_is_still_owed() -> None:
    asked, mailed = ((H.TEST_ASKED, {"role": "author"}), H.REPORTED)
    state = fold(Verdict.REGRESSION, events_of(asked, mailed))
    assert (state.awaited, state.owes_test) == (Awaited.REPORTER, True)
    assert fold(Verdict.REGRESSION, ()).awaited is Awaited.REPORTER
    assert fold(Verdict.REGRESSION, events_of(mailed)).awaited is Awaited.AUTHOR


def test_a_question_of_the_lab_waits_for_the_author() -> None:
    def event(number: int, kind: EventKind, role: Role) -> EventData:
        return EventData(f"k{number}", kind, datetime(2026, 9, number, tzinfo=UTC), role, message_id=f"{number}@x")

    reported, asked = event(1, EventKind.REPORTED, Role.REPORTER), event(2, EventKind.ASKED, Role.REPORTER)
    state = fold(Verdict.REGRESSION, [reported, asked])
    assert (state.state, state.awaited, state.awaited_since) == (State.NEEDS_INFO, Awaited.AUTHOR, asked.occurred_at)
    answered = fold(Verdict.REGRESSION, [reported, asked, event(3, EventKind.RESPONDED, Role.AUTHOR)])
    assert (answered.state, answered.awaited) == (State.RESPONDED, Awaited.AUTHOR)
    stranger = fold(Verdict.REGRESSION, [reported, asked, event(3, EventKind.RESPONDED, Role.THIRD_PARTY)])
    assert stranger.state is State.NEEDS_INFO
    by_author = fold(Verdict.REGRESSION, [reported, event(2, EventKind.ASKED, Role.AUTHOR)])
    assert (by_author.state, by_author.awaited) == (State.NEEDS_INFO, Awaited.REPORTER)


# --- Several candidates, measured by jobs of the lab ---

ONE, OTHER = (H.FIX_PROPOSED, {"title": "one", "commit": "1" * 40}), (H.FIX_PROPOSED, {"title": "other"})


def by_job(kind: EventKind, mail: str, title: str = "one", result: str = "job/7") -> tuple[EventKind, dict[str, str]]:
    """What the end of a job says of the candidate in a mail."""
    return kind, {"result": result, "title": title, "in_reply_to": mail, "role": "reporter"}


def after(*steps: tuple[EventKind, dict[str, str]] | EventKind) -> ReportState:
    return fold(Verdict.REGRESSION, events_of(*steps))


def test_of_several_candidates_the_one_that_was_measured_to_help_is_the_fix() -> None:
    state = after(ONE, OTHER, by_job(H.FIX_CONFIRMED, "m0"))
    assert (state.state, state.fix, state.fix_measured) == (State.FIX_CONFIRMED, Fix("one", "m0", ""), True)
    assert state.older_fixes == {"m1"}
    assert after(ONE, by_job(H.FIX_CONFIRMED, "m0")).fix == Fix("one", "m0", "1" * 40), "its commit is known"
    assert after(ONE, OTHER, by_job(H.FIX_CONFIRMED, "m9")).fix == Fix("one", "m9", ""), "not that of another"
    unseen = after(OTHER, by_job(H.FIX_CONFIRMED, "m9"))
    assert (unseen.fix, unseen.older_fixes) == (Fix("one", "m9", ""), {"m0"})


def test_a_mail_that_proposes_a_fix_twice_does_not_supersede_it() -> None:
    by_command, by_patch = events_of(H.FIX_PROPOSED, (H.FIX_PROPOSED, {"title": "mm: fix"}))
    by_patch = replace(by_patch, message_id=by_command.message_id)
    tested = EventData(
        "t", H.FIX_CONFIRMED, by_patch.occurred_at + timedelta(days=1), Role.REPORTER, in_reply_to=by_patch.message_id
    )
    state = fold(Verdict.REGRESSION, [by_command, by_patch, tested])
    assert (state.state, state.older_fixes) == (State.FIX_CONFIRMED, frozenset())


@pytest.mark.parametrize("missing", [{"title": ""}, {"result": "a result"}])
def test_a_confirmation_that_does_not_name_its_patch_is_of_none_that_was_superseded(missing: dict[str, str]) -> None:
    state = after(ONE, OTHER, by_job(H.FIX_CONFIRMED, "m0", **missing))
    assert (state.state, state.fix) == (State.FIX_PROPOSED, Fix("other", "m1", ""))


def test_the_failure_of_another_candidate_takes_nothing_from_one_that_helps() -> None:
    helps = (ONE, by_job(H.FIX_CONFIRMED, "m0"))
    assert after(*helps, by_job(H.FIX_FAILED, "m9", "third")).state is State.FIX_CONFIRMED
    assert after(*helps, by_job(H.FIX_FAILED, "m0")).state is State.RESPONDED
    assert after(ONE, by_job(H.FIX_FAILED, "m9", "third")).state is State.RESPONDED, "none helps yet"
    unnamed = (H.FIX_CONFIRMED, {"title": "one", "result": "a result"})
    assert after(unnamed, by_job(H.FIX_FAILED, "m9")).state is State.NO_RESPONSE, "it may well be the same"
    assert after(H.ASKED, by_job(H.FIX_FAILED, "m9")).state is State.RESPONDED, "there is no candidate"


# --- Who is awaited, and since when ---


def test_the_lab_is_awaited_until_it_has_tested() -> None:
    asked = after(H.REPORTED, H.TEST_ASKED)
    assert (asked.awaited, asked.owes_test) == (Awaited.REPORTER, True)
    talk = after(H.REPORTED, H.TEST_ASKED, H.RESPONDED, H.ASKED)
    assert (talk.awaited, talk.owes_test) == (Awaited.REPORTER, True)
    answered = after(H.REPORTED, H.TEST_ASKED, H.RESPONDED, (H.ANSWERED, REPORTER))
    assert (answered.awaited, answered.owes_test) == (Awaited.AUTHOR, False)
    assert after(H.RESPONDED).awaited is Awaited.AUTHOR


def test_a_question_about_a_candidate_leaves_it_one() -> None:
    asked = after(ONE, H.ASKED)
    assert (asked.state, asked.awaited, asked.owes_test) == (State.FIX_PROPOSED, Awaited.REPORTER, False)
    by_lab = after(ONE, (H.ASKED, REPORTER))
    assert (by_lab.state, by_lab.awaited) == (State.FIX_PROPOSED, Awaited.AUTHOR)


def test_a_developer_answers_the_lab() -> None:
    answered = after((H.ASKED, REPORTER), H.RESPONDED)
    assert (answered.state, answered.decided_by) == (State.RESPONDED, "e1")
    assert after(H.WORKING, H.RESPONDED).state is State.WORKING


def test_since_when_somebody_is_awaited() -> None:
    day = timedelta(days=1)
    assert after(H.REPORTED).awaited_since == DAY
    assert after(H.REPORTED, H.REPORTED, H.NOTED).awaited_since == DAY
    assert after(H.REPORTED, H.RESPONDED, H.RESPONDED).awaited_since == DAY + day
    assert after(H.REPORTED, H.ASKED, (H.ASKED, REPORTER)).awaited_since == DAY + 2 * day, "another is awaited"
    assert after(H.REPORTED, H.EXPECTED).awaited_since is None


# --- What reads alike ---


def test_people_read_the_same_whenever_it_came_about_and_by_which_event() -> None:
    one, later = after(H.REPORTED, H.WORKING), after(H.REPORTED, H.NOTED, H.WORKING)
    assert (one.decided_by, one.awaited_since) != (later.decided_by, later.awaited_since)
    assert reads_like(one, later)
    landed = (H.FIX_LANDED, {"tag": "v5.6-rc6", "commit": "a" * 40})
    assert reads_like(after(H.REPORTED, landed), after(H.REPORTED, landed, landed))
    assert reads_like(after(ONE, OTHER), after(OTHER, OTHER)), "an older candidate is not shown"
    assert reads_like(after(H.REPORTED, H.EXPECTED), after(H.REPORTED, H.NOTED, H.EXPECTED))
    for other in (H.ASKED, (H.NOTED, {"remark": "see v2"}), (H.WORKING, {"role": "reporter"})):
        assert not reads_like(after(BY_PAT, H.WORKING), after(BY_PAT, H.WORKING, other)), other


def test_a_robots_report_that_a_person_corrected_to_a_range() -> None:
    text = text_of(H.REPORTED, (H.CORRECTED, {"title": "v5.5..v5.6-rc1"}))
    assert text == "v5.5..v5.6-rc1, not bisected, no response from author yet"
