"""What the search box offers: fields, names and choices that complete the last term."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain.search import MOST, parse, suggestions

NAMES = {
    "subsystem": ["fs/xfs", "mm", "xfs", "net sched"],
    "metric": ["will-it-scale.per_process_ops", "xfs_io.ops", "wis.ops"],
    "author": ["dana@dev.example"],
    "state": ["open", "no_response"],
}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", []),
        ("x", []),  # one letter says nothing
        ("xf", ["subsystem:xfs", "subsystem:fs/xfs", "metric:xfs_io.ops"]),
        ("su", ["subsystem:", "suite:"]),
        ("will", ["metric:will-it-scale.per_process_ops"]),
        ("process", ["metric:will-it-scale.per_process_ops"]),
        ("subsystem:", ["subsystem:fs/xfs", "subsystem:mm", "subsystem:xfs", 'subsystem:"net sched"']),
        ("subsystem:XF", ["subsystem:xfs", "subsystem:fs/xfs"]),
        ("worse:>10 state:no", ["worse:>10 state:no_response"]),
        ("page -dan", ["page -author:dana@dev.example"]),
        ('subsystem:"net s', ['subsystem:"net sched"']),
        ("subsystem:mm", []),  # it is whole
        ("colour:re", []),
        ("mm " * 100, []),
    ],
)
def test_the_last_term_is_completed(typed: str, offered: list[str]) -> None:
    assert [each.text for each in suggestions(typed, NAMES)] == offered


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=20))
def test_any_text_has_few_suggestions_that_can_be_searched_for(typed: str, names: list[str]) -> None:
    found = suggestions(typed, {"subsystem": names})
    assert len(found) <= MOST
    assert all(each.text != typed for each in found)


@given(st.from_regex(r"[a-z]{2,8}", fullmatch=True))
def test_a_completed_name_is_what_the_search_reads(begun: str) -> None:
    [*_, last] = suggestions(begun, {"subsystem": [f"{begun} and/more"]})
    [term] = parse(last.text).fields
    assert (term.name, term.value) == ("subsystem", f"{begun} and/more")
