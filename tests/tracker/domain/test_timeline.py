"""What an event says in a sentence: who did what."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain import timeline
from tracker.domain.events import EventData, EventKind, Role, State


def test_every_kind_says_something_with_and_without_its_details() -> None:
    for kind in EventKind:
        for details in ({}, {"tag": "v6.1", "title": "mm: a", "remark": "why", "tree": "mm"}):
            for by_commit in (False, True):
                said = timeline.what(kind, by_commit=by_commit, **details)
                assert said == said.strip()
                assert "{" not in said
    assert set(timeline.LABELS) == set(State)


@pytest.mark.parametrize(
    ("kind", "person", "commit", "tree", "tag", "role", "expected"),
    [
        ("responded", "Dana Brook", "", "", "", Role.AUTHOR, "Dana Brook"),
        ("fix_landed", "", "a" * 40, "linus", "v6.12-rc6", Role.MACHINE, "Mainline"),
        ("fix_landed", "Kim", "", "", "v6.12-rc6", Role.MACHINE, "Mainline"),  # recorded by Kim
        ("fix_queued", "", "a" * 40, "mm", "mm-stable", Role.MACHINE, "mm"),
        ("reported", "", "", "", "", Role.REPORTER, "The lab"),
        ("responded", "", "", "", "", Role.AUTHOR, "Somebody"),  # whose mail is not public
    ],
)
def test_who_did_it(kind: str, person: str, commit: str, tree: str, tag: str, role: str, expected: str) -> None:
    assert timeline.who(kind, person, commit, tree, tag, role) == expected


def test_what_a_person_recorded_of_a_tree_is_theirs() -> None:
    at = datetime(2026, 9, 1, tzinfo=UTC)
    landed = EventData("a", EventKind.FIX_LANDED, at, Role.MACHINE, actor="kim", tag="v6.12-rc6")
    assert timeline.told(landed, "") == ("kim", "recorded that the mainline got the fix in v6.12-rc6")
    queued = replace(landed, kind=EventKind.FIX_GONE, tag="")
    assert timeline.told(queued, "") == ("kim", "recorded that a tree no longer has the fix")
    assert timeline.told(replace(queued, actor="", commit="a" * 40), "") == ("Git", "no longer has the fix")
    seen = replace(landed, actor="", commit="a" * 40)
    assert timeline.told(seen, "") == ("Mainline", "got the fix in v6.12-rc6")


@given(st.sampled_from(EventKind), st.text(), st.text())
def test_what_somebody_wrote_is_never_a_format(kind: EventKind, title: str, remark: str) -> None:
    assert "\n" not in timeline.what(kind, title=title, remark=f"{{0}}{remark}")
