"""Fixes found by their commit messages, and the same patch under other shas."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel import ROBOT, TITLE, Kernel
from tests.world import DANA, DIFF, LEE, message_id, state, status_text
from tracker.models import Decision, Event, Report, Suggestion
from tracker.services import report_actions

# --- fixes --------------------------------------------------------------------------------------


def test_fixes_with_the_robot_credited_is_a_fix(kernel: Kernel) -> None:
    report = kernel.merged()
    fixes = f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")'
    kernel.git.commit("mm: charge once", f"{fixes}\nReported-by: kernel test robot <{ROBOT}>")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote == fixes


def test_fixes_alone_is_a_suggestion_that_goes_on_after_a_click(kernel: Kernel) -> None:
    report = kernel.merged()
    sha = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")')
    kernel.walk("linus")
    suggestion = Suggestion.objects.get()
    assert (state(report), suggestion.kind, suggestion.rule, suggestion.commit) == (
        "no_response",
        "fix_merged",
        "fixes_alone",
        sha,
    )
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    suggestion.refresh_from_db()
    assert (suggestion.kind, suggestion.tag) == ("fix_landed", "v9.1-rc2")
    report_actions.decide(suggestion, Decision.ACCEPTED, "mira", kernel.world.now)
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_an_accepted_fix_in_a_maintainers_tree_is_followed_to_its_version(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    report_actions.decide(Suggestion.objects.get(), Decision.ACCEPTED, "mira", kernel.world.now)
    assert status_text(report) == "merged at v9.1-rc1, a fix is queued in mm"
    kernel.git.pick(fix, on="master", body="Taken by mail.")
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus", "mm")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"
    assert Event.objects.get(kind="fix_landed").quote.startswith(f"the patch-id of {fix[:12]}: ")


def test_a_rejected_suggestion_is_not_asked_again(kernel: Kernel) -> None:
    report = kernel.merged()
    fix = kernel.git.commit("mm: charge once", f'Fixes: {report.culprit.sha[:12]} ("{TITLE}")', on="mm")
    kernel.walk("linus", "mm")
    report_actions.decide(Suggestion.objects.get(), Decision.REJECTED, "mira", kernel.world.now)
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
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


def test_a_culprit_much_older_than_anybody_told(kernel: Kernel) -> None:
    """Its author's date lies, and many tags stand behind which nobody looks."""
    sha = kernel.git.commit(TITLE)
    for number in range(1, 5):
        kernel.git.tag(f"v9.1-rc{number}")
        kernel.git.now += timedelta(days=300)
        kernel.git.commit(f"Linux 9.1-rc{number + 1}")
    kernel.walk("linus")
    author = {"name": DANA.name, "email": DANA.email}
    first_bad = {"sha": sha, "subject": TITLE, "author": author, "date": kernel.git.now.isoformat()}
    report = kernel.report(sha, first_bad=first_bad)
    kernel.walk("linus")
    assert Report.objects.get(pk=report.pk).landing == "v9.1-rc1"


@pytest.mark.parametrize("title", ["mm: charge once", "[PATCH v2 3/7] mm: charge  once", "Re: [PATCH] mm: charge once"])
def test_a_title_that_a_command_names_is_waited_for(kernel: Kernel, title: str) -> None:
    report = kernel.merged()
    kernel.git.commit("mm: charge once", author=LEE)
    kernel.git.tag("v9.1-rc2")
    kernel.walk("linus")
    kernel.world.post(DANA, f"#lkp fix: {title}", to=message_id(report))
    kernel.world.read()
    kernel.walk("linus")
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


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
    assert status_text(report) == "merged at v9.1-rc1, the regression has been fixed in v9.1-rc2"


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
    assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
    landed = Event.objects.get(kind="landed")
    assert (landed.commit, landed.quote[:28]) == (upstream, f"the patch-id of {robots[:12]}")


def test_a_changed_title_hides_no_patch(kernel: Kernel) -> None:
    robots = kernel.git.commit(TITLE, on="0day", parents=[kernel.git.head("master")])
    written = kernel.git.now
    author = {"name": DANA.name, "email": DANA.email}
    first_bad = {"sha": robots, "subject": TITLE, "author": author, "date": written.isoformat()}
    report = kernel.report(robots, first_bad=first_bad)
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
        suggestion = Suggestion.objects.get()
        assert (suggestion.kind, suggestion.rule, suggestion.commit) == ("same_patch", "title_alone", sha)
        report_actions.decide(suggestion, Decision.ACCEPTED, "mira", kernel.world.now)
        kernel.walk("linus")
        assert status_text(report) == "merged at v9.1-rc1, no response from author yet"
