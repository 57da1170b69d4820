"""Reverts, reverts of reverts, and reports that are fixed by several commits."""

from __future__ import annotations

import pytest

from tests.kernel import TITLE, Kernel, closes
from tests.world import LEE, message_id, state, status_text
from tracker.models import Decision, Suggestion
from tracker.services import report_actions

# --- reverts ------------------------------------------------------------------------------------


def test_a_revert_of_a_revert_brings_the_regression_back(kernel: Kernel) -> None:
    report = kernel.merged()
    revert = kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {report.culprit.sha}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"
    again = kernel.git.commit(f'Reapply "{TITLE}"', f"This reverts commit {revert[:12]}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert (state(report), status_text(report)) == (
        "no_response",
        "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc3",
    )
    kernel.git.commit(f'Revert "{TITLE}" once more', f"This reverts commit {again}.")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc4"


def test_all_of_them_in_one_version(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f"Closes: https://lore.kernel.org/r/{message_id(report)}")
    undo = kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc2"
    kernel.git.commit('Reapply "mm: charge once"', f"This reverts commit {undo}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"


def test_a_revert_by_title_alone(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.git.commit(f'Revert "{TITLE}"', "It is too slow.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc2"


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
    assert status_text(report) == "merged at v9.1-rc1, the fix is in linux-next since next-20260920"


# --- several cures ------------------------------------------------------------------------------


def test_one_of_two_fixes_is_taken_back(kernel: Kernel) -> None:
    report = kernel.merged()
    first = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.1-rc2")
    kernel.git.commit("mm: charge less", closes(report))
    kernel.git.tag("v9.1-rc3")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {first}.")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"


def test_a_fix_is_reverted_to_make_room_for_a_better_one(kernel: Kernel) -> None:
    report = kernel.merged()
    first = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.1-rc2")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {first}.")
    kernel.git.commit("mm: charge less", closes(report))
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"


@pytest.mark.parametrize("step_by_step", [True, False])
def test_the_fix_goes_first_and_then_the_culprit(kernel: Kernel, step_by_step: bool) -> None:
    """As kernels do it: what was built upon a commit is reverted before it."""
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.1-rc2")
    if step_by_step:
        kernel.walk("linus")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.")
    kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {report.culprit.sha}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the commit has been reverted in v9.1-rc3"


# --- words that say less ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence",
    [
        "The series which reverts commit {sha} was rejected, so mend it here.",
        "This partially reverts commit {sha}.",
        "No change yet. The next patch reverts commit {sha}.",
    ],
)
def test_what_only_speaks_of_a_revert_is_asked(kernel: Kernel, sentence: str) -> None:
    report = kernel.merged()
    kernel.git.commit("mm: prepare", sentence.format(sha=report.culprit.sha))
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert [(each.rule, each.kind) for each in Suggestion.objects.all()] == [("reverts_in_part", "dropped")]


def test_a_doubtful_revert_of_a_fix_counts_after_a_click(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.commit("mm: back", f"In the end this reverts commit {fix}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "fixed"
    assert report_actions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert status_text(report) == "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc2"


def test_two_commits_are_reverted_at_once(kernel: Kernel) -> None:
    other = kernel.git.commit("mm: another")
    report = kernel.merged()
    kernel.git.commit("mm: back to v9.0", f"This reverts commits {other[:12]} and {report.culprit.sha[:12]}.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert state(report) == "dropped"


def test_the_revert_of_a_whole_merge_is_asked(kernel: Kernel) -> None:
    topic = kernel.git.commit(TITLE, on="topic", parents=[kernel.git.head("master")])
    merge = kernel.git.merge("Merge branch 'topic'", "topic")
    kernel.git.tag("v9.1-rc1")
    report = kernel.report(topic)
    kernel.walk("linus")
    kernel.git.commit("Revert \"Merge branch 'topic'\"", f"This reverts commit {merge}, reversing changes made to x.")
    kernel.walk("linus")
    assert state(report) == "no_response"
    assert Suggestion.objects.get().rule == "reverts_merge"


# --- linux-next ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "reverted"])
def test_a_revert_in_next_that_does_not_stay_drops_nothing(kernel: Kernel, how: str) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    base = kernel.git.head("next")
    revert = kernel.git.commit(f'Revert "{TITLE}"', f"This reverts commit {sha}.", on="next")
    kernel.git.tag("next-20260911", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    assert "the commit has been reverted in linux-next" in status_text(report)
    if how == "left":
        kernel.git.point("next", base)
        kernel.git.commit("net: another", on="next")
    else:
        kernel.git.commit(f'Reapply "{TITLE}"', f"This reverts commit {revert}.", on="next")
    kernel.git.tag("next-20260912", "next")
    kernel.walk("linus", "next")
    assert status_text(report) == "currently not merged, in linux-next since next-20260911, no response from author yet"


def test_a_fix_whose_revert_left_next_is_there_again(kernel: Kernel) -> None:
    report = kernel.merged()
    kernel.git.point("next", kernel.git.head("master"))
    fix = kernel.git.commit("mm: charge once", closes(report), on="next")
    kernel.git.tag("next-20260911", "next")
    kernel.walk("next")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.", on="next")
    kernel.git.tag("next-20260912", "next")
    kernel.walk("next")
    assert status_text(report) == "merged at v9.1-rc1, the fix is gone from linux-next"
    kernel.git.point("next", fix)
    kernel.git.commit("net: another", on="next")
    kernel.git.tag("next-20260913", "next")
    kernel.walk("next")
    assert status_text(report) == "merged at v9.1-rc1, the fix is in linux-next since next-20260911"


def test_the_first_walk_of_next_says_nothing_of_what_is_past_it(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", closes(report))
    kernel.git.tag("v9.1-rc2")
    kernel.git.commit('Revert "mm: charge once"', f"This reverts commit {fix}.")
    kernel.git.tag("v9.1-rc3")
    kernel.walk("linus")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.git.commit("Add next", on="next")
    kernel.git.tag("next-20260920", "next")
    kernel.walk("linus", "next")
    assert status_text(report) == "merged at v9.1-rc1, but the fix has been reverted in v9.1-rc3"
