"""Reverts, reverts of reverts, and reports that several commits cure."""

from __future__ import annotations

from tests.kernel import TITLE, Kernel
from tests.world import LEE, message_id, standing, state

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
