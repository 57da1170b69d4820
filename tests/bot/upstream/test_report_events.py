"""Commits that move: from linux-next to mainline, rebased, dropped, reverted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.demo import DANA
from bot.git.repository import Busy, Unreadable
from bot.mail.addresses import Address
from bot.upstream import backfill, landings
from bot.upstream.landings import LandingState
from bot.upstream.matching import Tracked
from bot.upstream.report_events import View, suggest_again
from bot.upstream.tracking import Patience, follow
from tests.support.rows import NOW, line
from tests.support.world import LEE, ROBOT, TITLE, Kernel, closes, message_id, state, status_text
from tracker.domain.events import EventData, EventKind, TreeRole, Verdict
from tracker.models import Commit, Decision, Event, Landing, Report, Suggestion, Tree
from tracker.services import catalog, event_log, report_actions

# --- Commits that move: from linux-next to mainline, rebased, dropped, reverted ---

# --- landings -----------------------------------------------------------------------------------


def test_merged_after_a_candidate_until_the_next_one_has_it(kernel: Kernel) -> None:
    kernel.git.tag("v9.1-rc3")
    topic = kernel.git.commit(TITLE, on="topic", parents=[kernel.git.head("master")])
    report = kernel.report(topic)
    kernel.walk("linus")
    assert status_text(report) == "currently not merged, no response from author yet"
    merge = kernel.git.merge("Merge branch 'topic'", "topic")
    merged_at = kernel.git.now
    kernel.walk("linus")
    assert status_text(report) == "merged after v9.1-rc3, no response from author yet"
    landing = Landing.objects.get()
    assert (landing.tag, landing.after, landing.merge, landing.merged_at) == ("", "v9.1-rc3", merge, merged_at)
    kernel.git.commit("Linux 9.1-rc4")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc4, no response from author yet"
    landing.refresh_from_db()
    assert (landing.tag, landing.merge, landing.merged_at) == ("v9.1-rc4", merge, merged_at)
    assert Event.objects.get(report=report, kind="landed").commit == topic


def test_nothing_is_said_of_landing_until_a_mainline_tree_was_walked(kernel: Kernel) -> None:
    report = kernel.report(kernel.git.commit(TITLE, on="mm"))
    kernel.walk("mm")
    assert status_text(report) == "no response from author yet"
    kernel.walk("linus")
    assert status_text(report) == "currently not merged, no response from author yet"


def test_git_knows_better_than_a_mail_who_wrote_the_culprit(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE)
    culprit = Commit(sha=sha, author_name="Lee Park", author_email="lee@dev.example", author_from_report=True)
    culprit.save()
    report = catalog.report_for(culprit, Verdict.REGRESSION, authors=["lee@dev.example", "lee park"])
    kernel.walk("linus")
    report.refresh_from_db()
    assert (report.author, report.culprit.title) == (DANA.email, TITLE)
    assert report.authors == sorted([DANA.email, DANA.name.lower(), "lee@dev.example", "lee park"])
    assert not report.culprit.author_from_report


def test_who_signed_the_culprit_speaks_for_it_though_the_report_was_not_sent_to_them(kernel: Kernel) -> None:
    vera, zoe = Address("Vera Holt", "vera@dev.example"), Address("Zoe Hill", "zoe@dev.example")
    sha = kernel.git.commit(TITLE, f"Why.\n\nReported-by: {zoe}\nReviewed-by: {vera} # for mm/\n")
    report = kernel.report(sha)
    Report.objects.update(recipients=[])
    Commit.objects.filter(sha=sha).update(author_from_report=True, trailers=[])
    kernel.walk("linus")
    report = Report.objects.select_related("culprit").get(pk=report.pk)
    assert report.culprit.signers == ["vera@dev.example", "vera holt"]
    for person in (zoe, vera):
        kernel.world.post(person, "I am working on a fix for this regression.", to=message_id(report))
    kernel.world.read()
    assert [event.role for event in Event.objects.filter(kind="working")] == ["maintainer"]


def test_whom_maintainers_lists_speaks_for_a_culprit_that_nobody_signed(kernel: Kernel) -> None:
    """An imported report went to whomever its lab knew; the tree of the culprit says whose files it changes."""
    rita, tim = Address("Rita Moss", "rita@dev.example"), Address("Tim Ash", "tim@dev.example")
    zoe = Address("Zoe Hill", "zoe@dev.example")
    text = f"MM\nM: {rita}\nR: {tim}\nL: mm@lists.example.org\nF: mm/\n\nNET\nM: {zoe}\nF: net/\n"
    files = {"MAINTAINERS": text.encode(), "mm/vmscan.c": b"int a;\n"}
    base = kernel.git.write(b"Start\n", (), {"MAINTAINERS": text.encode()})
    report = kernel.report(kernel.git.write(f"{TITLE}\n".encode(), [base], files))
    Report.objects.update(recipients=[])
    kernel.walk("linus")
    culprit = Commit.objects.get(report=report)
    assert culprit.maintainers == ["rita@dev.example", "rita moss", "tim@dev.example", "tim ash"]
    for person in (rita, tim, zoe):
        kernel.world.post(person, "I am working on a fix for this regression.", to=message_id(report))
    kernel.world.read()
    assert [event.role for event in Event.objects.filter(kind="working")] == ["maintainer"] * 2
    assert rita.email in Report.objects.select_related("culprit").get(pk=report.pk).verified_maintainers


def test_a_tree_is_asked_for_maintainers_once_and_for_some_at_a_time(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "_MAX_MAINTAINERS", 2)
    for number in range(3):
        kernel.report(kernel.git.commit(f"mm: change {number}"))
    kernel.walk("linus")
    assert Commit.objects.filter(maintainers=[]).count() == 2, "no MAINTAINERS in this tree"
    kernel.git.commit("another one")
    kernel.walk("linus")
    assert Commit.objects.filter(maintainers=[]).count() == 3
    monkeypatch.setattr(backfill, "responsible_in", None)
    kernel.git.commit("and one more")
    kernel.walk("linus")


def test_merges_keep_nobody_out(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge has no patch-id, so that each walk asks for it again."""
    monkeypatch.setattr(backfill, "_MAX_INSPECTED", 1)
    for number in range(8):
        merge = kernel.report(kernel.git.commit(f"Merge {number}"))
        Commit.objects.filter(report=merge).update(patch_id="", maintainers=[])
    other = kernel.report(kernel.git.commit("mm: b"))
    assert list(backfill.find(kernel.git.path).commits) == [other.culprit.sha]


def test_a_tree_of_thousands_of_odd_names_is_described(kernel: Kernel) -> None:
    sha = kernel.git.commit("mm: a")
    odd = [f"v4.19.7-rt7-rebase-{number:06}" for number in range(9000)]  # more than one argument may hold
    assert backfill.describe(kernel.git.path, {sha: sha}, odd).keys() <= {sha}


def test_a_culprit_that_can_not_be_read_now_is_asked_for_again(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.report(kernel.git.commit("mm: a change"))

    def unreadable(repository: Path, sha: str) -> object:
        raise Unreadable("git took longer than 60 s")

    with monkeypatch.context() as patch:
        patch.setattr(backfill, "responsible_in", unreadable)
        kernel.walk("linus")
    culprit = Commit.objects.get(report__isnull=False)
    assert (culprit.author_email != "", culprit.maintainers) == (True, None)
    kernel.git.commit("another one")
    kernel.walk("linus")
    assert Commit.objects.get(report__isnull=False).maintainers == []


def test_in_next_since_a_day_then_in_the_mainline(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    assert status_text(report) == "currently not merged, in linux-next since next-20260910, no response from author yet"
    kernel.git.merge("Merge mm", "next")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus", "next")
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"


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
        assert status_text(report) == "in linux-next since next-20260910, no response from author yet"
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
        status_text(report)
        == "currently not merged, gone from linux-next since next-20260911, no response from author yet"
    )
    suggestion = Suggestion.objects.get()
    assert (suggestion.kind, suggestion.rule, suggestion.commit) == ("dropped", "left_next", sha)
    assert suggestion.quote == f"{sha[:12]} gone from linux-next since next-20260911"
    kernel.git.pick(sha, on="next")
    kernel.git.tag("next-20260915", "next")
    kernel.walk("linus", "next")
    assert "in linux-next since next-20260915" in status_text(report)


def test_a_culprit_that_is_gone_is_dropped_by_a_click(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("next")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.walk("next")
    assert report_actions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert state(report) == "dropped"


def test_a_deleted_tag_takes_its_landings_back(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f"Closes: https://lore.kernel.org/r/{message_id(report)}")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    kernel.git.untag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the fix has been merged after v9.1-rc1"
    assert Event.objects.get(kind="reversed").quote == "v9.1-rc2 no longer has it"
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Landing.objects.get(commit__sha=fix).tag == "v9.1-rc2"


def test_a_forced_push_takes_back_what_was_merged(kernel: Kernel) -> None:
    before = kernel.git.head("master")
    report = kernel.report(kernel.git.commit(TITLE))
    kernel.walk("linus")
    assert status_text(report) == "merged after v9.0, no response from author yet"
    kernel.git.point("master", before)
    kernel.git.commit("net: instead")
    kernel.walk("linus")
    assert status_text(report) == "currently not merged, no response from author yet"
    assert Landing.objects.get().gone_at


def test_a_maintainer_rebases_his_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    base = kernel.git.head("mm")
    body = f"Closes: https://lore.kernel.org/r/{message_id(report)}"
    first = kernel.git.commit("mm: charge once", body, on="mm")
    kernel.walk("mm")
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.point("mm", base)
    kernel.git.commit("mm: another", on="mm")
    kernel.git.pick(first, on="mm")
    kernel.walk("mm")
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.point("mm", base)
    kernel.walk("mm")
    assert (state(report), status_text(report)) == ("fix_proposed", "merged at v9.1-rc1, the fix is gone from mm")
    kernel.git.pick(first, on="mm")
    kernel.walk("mm")
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"


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


def test_a_question_about_a_dropped_culprit_ends_when_it_lands(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.git.commit("net: another tree", on="next")
    kernel.git.tag("next-20260911", "next")
    kernel.walk("linus", "next")
    assert Suggestion.objects.get().rule == "left_next"
    kernel.git.merge("Merge it all the same", sha)
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus", "next")
    assert not Suggestion.objects.exists()
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"


def test_what_was_dropped_by_a_click_and_lands_is_open_again(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE, on="next")
    kernel.git.tag("next-20260910", "next")
    report = kernel.report(sha)
    kernel.walk("linus", "next")
    kernel.git.point("next", kernel.git.head("master"))
    kernel.walk("linus", "next")
    report_actions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert state(report) == "dropped"
    kernel.git.now = kernel.world.now
    kernel.git.merge("Merge it all the same", sha)
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"


def test_a_tag_that_comes_late_is_the_first_one_all_the_same(kernel: Kernel) -> None:
    report = kernel.report(kernel.git.commit(TITLE))
    candidate = kernel.git.head("master")
    kernel.git.commit("Linux 9.1-rc4")
    kernel.git.tag("v9.1-rc4")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc4, no response from author yet"
    kernel.git.tag("v9.1-rc3", candidate)
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc3, no response from author yet"


def test_a_tag_and_its_branch_are_taken_back_at_once(kernel: Kernel) -> None:
    before = kernel.git.head("master")
    report = kernel.merged()
    kernel.git.untag("v9.1-rc1")
    kernel.git.point("master", before)
    kernel.git.commit("net: instead")
    kernel.walk("linus")
    assert status_text(report) == "currently not merged, no response from author yet"


def test_a_branch_that_is_rewound_and_merged_anew(kernel: Kernel) -> None:
    base = kernel.git.head("master")
    sha = kernel.git.commit(TITLE, on="topic", parents=[base])
    kernel.report(sha)
    kernel.git.merge("Merge 1", "topic")
    kernel.walk("linus")
    kernel.git.point("master", base)
    kernel.git.commit("net: before it")
    merge = kernel.git.merge("Merge 2", "topic")
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert Landing.objects.get(commit__sha=sha).merge == merge


def test_tags_that_are_no_versions_name_nothing(kernel: Kernel) -> None:
    parent = kernel.git.commit("mm: prepare")
    kernel.git.tag("v9-odd-build")
    kernel.git.tag("v9.1,odd")
    report = kernel.report(kernel.git.commit(TITLE), parent={"sha": parent, "subject": "mm: prepare"})
    kernel.walk("linus")
    assert status_text(report) == "merged after v9.0, no response from author yet"
    assert {finding.base for finding in report.findings.all()} == {"v9.0"}


def test_a_worker_that_lost_its_tree_stores_nothing(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one took over while it walked, and knows more."""
    report = kernel.merged()
    tree = Tree.objects.get(name="linus")
    kernel.git.commit("mm: charge once", closes(report))
    original_walk = landings.walk

    def slow(*arguments: Any) -> landings.Walked:
        walked = original_walk(*arguments)
        Tree.objects.update(holder="elsewhere 1 1")
        monkeypatch.undo()
        return walked

    monkeypatch.setattr(landings, "walk", slow)
    with pytest.raises(Busy, match="another worker took over"):
        follow(tree, kernel.world.settings, kernel.world.now, Patience(None, timedelta(minutes=5)))
    assert state(report) == "no_response"


def test_a_culprit_of_ten_digits_is_known_by_all_of_them(kernel: Kernel) -> None:
    sha = kernel.git.commit(TITLE)
    report = kernel.report(sha)
    Commit.objects.filter(sha=sha).update(sha=sha[:10])
    body = f"Fixes: {sha[:12]} (mm)\nReported-by: robot <{ROBOT}>"
    kernel.git.commit("mm: charge once", body)
    kernel.git.tag("v9.1-rc1")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc1"
    assert Report.objects.get(pk=report.pk).culprit.sha == sha


# --- Reverts, reverts of reverts, and reports that are fixed by several commits ---

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


@pytest.mark.parametrize("digits", [40, 12])
def test_the_revert_of_a_whole_merge_is_asked(kernel: Kernel, digits: int) -> None:
    topic = kernel.git.commit(TITLE, on="topic", parents=[kernel.git.head("master")])
    merge = kernel.git.merge("Merge branch 'topic'", "topic")
    kernel.git.tag("v9.1-rc1")
    report = kernel.report(topic)
    kernel.walk("linus")
    body = f"This reverts commit {merge[:digits]}, reversing changes made to x."
    kernel.git.commit("Revert \"Merge branch 'topic'\"", body)
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


@pytest.mark.django_db
def test_a_withdrawn_suggestion_whose_commit_lands_waits_again() -> None:
    report, sha = line(1), "d" * 40
    waiting = Suggestion.objects.create(
        report=report, key="git", kind="fix_queued", occurred_at=NOW, role="machine", commit=sha, rule="fixes"
    )
    expected = EventData("said", EventKind.EXPECTED, NOW - timedelta(hours=1), actor="otto")
    event_log.record([event_log.event_row(report, expected, NOW)])
    waiting.refresh_from_db()
    assert waiting.decision == "withdrawn"
    landed = {sha: LandingState(tag="v6.13", at=NOW)}
    view = View("linus", TreeRole.MAINLINE, Tracked(), landings=landed, titles={}, mainline=(), day="", now=NOW)
    suggest_again(view, {sha})
    waiting.refresh_from_db()
    assert (waiting.kind, waiting.tag, waiting.decision) == ("fix_landed", "v6.13", "open")
