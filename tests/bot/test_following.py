"""Stories of commits that move: from next to the mainline, rebased, dropped, reverted, found again under other shas."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from bot.upstream.tracking import TrackTally, track
from tests.linux import Linux
from tests.world import DANA, DIFF, LEE, World, message_id, standing, state
from tracker import decisions
from tracker.models import Decision, Event, Landing, Report, StableSeries, Suggestion, Tree
from tracker.models.tree import TreeRole

TITLE = "mm/vmscan: walk cold folios first"
ROBOT = "lkp@robots.example"
ROLES = {"linus": TreeRole.MAINLINE, "next": TreeRole.NEXT, "stable": TreeRole.STABLE}


class Kernel:
    """One repository with everybody's branches, followed as so many trees."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.git = Linux(world.place / "kernel.git", world.now)
        self.git.commit("Linux 9.0")
        self.git.tag("v9.0")
        for branch in ("mm", "next"):
            self.git.point(branch, self.git.head("master"))

    def walk(self, *names: str) -> TrackTally:
        """Walk these trees; the last one's tally."""
        self.world.now = max(self.world.now, self.git.now) + timedelta(hours=1)
        tally = TrackTally()
        for name in names:
            branch = {"linus": "", "stable": "linux-*"}.get(name, name)
            tree, _ = Tree.objects.update_or_create(
                name=name,
                defaults={
                    "role": ROLES.get(name, TreeRole.MAINTAINER),
                    "path": str(self.git.path),
                    "branches": branch,
                },
            )
            tally = track(tree, self.world.identity, self.world.now, [self.git.path])
        return tally

    def report(self, sha: str, title: str = TITLE, **changes: object) -> Report:
        return self.world.report(title, sha=sha, **changes)

    def merged(self, title: str = TITLE, body: str = "") -> Report:
        """A culprit in v9.1-rc1, reported."""
        sha = self.git.commit(title, body)
        self.git.tag("v9.1-rc1")
        report = self.report(sha, title)
        self.walk("linus")
        return report


@pytest.fixture
def kernel(world: World) -> Kernel:
    world.identity = replace(world.identity, robots=frozenset({ROBOT}))
    return Kernel(world)


# --- landings -----------------------------------------------------------------------------------


def test_merged_after_a_candidate_until_the_next_one_has_it(kernel: Kernel) -> None:
    kernel.git.tag("v9.1-rc3")
    topic = kernel.git.commit(TITLE, on="topic", parents=[kernel.git.head("master")])
    report = kernel.report(topic)
    kernel.walk("linus")
    assert standing(report) == "currently not merged, no response from author yet"
    merge = kernel.git.merge("Merge branch 'topic'", "topic")
    merged_at = kernel.git.now
    kernel.walk("linus")
    assert standing(report) == "merged after v9.1-rc3, no response from author yet"
    landing = Landing.objects.get()
    assert (landing.tag, landing.after, landing.merge, landing.merged_at) == ("", "v9.1-rc3", merge, merged_at)
    kernel.git.commit("Linux 9.1-rc4")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc4, no response from author yet"
    landing.refresh_from_db()
    assert (landing.tag, landing.merge, landing.merged_at) == ("v9.1-rc4", merge, merged_at)
    assert Event.objects.get(report=report, kind="landed").commit == topic


def test_in_next_since_a_day_then_in_the_mainline(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    assert standing(report) == "currently not merged, in linux-next since next-20260910, no response from author yet"
    kernel.git.merge("Merge mm", "next")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus", "next")
    assert standing(report) == "merged at v9.1-rc1, no response from author yet"


def test_next_is_rebuilt_every_day_and_the_first_day_counts(kernel: Kernel) -> None:
    first = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(first)
    kernel.walk("next")
    for day in ("next-20260911", "next-20260914"):
        kernel.git.point("next", kernel.git.head("master"))
        kernel.git.commit(f"Add the tree of {day}", on="next")
        again = kernel.git.pick(first, on="next")
        kernel.git.tag(day, "next")
        kernel.walk("next")
        assert again != first
        assert (
            standing(report) == "currently not merged, in linux-next since next-20260910, no response from author yet"
        )
    assert not Event.objects.filter(kind="gone").exists()
    assert not Suggestion.objects.exists()


def test_what_leaves_next_without_the_mainline_is_gone_and_may_come_back(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.git.commit("net: another tree", on="next")
    kernel.git.tag("next-20260911", "next")
    kernel.walk("linus", "next")
    assert (
        standing(report)
        == "currently not merged, gone from linux-next since next-20260911, no response from author yet"
    )
    asked = Suggestion.objects.get()
    assert (asked.kind, asked.rule, asked.commit) == ("dropped", "left_next", sha)
    assert asked.quote == f"{sha[:12]} is gone from linux-next since next-20260911"
    kernel.git.pick(sha, on="next")
    kernel.git.tag("next-20260915", "next")
    kernel.walk("linus", "next")
    assert "in linux-next since next-20260915" in standing(report)


def test_a_culprit_that_is_gone_is_dropped_by_a_click(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("next")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.walk("next")
    assert decisions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert state(report) == "dropped"


def test_a_deleted_tag_takes_its_landings_back(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f"Closes: https://lore.kernel.org/r/{message_id(report)}")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    kernel.git.untag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the fix has been merged after v9.1-rc1"
    assert Event.objects.get(kind="reversed").quote == "v9.1-rc2 holds it no longer"
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Landing.objects.get(commit__sha=fix).tag == "v9.1-rc2"


def test_a_forced_push_takes_back_what_was_merged(kernel: Kernel) -> None:
    before = kernel.git.head("master")
    report = kernel.report(kernel.git.commit(TITLE))
    kernel.walk("linus")
    assert standing(report) == "merged after v9.0, no response from author yet"
    kernel.git.point("master", before)
    kernel.git.commit("net: instead")
    kernel.walk("linus")
    assert standing(report) == "currently not merged, no response from author yet"
    assert Landing.objects.get().gone_at


def test_a_maintainer_rebases_his_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    base = kernel.git.head("mm")
    body = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    first = kernel.git.commit("mm: charge once", body, on="mm")
    kernel.walk("mm")
    assert standing(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.point("mm", base)
    kernel.git.commit("mm: another", on="mm")
    kernel.git.pick(first, on="mm")
    kernel.walk("mm")
    assert standing(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.point("mm", base)
    kernel.walk("mm")
    assert (state(report), standing(report)) == ("fix_proposed", "merged at v9.1-rc1, the fix is gone from mm")
    kernel.git.pick(first, on="mm")
    kernel.walk("mm")
    assert standing(report) == "merged at v9.1-rc1, a fix is queued in mm"


def test_a_commit_that_came_by_another_branch_is_not_overlooked(kernel: Kernel) -> None:
    """What stands on a branch that nobody follows is new when it is merged."""
    report = kernel.merged()
    kernel.git.commit("mm: charge once", f"Closes: https://lore.kernel.org/r/{message_id(report)}", on="mm")
    kernel.walk("linus")
    assert state(report) == "no_response"
    kernel.git.merge("Merge mm", "mm")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "fixed"


# --- reverts ------------------------------------------------------------------------------------


def test_a_revert_of_a_revert_brings_the_regression_back(kernel: Kernel) -> None:
    report = kernel.merged()
    revert = kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {report.culprit.sha}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"
    again = kernel.git.commit(f'Reapply "{TITLE}"', f"This reverts commit {revert[:12]}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert (state(report), standing(report)) == (
        "no_response",
        "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc3",
    )
    kernel.git.commit(f'Revert "{TITLE}" once more', f"This reverts commit {again}.")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc4"


def test_all_of_them_in_one_version(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f"Closes: https://lore.kernel.org/r/{message_id(report)}")
    undo = kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc2"
    kernel.git.commit('Reapply "mm: charge once"', f"This reverts commit {undo}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"


def test_a_revert_by_title_alone(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.git.commit(f'Revert "{TITLE}"', "It is too slow.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"


def test_the_sha_of_a_revert_says_more_than_its_title(kernel: Kernel) -> None:
    """Two commits may have one title; the revert of the other one is nothing to us."""
    other = kernel.git.commit(TITLE, "The first attempt.", change="elsewhere.c", author=LEE)
    report = kernel.merged()
    kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {other}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "no_response"


def test_a_revert_in_next_of_what_is_merged_is_a_fix_on_its_way(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.git.point("next", kernel.git.head("master"))
    kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {report.culprit.sha}.", on="next")
    kernel.git.tag("next-20260920", "next")
    kernel.walk("next")
    assert standing(report) == "merged at v9.1-rc1, the fix is in linux-next since next-20260920"


# --- fixes --------------------------------------------------------------------------------------


def test_fixes_with_the_robot_credited_is_a_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    fixes = f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")'
    kernel.git.commit("mm: charge once", f"{fixes}\nReported-by: kernel test robot <{ROBOT}>")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote == fixes


def test_fixes_alone_is_a_suggestion_that_goes_on_after_a_click(kernel: Kernel) -> None:
    report = kernel.merged()
    sha = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")')
    kernel.walk("linus")
    asked = Suggestion.objects.get()
    assert (state(report), asked.kind, asked.rule, asked.commit) == ("no_response", "fix_merged", "fixes_alone", sha)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    asked.refresh_from_db()
    assert (asked.kind, asked.tag) == ("fix_landed", "v9.1-rc2")
    decisions.decide(asked, Decision.ACCEPTED, "mira", kernel.world.now)
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_an_accepted_fix_in_a_maintainers_tree_is_followed_to_its_version(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    decisions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert standing(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.pick(fix, on="master", body="Taken by mail.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus", "mm")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote.startswith(f"the patch-id of {fix[:12]}: ")


def test_a_rejected_suggestion_is_not_asked_again(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    decisions.decide(Suggestion.objects.get(), Decision.REJECTED, "mira", kernel.world.now)
    kernel.git.pick(fix, on="next")
    kernel.walk("next")
    kernel.git.merge("Merge mm", "mm")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus", "next", "mm")
    assert (Suggestion.objects.count(), state(report)) == (1, "no_response")


def test_a_fix_that_was_there_before_the_report(kernel: Kernel) -> None:
    """The robot's mail is read months after the commit that closes it."""
    sha = kernel.git.commit(TITLE)
    kernel.git.tag("v9.1-rc1")
    kernel.git.commit("mm: charge once", "Closes: https://lore.kernel.org/oe-lkp/202609.early@robots.example/")
    kernel.git.commit("Linux 9.1-rc2")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    report = kernel.report(sha)
    report.messages.create(
        message_id="202609.early@robots.example",
        source=report.messages.model.source.field.related_model.objects.create(
            digest="x", compressed=b"", received_at=kernel.world.now
        ),
        kind="robot",
        sent_at=kernel.git.now - timedelta(days=30),
    )
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_a_culprit_much_older_than_anybody_told(kernel: Kernel) -> None:
    """Its author's date lies, and many tags stand behind which nobody looks."""
    sha = kernel.git.commit(TITLE)
    for number in range(1, 5):
        kernel.git.tag(f"v9.1-rc{number}")
        kernel.git.now += timedelta(days=300)
        kernel.git.commit(f"Linux 9.1-rc{number + 1}")
    kernel.walk("linus")
    author = {"name": DANA.name, "email": DANA.email}
    told = {"sha": sha, "subject": TITLE, "author": author, "date": kernel.git.now.isoformat()}
    report = kernel.report(sha, first_bad=told)
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == "v9.1-rc1"


@pytest.mark.parametrize("said", ["mm: charge once", "[PATCH v2 3/7] mm: charge  once", "Re: [PATCH] mm: charge once"])
def test_a_title_that_a_command_names_is_waited_for(kernel: Kernel, said: str) -> None:
    report = kernel.merged()
    kernel.git.commit("mm: charge once", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    kernel.world.post(DANA, f"#lkp fix: {said}", to=message_id(report))
    kernel.world.read()
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_a_fix_with_a_wrong_title_waits_until_the_right_one_is_told(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.world.post(DANA, "#lkp fix: mm: charge onec", to=message_id(report))
    kernel.world.read()
    kernel.git.commit("mm: charge once")
    kernel.git.commit("mm: charge onec more", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert (state(report), Suggestion.objects.count()) == ("fix_proposed", 0)
    kernel.world.post(DANA, "#lkp fix: mm: charge once", to=message_id(report))
    kernel.world.read()
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


@pytest.mark.parametrize(("author", "expected"), [(DANA, "fixed"), (LEE, "fix_proposed")], ids=["author", "another"])
def test_a_posted_patch_is_known_by_title_and_author(kernel: Kernel, author: object, expected: str) -> None:
    report = kernel.merged()
    link = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    kernel.world.post(DANA, f"Charge once.\n\n{link}\n---\n{DIFF}", subject="[PATCH v3] mm: charge once")
    kernel.world.read()
    assert state(report) == "fix_proposed"
    kernel.git.commit("mm: charge once", "The maintainer cut the trailers.", author=author)  # type: ignore[arg-type]
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == expected
    assert [each.rule for each in Suggestion.objects.all()] == ([] if expected == "fixed" else ["title_alone"])


def test_a_patch_elsewhere_that_only_fixes_the_culprit_is_no_thread_of_ours(kernel: Kernel) -> None:
    """Its own Link: leads to a mail that we filed, since it names the culprit; that makes it no fix."""
    report = kernel.merged()
    fixes = f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")'
    kernel.world.post(LEE, f"Typo.\n\n{fixes}\n---\n{DIFF}", subject="[PATCH] mm: typo", message_id="typo@dev.example")
    kernel.world.read()
    kernel.git.commit("mm: typo", f"{fixes}\nLink: https://lore.kernel.org/r/typo@dev.example", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert Suggestion.objects.count() == 1  # the mail asked already


# --- the same patch under another sha -----------------------------------------------------------


def test_a_robots_commit_is_found_in_the_mainline_by_its_patch_id(kernel: Kernel) -> None:
    robots = kernel.git.commit(TITLE, on="0day", parents=[kernel.git.head("master")])
    report = kernel.report(robots)
    kernel.git.commit("net: before it")
    upstream = kernel.git.pick(robots, on="master")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert standing(report) == "merged at v9.1-rc1, no response from author yet"
    landed = Event.objects.get(kind="landed")
    assert (landed.commit, landed.quote[:28]) == (upstream, f"the patch-id of {robots[:12]}")


def test_a_changed_title_hides_no_patch(kernel: Kernel) -> None:
    robots = kernel.git.commit(TITLE, on="0day", parents=[kernel.git.head("master")])
    written = kernel.git.now
    author = {"name": DANA.name, "email": DANA.email}
    told = {"sha": robots, "subject": TITLE, "author": author, "date": written.isoformat()}
    report = kernel.report(robots, first_bad=told)
    kernel.git.commit(
        "mm: vmscan: walk cold folios first", authored=written, change="mm-vmscan--walk-cold-folios-first.c"
    )
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert Report.objects.get(pk=report.pk).landing == ""  # the content differs: only the author and the moment agree
    same = kernel.git.files(robots)["mm-vmscan--walk-cold-folios-first.c"]
    kernel.git.point("master", kernel.git.head("master") and kernel.git("rev-parse", "v9.0^{commit}"))
    kernel.git.write(
        b"mm: vmscan: walk cold folios\n",
        [kernel.git.head("master")],
        {**kernel.git.files("v9.0"), "mm-vmscan--walk-cold-folios-first.c": same},
        authored=written,
    )
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == "v9.1-rc2"


@pytest.mark.parametrize(("author", "landing"), [(DANA, "v9.1-rc1"), (LEE, "")], ids=["his own", "another's"])
def test_where_only_mail_knows_the_culprit_title_and_author_tell(kernel: Kernel, author: object, landing: str) -> None:
    report = kernel.report("c" * 40)
    sha = kernel.git.commit(TITLE, author=author)  # type: ignore[arg-type]
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == landing
    if not landing:
        asked = Suggestion.objects.get()
        assert (asked.kind, asked.rule, asked.commit) == ("same_patch", "title_alone", sha)
        decisions.decide(asked, Decision.ACCEPTED, "mira", kernel.world.now)
        kernel.walk("linus")
        assert standing(report) == "merged at v9.1-rc1, no response from author yet"


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
    assert standing(report) == "merged at v9.1-rc1, the regression has been fixed in v9.2-rc1"
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
    with django_assert_num_queries(13):
        page = client.get(f"/report/{report.tag}/").content.decode()
    assert "in v9.1.1, fix missing" in page
    assert f"<code>{fix[:12]}</code> mm: &lt;b&gt;charge&lt;/b&gt; once" in page
    assert "linus after v9.1" in page
    assert f"Closes: https://lore.kernel.org/r/{message_id(report)}" in page
    assert "fix is missing" not in page
    assert report.culprit.sha in client.get("/v9.1/?stable=missing").content.decode()
    StableSeries.objects.update(fixed_in="v9.1.1")
    assert report.culprit.sha not in client.get("/v9.1/?stable=missing").content.decode()
    inbox = client.get("/inbox/").content.decode()
    assert '"mm: typo" in linus' in inbox
    assert "/help/trees/#suggestions" in inbox
    assert str(kernel.git.path) in inbox
    assert 'id="suggestions"' in client.get("/help/trees/").content.decode()


# --- bases --------------------------------------------------------------------------------------


def test_the_base_of_a_finding_is_the_version_before_its_parent(kernel: Kernel) -> None:
    kernel.git.tag("v9.1-rc2")
    parent = kernel.git.commit("mm: prepare")
    report = kernel.report(kernel.git.commit(TITLE), parent={"sha": parent, "subject": "mm: prepare"})
    kernel.walk("linus")
    assert {finding.base for finding in report.findings.all()} == {"v9.1-rc2"}
