"""The order in which a branch got its commits: topological, nothing before the merge that brought it."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.git import repository as git
from bot.git.history import git_order, places
from tests.support.world import Linux, build, history


def lines(repository: Path, *arguments: str) -> list[str]:
    return git.run(repository, "rev-list", *arguments).decode().splitlines()


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("order") / "linux.git"
    build(path, history(11, 500))
    return path


def test_a_topic_stands_where_it_was_merged_and_in_its_own_order(tmp_path: Path) -> None:
    linux = Linux(tmp_path / "linux.git")
    base = linux.commit("base")
    topic = [linux.commit("topic 1", on="topic", parents=[base]), linux.commit("topic 2", on="topic")]
    build_before = linux.commit("a build without the topic")
    merge = linux.merge("merge the topic", "topic")
    after = linux.commit("a build with it")
    found = git_order(linux.path, after, [base, *topic, build_before, merge, after])
    assert sorted(found, key=found.__getitem__) == [base, build_before, *topic, merge, after]
    assert (found[merge] - found[topic[0]]).total_seconds() == pytest.approx(0.002)
    assert found[after] == linux.now


def test_what_the_branch_does_not_hold_has_no_place(tmp_path: Path) -> None:
    linux = Linux(tmp_path / "linux.git")
    base = linux.commit("base")
    beside = linux.commit("dropped", on="next", parents=[base])
    assert git_order(linux.path, base, [beside]) == {}
    assert git_order(linux.path, base, []) == {}


def test_no_commit_stands_before_its_parents_nor_before_the_build_without_it(linux: Path) -> None:
    tip = lines(linux, "-1", "master")[0]
    every = lines(linux, tip)
    found = git_order(linux, tip, every)
    assert found.keys() == set(every)
    assert len(set(found.values())) == len(every)
    for sha, *parents in map(str.split, lines(linux, "--parents", tip)):
        assert all(found[parent] < found[sha] for parent in parents)
    for before, merge in pairwise(lines(linux, "--first-parent", "--reverse", tip)):
        for brought in lines(linux, merge, f"^{before}"):
            assert found[before] < found[brought] <= found[merge]


def test_a_part_of_the_history_says_the_same_as_the_whole(linux: Path) -> None:
    """A walk looks at the newest commits only, and at a branch that went on: clocks of the line are right here."""
    line = lines(linux, "--first-parent", "master")
    every = lines(linux, "master")
    heads = git.run(linux, "rev-list", "--topo-order", "--timestamp", "--parents", "master").splitlines()
    right = {sha: 1_500_000_000 + 600 * age for age, sha in enumerate(reversed(line))}
    right_clock = [b"%d %b" % (right.get(head.split()[1].decode(), 1), head.partition(b" ")[2]) for head in heads]
    whole = places(right_clock, every)
    for length in random.Random(2).sample(range(1, len(line)), 12):
        older = set(lines(linux, line[length]))
        part = places([head for head in right_clock if head.split()[1].decode() not in older], every)
        assert part == {sha: at for sha, at in whole.items() if sha not in older}


def test_a_clock_that_is_wrong_moves_no_later_build_beyond_the_tip(tmp_path: Path) -> None:
    linux = Linux(tmp_path / "linux.git")
    base = linux.commit("base")
    at = int(linux.now.timestamp())
    future = linux.write(b"in 2085", [base], raw_dates=(at, 3_650_000_000))
    past = linux.write(b"in 1970", [future], raw_dates=(at, 5))
    tip = linux.commit("now")
    found = git_order(linux.path, tip, [base, future, past, tip])
    assert sorted(found, key=found.__getitem__) == [base, future, past, tip]
    assert max(found.values()) < datetime(2027, 1, 1, tzinfo=UTC)


@settings(max_examples=60, deadline=None)
@given(dates=st.lists(st.integers(-(1 << 62), 1 << 62), min_size=1, max_size=12))
def test_any_dates_keep_the_order(dates: list[int]) -> None:
    shas = [f"{number:040x}" for number in range(len(dates), 0, -1)]
    heads = [
        f"{at} {sha} {parent}".strip().encode() for at, sha, parent in zip(dates, shas, [*shas[1:], ""], strict=True)
    ]
    found = places(heads, shas)
    assert sorted(found, key=found.__getitem__, reverse=True) == shas
