"""The first tag of a commit is the one that git reports, for any shape of history and any order of walks."""

from __future__ import annotations

import random
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.history import Graph, read_log
from bot.git.repository import Refs, read_refs
from bot.mail.settings import BotSettings
from bot.upstream.tracking import track
from tests.made_history import build, history
from tracker.domain import versions
from tracker.domain.events import Verdict
from tracker.models import Landing, Tree
from tracker.models.git import TreeRole
from tracker.services import catalog

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def graph_of(repository: Path) -> tuple[Graph, Refs]:
    graph, refs = Graph(), read_refs(repository)
    tips = [*refs.branches.values(), *(tag.commit for tag in refs.versions)]
    assert list(read_log(repository, tips, (), graph, lambda author, message: False)) == []
    graph.mark_tags(refs.versions)
    return graph, refs


def every_commit(repository: Path) -> list[str]:
    return git.run(repository, "rev-list", "--all").decode().split()


def described(repository: Path, shas: list[str]) -> dict[str, str]:
    """`git describe --contains` of each, less the way from the tag; "" for those that no tag holds."""
    names = {}
    for sha in shas:
        done = subprocess.run(
            git.command(repository, "describe", "--contains", "--match", "v9.[0-9]*", sha),
            capture_output=True,
            text=True,
        )
        names[sha] = done.stdout.strip().partition("~")[0].partition("^")[0]
    return names


def first_of_tag_contains(repository: Path, sha: str) -> str:
    """The first version that `git tag --contains` lists, in the order of release."""
    names = git.run(repository, "tag", "--contains", sha).decode().split()
    found = sorted((version, name) for name in names if (version := versions.parse(name)))
    return found[0][1] if found else ""


@pytest.mark.long
def test_a_thousand_commits_land_where_git_says(tmp_path: Path) -> None:
    repository = tmp_path / "linux.git"
    build(repository, history(1, 1200))
    shas = random.Random(1).sample(every_commit(repository), 1000)
    merges = git.run(repository, "rev-list", "--all", "--min-parents=3").decode().split()
    roots = git.run(repository, "rev-list", "--all", "--max-parents=0").decode().split()
    assert len(merges) > 10
    assert len(roots) > 3
    graph, refs = graph_of(repository)
    numbers = {sha: graph.tag_of(sha) for sha in shas}
    ours = {sha: refs.versions[number].name if number >= 0 else "" for sha, number in numbers.items()}
    assert ours == described(repository, shas)
    assert ours == {sha: first_of_tag_contains(repository, sha) for sha in shas}
    assert {versions.parse(name).update for name in ours.values() if name} > {0}  # type: ignore[union-attr]
    assert "" in ours.values()


def test_the_merge_that_brought_a_commit_is_the_first_with_it_on_the_first_parents(tmp_path: Path) -> None:
    repository = tmp_path / "linux.git"
    build(repository, history(3, 400))
    graph, refs = graph_of(repository)
    graph.mark_merges(refs.followed("", every=False).values())
    line = git.run(repository, "rev-list", "--first-parent", "--reverse", "master").decode().split()
    known: set[str] = set()
    for before, merge in pairwise([*line[:1], *line]):
        brought = set(git.run(repository, "rev-list", merge, *([f"^{before}"] if known else [])).decode().split())
        for sha in brought - known:
            found = graph.merge_of(sha)
            assert found
            assert found[0] == merge
        known |= brought
    assert all(graph.merge_of(sha) is None for sha in every_commit(repository) if sha not in known)


@pytest.mark.slow
@pytest.mark.parametrize("role", [TreeRole.MAINLINE, TreeRole.STABLE])
def test_step_by_step_they_land_where_one_walk_says(db: None, tmp_path: Path, role: TreeRole) -> None:
    """Tracked from the beginning, or told of in the middle; walked at every tag, or just once at the end."""
    repository = tmp_path / "linux.git"
    pieces = history(5, 400)
    build(tmp_path / "whole.git", pieces)
    shas = every_commit(tmp_path / "whole.git")
    rng = random.Random(7)
    early, late = rng.sample(shas, 50), rng.sample(shas, 50)
    tree = Tree.objects.create(name="linus", role=role, path=str(repository))
    follow(early, tmp_path / "whole.git")
    half = len(pieces) // 2
    for number in range(len(pieces)):
        build(repository, pieces[number : number + 1])
        if number == half:
            follow(late, tmp_path / "whole.git")
        if number % 3 or number > half:
            track(Tree.objects.get(pk=tree.pk), BotSettings(), NOW)
    track(Tree.objects.get(pk=tree.pk), BotSettings(), NOW)
    ours = dict(Landing.objects.exclude(tag="").values_list("commit__sha", "tag"))
    tracked = sorted({*early, *late})
    heads = ["--branches"] if role == TreeRole.STABLE else ["master"]
    followed = set(git.run(repository, "rev-list", *heads, "--tags=v9.*").decode().split())
    expected = {sha: tag for sha in tracked if (tag := first_of_tag_contains(repository, sha))}
    assert ours == expected
    waiting = set(Landing.objects.filter(tag="").values_list("commit__sha", flat=True))
    assert waiting == {sha for sha in tracked if sha in followed and sha not in expected}


def follow(shas: list[str], full_repository: Path) -> None:
    """Track these culprits. Half of them were written when their first version was made, as far as anybody told, and so
    the walk looks back no further than some tags; of the others nobody told.
    """
    made = {tag.name: tag.at for tag in read_refs(full_repository).versions}
    for number, sha in enumerate(shas):
        written = made.get(first_of_tag_contains(full_repository, sha)) if number % 2 else None
        catalog.report_for(catalog.commit_for(sha, authored_at=written), Verdict.REGRESSION)


def test_a_history_that_git_can_not_read_to_its_end_is_told(tmp_path: Path) -> None:
    repository = tmp_path / "linux.git"
    build(repository, history(1, 50))
    with pytest.raises(Unreadable, match=r"git log: fatal: bad object"):
        list(read_log(repository, ["1" * 40], (), Graph(), lambda author, message: True))
