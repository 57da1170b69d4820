"""Culprits and fixes in stable series, the bases of findings, and how pages show them."""

from __future__ import annotations

import random
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from bot.git import repository as git_repository
from bot.git.history import Graph, read_log
from bot.git.repository import Refs, Unreadable, read_refs
from bot.mail.settings import BotSettings
from bot.upstream.tracking import track
from tests.support.world import (
    DANA,
    START,
    TITLE,
    Kernel,
    World,
    build,
    closes,
    history,
    message_id,
    state,
    status_text,
)
from tracker.domain import versions
from tracker.domain.events import TreeRole, Verdict
from tracker.models import Commit, Landing, Release, Report, StableSeries, Tree
from tracker.services import catalog
from tracker.services.report_summary import refresh

# --- The first tag of a commit is the one that git reports, for any shape of history and any order of walks ---

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def graph_of(repository: Path) -> tuple[Graph, Refs]:
    graph, refs = Graph(), read_refs(repository)
    tips = [*refs.branches.values(), *(tag.commit for tag in refs.versions)]
    assert list(read_log(repository, tips, (), graph, lambda author, message: False)) == []
    graph.mark_tags(refs.versions)
    return graph, refs


def every_commit(repository: Path) -> list[str]:
    return git_repository.run(repository, "rev-list", "--all").decode().split()


def described(repository: Path, shas: list[str]) -> dict[str, str]:
    """`git describe --contains` of each, less the way from the tag; "" for those that no tag holds."""
    names = {}
    for sha in shas:
        done = subprocess.run(
            git_repository.command(repository, "describe", "--contains", "--match", "v9.[0-9]*", sha),
            capture_output=True,
            text=True,
        )
        names[sha] = done.stdout.strip().partition("~")[0].partition("^")[0]
    return names


def first_of_tag_contains(repository: Path, sha: str) -> str:
    """The first version that `git tag --contains` lists, in the order of release."""
    names = git_repository.run(repository, "tag", "--contains", sha).decode().split()
    found = sorted((version, name) for name in names if (version := versions.parse(name)))
    return found[0][1] if found else ""


@pytest.mark.long
def test_a_thousand_commits_land_where_git_says(tmp_path: Path) -> None:
    repository = tmp_path / "linux.git"
    build(repository, history(1, 1200))
    shas = random.Random(1).sample(every_commit(repository), 1000)
    merges = git_repository.run(repository, "rev-list", "--all", "--min-parents=3").decode().split()
    roots = git_repository.run(repository, "rev-list", "--all", "--max-parents=0").decode().split()
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
    line = git_repository.run(repository, "rev-list", "--first-parent", "--reverse", "master").decode().split()
    known: set[str] = set()
    for before, merge in pairwise([*line[:1], *line]):
        brought = set(
            git_repository.run(repository, "rev-list", merge, *([f"^{before}"] if known else [])).decode().split()
        )
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
    followed = set(git_repository.run(repository, "rev-list", *heads, "--tags=v9.*").decode().split())
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


# --- Culprits and fixes in stable series, the bases of findings, and how pages show them ---

# --- stable -------------------------------------------------------------------------------------


def test_stable_series_that_carry_the_culprit_without_its_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.git.tag("v9.1")
    for series in ("9.0", "9.1"):
        kernel.git.point(f"linux-{series}.y", kernel.git("rev-parse", f"v{series}^{{commit}}"))
        kernel.git.commit(f"Linux {series}.1", on=f"linux-{series}.y")
        kernel.git.tag(f"v{series}.1", f"linux-{series}.y")
    kernel.walk("linus", "stable")
    assert [str(each) for each in StableSeries.objects.all()] == ["in v9.1.1, fix missing"]
    link = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    fix = kernel.git.commit("mm: charge once", link)
    kernel.git.tag("v9.2-rc1")
    backported = f"commit {report.culprit.sha} upstream."
    kernel.git.commit(TITLE, backported, on="linux-9.0.y")
    kernel.git.tag("v9.0.2", "linux-9.0.y")
    kernel.walk("linus", "stable")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.2-rc1"
    assert [str(each) for each in StableSeries.objects.all()] == ["in v9.1.1, fix missing", "in v9.0.2, fix missing"]
    kernel.git.commit("mm: charge once", f"[ Upstream commit {fix} ]\n\n{link}", on="linux-9.1.y")
    kernel.git.tag("v9.1.2", "linux-9.1.y")
    kernel.walk("stable")
    assert [str(each) for each in StableSeries.objects.all()] == [
        "in v9.1.2, fixed in v9.1.2",
        "in v9.0.2, fix missing",
    ]


# --- pages ---


def test_the_pages_show_where_commits_are_and_how_we_know(
    kernel: Kernel, client: Client, django_assert_num_queries: Any
) -> None:
    report = kernel.merged()
    kernel.git.tag("v9.1")
    kernel.git.point("linux-9.1.y", kernel.git.head("master"))
    kernel.git.commit("Linux 9.1.1", on="linux-9.1.y")
    kernel.git.tag("v9.1.1", "linux-9.1.y")
    fix = kernel.git.commit("mm: <b>charge</b> once", f"Closes: https://lore.kernel.org/r/{message_id(report)}")
    kernel.git.commit("mm: typo", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")')
    kernel.walk("linus", "stable")
    with django_assert_num_queries(14):
        page = client.get(f"/report/{report.tag}/").content.decode()
    assert "in v9.1.1, fix missing" in page
    assert f"<code>{fix[:12]}</code> mm: &lt;b&gt;charge&lt;/b&gt; once" in page
    assert "linus after v9.1" in page
    assert f"Closes: https://lore.kernel.org/r/{message_id(report)}" in page
    assert "fix is missing" not in page
    assert report.culprit.sha in client.get("/v9.1/?stable=missing").content.decode()
    StableSeries.objects.update(fixed_in="v9.1.1")
    refresh([report.pk])
    assert report.culprit.sha not in client.get("/v9.1/?stable=missing").content.decode()
    inbox = client.get("/review/").content.decode()
    assert '"mm: typo" in linus' in inbox
    assert "/help/trees/#suggestions" in inbox
    assert str(kernel.git.path) not in inbox, "where it lies on this machine is for operators"
    assert 'id="suggestions"' in client.get("/help/trees/").content.decode()


# --- bases --------------------------------------------------------------------------------------


def test_the_base_of_a_finding_is_the_version_before_its_parent(kernel: Kernel) -> None:
    kernel.git.tag("v9.1-rc2")
    parent = kernel.git.commit("mm: prepare")
    report = kernel.report(kernel.git.commit(TITLE), parent={"sha": parent, "subject": "mm: prepare"})
    kernel.walk("linus")
    assert {finding.base for finding in report.findings.all()} == {"v9.1-rc2"}
    report.refresh_from_db()
    assert report.base == "v9.1-rc2"  # and the tables show it


def released(kernel: Kernel, series: str = "9.1") -> str:
    """The branch of a new series, at its release."""
    kernel.git.tag(f"v{series}")
    branch = f"linux-{series}.y"
    kernel.git.point(branch, kernel.git.head("master"))
    return branch


def stable(kernel: Kernel, branch: str, *versions: str) -> list[str]:
    """What the series say after these releases."""
    for version in versions:
        kernel.git.commit(f"Linux {version[1:]}", on=branch)
        kernel.git.tag(version, branch)
    kernel.walk("linus", "stable")
    return [str(each) for each in StableSeries.objects.all()]


def test_a_revert_in_stable_is_a_fix_there(kernel: Kernel) -> None:
    report = kernel.merged()
    branch = released(kernel)
    sha = report.culprit.sha
    body = f"This reverts commit {sha} which is\ncommit {sha} upstream.\n\nIt is slow."
    kernel.git.commit(f'Revert "{TITLE}"', body, on=branch)
    assert stable(kernel, branch, "v9.1.1") == ["in v9.1.1, fixed in v9.1.1"]
    assert state(report) == "no_response"  # the mainline still has it


def test_a_fix_that_stable_took_back_is_missing(kernel: Kernel) -> None:
    report = kernel.merged()
    branch = released(kernel)
    fix = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.2-rc1")
    backport = kernel.git.commit("mm: charge once", f"commit {fix} upstream.", on=branch)
    assert stable(kernel, branch, "v9.1.1") == ["in v9.1.1, fixed in v9.1.1"]
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {backport}.", on=branch)
    assert stable(kernel, branch, "v9.1.2") == ["in v9.1.2, fix missing"]


@pytest.mark.parametrize("again", [False, True])
def test_what_was_fixed_and_undone_before_the_release(kernel: Kernel, again: bool) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.1-rc2")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.")
    kernel.git.tag("v9.1-rc3")
    if again:
        kernel.git.commit("mm: charge less", closes(report))
        kernel.git.tag("v9.1-rc4")
    branch = released(kernel)
    assert stable(kernel, branch, "v9.1.1") == ([] if again else ["in v9.1.1, fix missing"])


def test_series_that_came_to_their_end_are_not_told(kernel: Kernel) -> None:
    kernel.merged()
    old = released(kernel)
    assert stable(kernel, old, "v9.1.1") == ["in v9.1.1, fix missing"]
    kernel.git.now += timedelta(days=200)
    kernel.git.commit("Linux 9.2")
    new = released(kernel, "9.2")
    assert stable(kernel, new, "v9.2.1") == ["in v9.2.1, fix missing"]


def test_a_tree_that_is_no_stable_one_any_more_says_nothing(kernel: Kernel) -> None:
    kernel.merged()
    branch = released(kernel)
    assert stable(kernel, branch, "v9.1.1")
    tree = Tree.objects.get(name="stable")
    tree.role, tree.cursor = "maintainer", ""
    tree.save()
    track(tree, kernel.world.settings, kernel.world.now)
    assert not StableSeries.objects.exists()


# --- Git: versions, landings and commits, compared with git's own output; and paths that are no repositories ---


def git(world: World, *arguments: str) -> str:
    who = ["-c", "user.name=k", "-c", "user.email=k@x"]
    return subprocess.check_output(["git", *who, f"--git-dir={world.git.path}", *arguments], text=True).strip()


def test_odd_tags(world: World) -> None:
    world.commit("mm: a")
    world.tag("v9.0")
    world.commit("mm: b")
    world.tag("v9.1-rc1")
    git(world, "branch", "v9.1-rc1", "master")  # a branch of the same name
    git(world, "tag", "-a", "-m", "again", "v9.1-rc2", "v9.1-rc1^{tag}")  # a tag of a tag
    git(world, "tag", "v9.1-rc3", git(world, "rev-parse", "master^{tree}"))  # a tag of a tree
    git(world, "tag", "v9.1-dirty", "master")
    assert [tag.name for tag in read_refs(world.git.path).versions] == ["v9.0", "v9.1-rc1", "v9.1-rc2"]


def test_releases_come_from_tags(world: World) -> None:
    world.commit("a")
    world.tag("v9.0")
    world.commit("b")
    world.tag("v9.1-rc1")
    world.track()
    assert Release.objects.get(version="v9.0").released_at
    assert Release.objects.get(version="v9.1").released_at is None


def test_a_revert_counts_when_a_version_has_it(world: World) -> None:
    report = world.report()
    world.tag("v9.1-rc1")
    world.commit("Revert it", f"This reverts commit {report.culprit.sha[:12]}.")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the fix has been merged after v9.1-rc1"
    world.tag("v9.1-rc2")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"


def test_a_revert_in_a_maintainers_tree_drops_what_is_only_there(world: World) -> None:
    report = world.report()
    world.commit("Revert it", f"This reverts commit {report.culprit.sha}.")
    world.tag("v9.1-rc1")
    world.track(TreeRole.MAINTAINER, "mm")
    assert (state(report), status_text(report)) == (
        "dropped",
        "the commit has been reverted in mm",
    )
    world.track()
    assert (state(report), status_text(report)) == (
        "dropped",
        "merged at v9.1-rc1, the commit has been reverted in v9.1-rc1",
    )


def test_a_fix_that_credits_our_tagged_address(world: World) -> None:
    report = world.report()
    world.commit("mm: charge once", f"Reported-by: Perfwork <{world.settings.tagged(report.tag)}>")
    world.tag("v9.1-rc1")
    world.track()
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc1"


def test_a_culprit_known_by_ten_digits_gets_its_whole_sha(world: World) -> None:
    report = world.report()
    full_sha = report.culprit.sha
    Commit.objects.filter(pk=report.culprit.pk).update(sha=full_sha[:10])
    world.commit("Revert it", f"This reverts commit {full_sha}.")
    world.tag("v9.1-rc1")
    world.track()
    assert Commit.objects.get(pk=report.culprit.pk).sha == full_sha
    assert state(report) == "dropped"
    assert Landing.objects.filter(commit=report.culprit).count() == 1


def test_a_table_is_searched_for_the_digits_that_a_tree_has_told(world: World) -> None:
    world.commit("mm: other")
    world.track()
    report = world.report()
    full_sha = report.culprit.sha
    world.track()  # all is known by now but the digits
    Commit.objects.filter(pk=report.culprit.pk).update(sha=full_sha[:10])
    refresh([report.pk])
    world.commit("net: nothing to do with it")
    world.track()
    assert full_sha in Report.objects.get(pk=report.pk).words


def test_other_peoples_trailers_fix_nothing(world: World) -> None:
    report = world.report()
    world.commit("net: a", "Closes: https://lore.kernel.org/r/somebody@else\nReported-by: Lee <lee@dev.example>")
    world.commit("net: b", f'Fixes: {report.culprit.sha[:12]} ("mm")')  # a bare Fixes: is no proof
    world.tag("v9.1-rc1")
    world.track()
    assert state(report) == "no_response"


def test_the_culprit_is_never_its_own_fix(world: World) -> None:
    report = world.report()
    link = f"Link: https://lore.kernel.org/r/{message_id(report)}"
    sha = world.git.commit(report.culprit.title, DANA, START + timedelta(days=9), link)
    Commit.objects.filter(pk=report.culprit.pk).update(sha=sha)
    world.tag("v9.1-rc1")
    world.track()
    assert state(report) == "no_response"


@pytest.mark.parametrize("kind", ["missing", "empty", "corrupt"])
def test_what_is_no_repository_is_said_in_a_line(world: World, kind: str, tmp_path: Path) -> None:
    world.commit("a")
    world.tag("v9.0")
    repository = {"missing": tmp_path / "nowhere", "empty": tmp_path, "corrupt": world.git.path}[kind]
    if kind == "corrupt":
        for each in (world.git.path / "objects").glob("??/*"):
            each.chmod(0o644)
            each.write_bytes(b"junk")
    tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(repository))
    with pytest.raises(Unreadable, match=str(repository)) as error:
        track(tree, world.settings, world.now)
    assert "\n" not in str(error.value)
    assert not Release.objects.filter(version="v9.0").exists()


def test_a_shallow_clone_is_refused_with_what_to_do(world: World, tmp_path: Path) -> None:
    for title in ("a", "b", "c"):
        world.commit(title)
    repository = tmp_path / "shallow.git"
    subprocess.run(["git", "clone", "-q", "--bare", "--depth=1", f"file://{world.git.path}", repository], check=True)
    tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(repository))
    with pytest.raises(
        Unreadable, match=r"shallow\.git: a shallow clone lacks the history: run `git fetch --unshallow`"
    ):
        track(tree, world.settings, world.now)


def test_a_broken_clone_inside_another_repository_is_not_mistaken_for_it(world: World, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "outer"], check=True)
    broken = tmp_path / "outer" / "broken.git"
    (broken / "objects").mkdir(parents=True)
    (broken / "HEAD").write_text("ref: refs/heads/master\n")
    tree = Tree.objects.create(name="linus", role=TreeRole.MAINLINE, path=str(broken))
    with pytest.raises(Unreadable, match=r"broken\.git"):
        track(tree, world.settings, world.now)
    assert Report.objects.count() == 0
