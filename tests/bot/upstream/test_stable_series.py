"""Culprits and fixes in stable series, the bases of findings, and how pages show them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from bot.upstream.tracking import track
from tests.kernel import TITLE, Kernel, closes
from tests.world import message_id, state, status_text
from tracker.models import StableSeries, Tree
from tracker.services.report_summary import refresh

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
    with django_assert_num_queries(13):
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
