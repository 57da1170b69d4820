"""Git: versions, landings and commits, compared with git's own output; and paths that are no repositories."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from bot.errors import Unreadable
from bot.git.repository import read_refs
from bot.upstream.tracking import track
from tests.world import DANA, START, World, message_id, state, status_text
from tracker.models import Commit, Landing, Release, Report, Tree
from tracker.models.git import TreeRole
from tracker.services.report_summary import refresh


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
