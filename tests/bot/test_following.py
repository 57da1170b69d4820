"""Stories of commits that move: from next to the mainline, rebased, dropped, taken back."""

from __future__ import annotations

from tests.kernel import TITLE, Kernel
from tests.world import message_id, standing, state
from tracker import decisions
from tracker.models import Decision, Event, Landing, Suggestion

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
