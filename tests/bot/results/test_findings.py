"""One culprit, one report: additional results, the same patch in another tree, measured fixes, rechecks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.git.inspection import inspect
from bot.notifications.report import compose_due
from bot.results.intake import take_in
from bot.results.recognise import read_path
from bot.results.storage import ReadAgain, extend_curves, read_again
from bot.results.values import RejectedInput
from tests.support.world import World, state, status_text
from tracker.domain.curves import CurvePoint
from tracker.domain.events import EventData, EventKind, Role
from tracker.models import Commit, Event, Finding, Machine, OutgoingMail, OutgoingState, Report
from tracker.services import corrections, curves, event_log, mail_transitions

SHA = "b" * 40
OTHER = {"id": "lab7-m2", "cpus": 8}
Change = dict[str, Any]


def worse(world: World, mean: float, **more: Any) -> Change:
    """A result whose headline fell from 1000 to this mean."""
    result = world.result(SHA, "mm: a", **more)
    result["measurements"][0]["bad"]["samples"] = [mean, mean + 5, mean - 5]
    return result


def headline(report: Report) -> str:
    return report.findings.get(headline=True).machine.name


@pytest.mark.parametrize(
    ("digits", "undone", "reports", "becomes"),
    [
        *((40, False, 1, "fix_confirmed"), (24, False, 1, "fix_confirmed"), (12, False, 1, "fix_confirmed")),
        (7, False, 2, "fix_proposed"),  # too few to name one commit
        (12, True, 2, "no_response"),  # the person took it back
    ],
)
@pytest.mark.parametrize("column", ["remark", "commit"])
def test_a_fix_that_a_person_names_by_sha_is_measured(
    world: World, digits: int, undone: bool, reports: int, becomes: str, column: str
) -> None:
    world.ingest(worse(world, 700))
    report, fix = Report.objects.get(), "3" * 40
    what = {column: fix[:digits], "actor": "mira"}
    named = EventData("fix", EventKind.FIX_PROPOSED, world.later(), Role.AUTHOR, **what)
    event_log.record([event_log.event_row(report, named, world.now)])
    if undone:
        event_log.record([event_log.reversal(report, "fix", "mira", world.later())])
    better = world.result(fix, "mm: mend", id="fix")
    better["measurements"][0] |= {"good": {"samples": [700, 705, 695]}, "bad": {"samples": [1000, 1010, 990]}}
    world.ingest(better)
    report.refresh_from_db()
    assert (Report.objects.count(), report.state) == (reports, becomes)


def test_a_machine_is_what_all_tests_of_a_result_say_of_it(world: World) -> None:
    full = {"id": "lab7-m1", "cpus": 64, "cpu_model": "Example CPU", "memory_bytes": 1 << 38}
    result = world.result(SHA, "mm: a", machine=full)
    result["additional"] = [{"test": {"suite": "other", "params": {}}, "machine": {"id": "lab7-m1", "cpus": 64}}]
    result["additional"][0]["measurements"] = result["measurements"]
    world.ingest(result)
    machine = Machine.objects.get()
    assert (machine.cpu_model, machine.memory_bytes) == ("Example CPU", 1 << 38)


# --- the headline ---


def test_until_the_mail_is_gone_the_worse_result_leads(world: World) -> None:
    world.ingest(worse(world, 700), worse(world, 600, id="2", machine=OTHER))
    report = Report.objects.get()
    assert headline(report) == "lab7-m2"
    world.ingest(worse(world, 650, id="3", machine={"id": "lab7-m3", "cpus": 8}))
    assert headline(report) == "lab7-m2"
    assert report.findings.count() == 3


def test_a_regression_leads_before_an_improvement(world: World) -> None:
    world.ingest(worse(world, 1300))
    report = Report.objects.get()
    assert (report.verdict, report.state) == ("improvement", "no_action")
    world.ingest(worse(world, 900, id="2", machine=OTHER))
    report.refresh_from_db()
    assert (report.verdict, report.state, headline(report)) == ("regression", "no_response", "lab7-m2")


def test_a_mail_that_waits_is_composed_again_under_its_message_id(world: World) -> None:
    world.ingest(worse(world, 700))
    compose_due(world.settings, world.later())
    before = OutgoingMail.objects.get()
    world.later()
    world.ingest(worse(world, 600, id="2", machine=OTHER))
    compose_due(world.settings, world.later())
    after = OutgoingMail.objects.get()
    assert after.message_id == before.message_id
    assert (before.subject, after.subject) == (
        "[LKP] [mm] bbbbbbbbbb: -30.0% regression",
        "[LKP] [mm] bbbbbbbbbb: -40.0% regression",
    )
    assert b"lab7-m2" in bytes(after.raw)
    assert bytes(after.raw).count(before.message_id.encode()) == 2
    assert compose_due(world.settings, world.later()) == 0
    assert OutgoingMail.objects.get().composed_at == after.composed_at  # and not a third time


def test_once_the_mail_is_approved_the_headline_stays(world: World) -> None:
    world.ingest(worse(world, 700))
    compose_due(world.settings, world.later(), approve_first=False)
    world.ingest(worse(world, 600, id="2", machine=OTHER))
    report = Report.objects.get()
    assert headline(report) == "lab7-m1"
    assert not corrections.set_headline(report.findings.get(headline=False))


def test_what_was_mailed_as_an_improvement_opens_as_a_regression(world: World) -> None:
    world.ingest(worse(world, 1300))
    compose_due(world.settings, world.later())
    mail_transitions.mark_sent(OutgoingMail.objects.get().message_id, world.now, world.now)
    world.ingest(worse(world, 1200, id="2", machine=OTHER))
    report = Report.objects.get()
    assert (report.verdict, headline(report)) == ("improvement", "lab7-m1")
    world.ingest(worse(world, 700, id="3", machine={"id": "lab7-m3", "cpus": 8}))
    report.refresh_from_db()
    assert (report.verdict, report.state, headline(report)) == ("regression", "no_response", "lab7-m3")


def test_a_metric_with_a_blank_in_its_name_is_mailed(world: World) -> None:
    result = worse(world, 700)
    result["measurements"][0]["metric"] = "app.Read IOPS"
    world.ingest(result)
    assert compose_due(world.settings, world.later()) == 1
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == (OutgoingState.COMPOSED, "")
    assert b"app.Read_IOPS" in bytes(mail.raw)


def test_a_metric_that_is_given_twice_has_one_result(world: World) -> None:
    result = worse(world, 700)
    again = {**result["measurements"][0], "role": "kpi"}
    result["measurements"].append(again)
    assert len(world.ingest(result)) == 1
    other = worse(world, 700, id="2")
    other["measurements"].append({**again, "bad": {"samples": [1500, 1505, 1495]}})
    with pytest.raises(RejectedInput, match=r"/measurements/1: vm-scan\.ops_per_sec is given twice for this test"):
        world.ingest(other)


def test_an_operator_chooses_another_headline(world: World) -> None:
    world.ingest(worse(world, 700), worse(world, 1300, id="2", machine=OTHER))
    report = Report.objects.get()
    assert corrections.set_headline(report.findings.get(headline=False))
    report.refresh_from_db()
    assert (headline(report), report.verdict, report.state) == ("lab7-m2", "improvement", "no_action")


# --- the noise that is known ---


def test_the_effect_is_told_against_the_noise_that_is_known(world: World) -> None:
    """Without a history nothing is assumed; it is known later, too, and an unsent mail then says so."""
    world.ingest(worse(world, 700))
    assert (Finding.objects.get().effect, Finding.objects.get().noise_runs) == (None, None)
    finding = Finding.objects.get()
    place = (finding.metric_id, finding.scenario_id, finding.machine_id)
    levels = [1000, 1010, 990, 1010, 990, 1000, 1020, 980]
    history = [
        CurvePoint(world.now - timedelta(days=90 - n), f"{n:040x}", (level,), "x") for n, level in enumerate(levels)
    ]
    curves.add({place: history})
    extend_curves(world.now)
    finding.refresh_from_db()
    # The median distance to 1000 is 10 of 1000, and 1.4826 times that is the robust spread.
    assert (finding.effect, finding.noise_runs) == (pytest.approx(30 / 1.4826, rel=0.02), 8 + 3)
    result = world.result("c" * 40, "mm: b", id="2")
    result["measurements"][0]["bad"]["samples"] = [900, 905, 895]
    world.ingest(result)
    other = Finding.objects.get(report__culprit__sha="c" * 40)
    assert (other.effect, other.noise_runs) == (pytest.approx(10 / 1.4826, rel=0.02), 8 + 3)


# --- rechecks ---


def test_the_lab_rechecks_its_own_result(world: World) -> None:
    rechecks = [
        {"ref": "v9.1-rc3", "sha": "c" * 40, "state": "still-bad"},
        {"ref": "v9.1-rc4", "sha": "d" * 40, "state": "good-after-revert"},
    ]
    world.ingest(world.result(SHA, "mm: a", bisect={"rechecks": rechecks}))
    (event,) = Event.objects.all()
    assert (event.kind, event.tag, event.commit, event.result) == (
        "still_there",
        "v9.1-rc3",
        "c" * 40,
        "lab/lab-bbbbbbbb",
    )
    assert state(Report.objects.get()) == "no_response"


def later(world: World, days: int, describe: str, **more: Any) -> Change:
    at = (world.now + timedelta(days=days)).isoformat()
    bad = {"sha": "e" * 40, "describe": describe}
    return world.result(SHA, "mm: a", id=f"later-{days}", created_at=at, bad=bad, **more)


def test_what_is_there_later_and_what_has_gone(world: World) -> None:
    world.ingest(world.result(SHA, "mm: a"), later(world, 1, "v9.1-rc4"))
    report = Report.objects.get()
    assert Event.objects.get().kind == "still_there"
    assert Event.objects.get().tag == "v9.1-rc4"
    world.ingest(later(world, 2, "v9.1", outcome="not-reproduced"))
    assert status_text(report) == "the regression has disappeared in v9.1"
    assert compose_due(world.settings, world.now) == 0  # nobody needs to hear of it now
    world.ingest(later(world, 3, "v9.2-rc1"))
    assert state(report) == "no_response"


def test_another_machine_that_shows_nothing_says_nothing(world: World) -> None:
    world.ingest(world.result(SHA, "mm: a"), later(world, 2, "v9.1", outcome="not-reproduced", machine=OTHER))
    assert not Event.objects.exists()


# --- fixes ---


@pytest.mark.parametrize(
    ("mean", "outcome", "kind", "expected"),
    [
        (1000, "conclusive", "fix_confirmed", "fix_confirmed"),
        (701, "inconclusive", "fix_without_effect", "no_response"),
        (500, "conclusive", "fix_without_effect", "no_response"),
    ],
)
def test_a_fix_that_is_measured(world: World, mean: float, outcome: str, kind: str, expected: str) -> None:
    report = world.report()
    fix = world.commit("mm/vmscan: mend it", f'Fixes: {report.culprit.sha[:12]} ("mm/vmscan: walk cold folios first")')
    result = world.result(fix, "mm/vmscan: mend it", id="fix", outcome=outcome, created_at=world.later().isoformat())
    result["first_bad"]["trailers"] = [{"tag": "Fixes", "value": f'{report.culprit.sha[:12]} ("mm/vmscan: walk…")'}]
    result["measurements"][0]["good"]["samples"] = [700, 705, 695]
    result["measurements"][0]["bad"]["samples"] = [mean, mean + 5, mean - 5]
    world.ingest(result)
    event = Event.objects.get(report=report, kind=kind)
    assert (event.commit, event.result) == (fix, "lab/fix")
    assert state(report) == expected
    # A fix that makes things worse is a culprit too; one that helps is nobody's news.
    assert Report.objects.filter(culprit__sha=fix).exists() is (mean == 500)


def test_a_fix_without_effect_opens_what_its_landing_had_closed(world: World) -> None:
    report = world.report()
    world.track()
    mail = OutgoingMail.objects.get()
    fix = world.commit("mm/vmscan: mend it", f"Closes: https://lore.kernel.org/r/{mail.message_id}")
    world.tag("v9.1-rc2")
    world.track()
    assert state(report) == "fixed"
    result = world.result("f" * 40, "x", id="fix", outcome="inconclusive", created_at=world.later().isoformat())
    result |= {"bad": {"sha": fix}, "good": {"sha": report.culprit.sha}}
    del result["first_bad"]
    result["measurements"][0]["good"]["samples"] = result["measurements"][0]["bad"]["samples"]
    world.ingest(result)
    assert state(report) == "no_response"


# --- the same patch in another tree ---


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., str]:
    """A repository with a work tree: git(…) runs git in it."""

    def git(*arguments: str) -> str:
        options = ("-c", "user.name=Dana Brook", "-c", "user.email=dana@dev.example", "-C", str(tmp_path / "repo"))
        return subprocess.run(["git", *options, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "repo").mkdir()
    git("init", "-q", "--initial-branch=master")
    return git


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CODE = "int scan(void)\n{\n\treturn 1;\n}\n"


def test_the_same_patch_in_another_tree_joins_the_report(
    world: World, repository: Callable[..., str], tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    write(repo / "mm" / "vmscan.c", CODE)
    repository("add", "."), repository("commit", "-qm", "begin")
    repository("checkout", "-qb", "next")
    write(repo / "mm" / "vmscan.c", CODE.replace("return 1", "return 2"))
    repository("commit", "-qam", "mm: scan twice")
    in_next = repository("rev-parse", "HEAD")
    repository("checkout", "-q", "master")
    write(repo / "README", "words\n")
    repository("add", "."), repository("commit", "-qm", "words")
    repository("cherry-pick", in_next)
    in_master = repository("rev-parse", "HEAD")
    assert in_master != in_next

    def ingest(result: Change) -> None:
        file = tmp_path / "one.json"
        file.write_text(json.dumps(result))
        assert [answer.rejection for answer in take_in(read_path(file), [repo], world.now)] == [None]

    ingest(world.result(in_next, "mm: scan twice", tree={"name": "next", "branch": "next"}))
    ingest(world.result(in_master, "mm: scan twice", id="2", machine=OTHER))
    report = Report.objects.get()
    assert report.culprit.sha == in_next
    assert report.findings.count() == 2
    assert Commit.objects.get(sha=in_master).same_patch_as == report.culprit
    assert report.culprit.patch_id
    assert report.culprit.patch_id == Commit.objects.get(sha=in_master).patch_id


def test_the_same_patch_mail_joins_the_report_too(world: World) -> None:
    patch = {"message_id": "<patch@dev.example>"}
    world.ingest(
        world.result(SHA, "mm: a", patch=patch),
        world.result("c" * 40, "mm: a", id="2", patch=patch, machine=OTHER),
        world.result("d" * 40, "mm: other", id="3", patch=patch, machine=OTHER),
    )
    assert sorted(Report.objects.values_list("culprit__sha", flat=True)) == [SHA, "d" * 40]


def test_a_page_is_found_by_the_sha_in_either_tree(world: World, client: Any) -> None:
    patch = {"message_id": "<patch@dev.example>"}
    world.ingest(world.result(SHA, "mm: a", patch=patch), world.result("c" * 40, "mm: a", id="2", patch=patch))
    page = client.get(f"/report/{'c' * 12}/").content.decode()
    assert SHA in page
    assert f"<code>{'c' * 40}</code>" in page


# --- what git says of a culprit ---


@pytest.mark.parametrize(
    ("path", "before", "after", "no_op"),
    [
        ("mm/a.c", CODE, "/* scans */\n" + CODE, True),
        ("mm/a.c", CODE, CODE.replace("return 1;", "return 1; // one"), True),
        ("mm/a.c", CODE, CODE.replace("\t", "    "), True),
        ("mm/a.c", CODE, CODE.replace("return 1", "return 2"), False),
        ("mm/a.c", 'char *a = "/* x */";\n', 'char *a = "/* y */";\n', False),
        ("mm/a.c", "int *p;\n", "int *p;\n\n\n", True),
        ("mm/a.c", "", CODE, False),
        ("Documentation/mm/a.rst", "a\n", "b\n", True),
        ("Documentation/devicetree/bindings/a.yaml", "a\n", "b\n", False),
        ("MAINTAINERS", "a\n", "b\n", True),
        ("mm/Makefile", "a\n", "# b\na\n", False),
    ],
)
def test_a_change_of_nothing_but_words(
    repository: Callable[..., str], tmp_path: Path, path: str, before: str, after: str, no_op: bool
) -> None:
    repo = tmp_path / "repo"
    write(repo / "other.c", CODE)
    if before:
        write(repo / path, before)
    repository("add", "."), repository("commit", "-qm", "begin")
    write(repo / path, after)
    repository("add", "."), repository("commit", "-qm", 'mm: change\n\nFixes: 1234567890ab ("x")')
    sha = repository("rev-parse", "HEAD")
    seen = inspect([tmp_path / "nowhere", repo], [sha, "0" * 40])
    assert list(seen) == [sha]
    assert seen[sha].no_op is no_op
    assert (seen[sha].title, seen[sha].author_name, seen[sha].author_email) == (
        "mm: change",
        "Dana Brook",
        "dana@dev.example",
    )
    assert seen[sha].trailers == (("Fixes", '1234567890ab ("x")'),)
    assert seen[sha].parents == (repository("rev-parse", "HEAD^"),)


def test_a_merge_has_two_parents(repository: Callable[..., str], tmp_path: Path) -> None:
    repository("commit", "-q", "--allow-empty", "-m", "begin")
    repository("checkout", "-qb", "side"), repository("commit", "-q", "--allow-empty", "-m", "side")
    repository("checkout", "-q", "master"), repository("commit", "-q", "--allow-empty", "-m", "main")
    repository("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    sha = repository("rev-parse", "HEAD")
    seen = inspect([tmp_path / "repo"], [sha])[sha]
    assert len(seen.parents) == 2
    assert (seen.patch_id, seen.no_op) == ("", False)


def test_a_tree_puts_a_guessed_pair_the_right_way_round(
    world: World, repository: Callable[..., str], tmp_path: Path
) -> None:
    """LKP roots whose names stand the wrong way round: git knows which commit is the parent, and who wrote it."""
    from tests.bot.results.formats.test_lkp import NEW, OLD, write_root

    shas: list[str] = []
    while len(shas) < 2 or shas[-1] > shas[-2]:  # until a culprit comes before its parent in the order of names
        repository("commit", "-q", "--allow-empty", "-m", f"mm: step {len(shas)}")
        shas.append(repository("rev-parse", "HEAD"))
    parent, culprit = shas[-2:]
    write_root(tmp_path / "lab", parent, OLD)
    write_root(tmp_path / "lab", culprit, NEW)
    (answer,) = take_in(read_path(tmp_path / "lab"), [tmp_path / "repo"], world.now)
    assert answer.receipt
    assert answer.receipt.row.held == ""
    report = Report.objects.get()
    assert (report.culprit.sha, report.culprit.author_email) == (culprit, "dana@dev.example")
    assert report.culprit.title == f"mm: step {len(shas) - 1}"
    finding = report.findings.get(headline=True)
    assert finding.parent
    assert (finding.parent.sha, round(finding.change_pct or 0)) == (parent, -30)
    before = list(Finding.objects.values())
    assert read_again() == ReadAgain(results=1)
    assert list(Finding.objects.values()) == before


def test_what_was_sent_is_not_composed_again(world: World) -> None:
    world.ingest(worse(world, 700))
    compose_due(world.settings, world.later(), approve_first=False)
    mail = OutgoingMail.objects.get()
    mail_transitions.mark_sent(mail.message_id, world.now, world.now)
    world.later()
    world.ingest(worse(world, 600, id="2", machine=OTHER))
    compose_due(world.settings, world.later(), approve_first=False)
    assert bytes(OutgoingMail.objects.get().raw) == bytes(mail.raw)
