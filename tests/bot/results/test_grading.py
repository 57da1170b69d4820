"""Results that an operator has to check first, the reasons, and how they are released."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bot.notifications.report import compose_due
from bot.results.grading import p_text
from tests.support.world import START, World
from tracker.domain.events import TreeRole
from tracker.models import BisectResult, Finding, Metric, OutgoingMail, Report, Tree
from tracker.services import corrections

SHA = "b" * 40


def measured(old: list[float], new: list[float], **more: Any) -> dict[str, Any]:
    """The change that turns the world's result into one that measured this."""
    one = {
        "metric": "vm-scan.ops_per_sec",
        "unit": "1/s",
        "direction": "higher",
        "role": "headline",
        "good": {"samples": old},
        "bad": {"samples": new},
    }
    return {"measurements": [{**one, **more}]}


CLEAR = ([1000.0, 1010.0, 990.0], [700.0, 705.0, 695.0])
CASES = [
    ({"first_bad": {"is_merge": True}}, "the culprit is a merge commit"),
    ({"first_bad": {"subject": "Merge tag 'mm-9.1' of git://git.example.org/mm"}}, "the culprit is a merge commit"),
    (measured([1000.0], [700.0]), "the change can't be tested: one run per side, or no standard deviation"),
    (
        measured([1, 2], [1, 2], good={"mean": 9.0, "n": 3}),
        "the change can't be tested: one run per side, or no standard deviation",
    ),
    (
        measured([1000, 900, 1100], [990, 1050, 930]),
        "the change is not significant (p = 0.89; a mail needs 0.01)\nthe samples of both sides overlap",
    ),
    (measured([100, 101, 102, 101, 100, 101], [103, 104, 101.5, 105, 104, 103]), "the samples of both sides overlap"),
    # Of ten runs a side, one strays: the change is as clear as before
    (measured([*range(1000, 1009), 900], [*range(900, 909), 1000]), ""),
    # Two runs of a counter, equal as such numbers often are
    (measured([20, 20], [19, 19]), "the change is not significant (p = 0.13; a mail needs 0.01)"),
    (measured([20_000] * 3, [14_000] * 3), ""),
    (
        measured([1_000_000, 1_000_001, 999_999], [999_700, 999_701, 999_699]),
        "the change is below 0.05%, which a mail would print as 0.0%",
    ),
    (
        measured(*CLEAR, metric="vm-scan.p99_latency"),
        "the result says higher is better for vm-scan.p99_latency, but it is set to lower here",
    ),
]


@pytest.mark.parametrize(("changes", "reason"), CASES)
def test_a_doubtful_result_is_held_with_the_reason(world: World, changes: dict[str, Any], reason: str) -> None:
    if "latency" in reason:
        Metric.objects.create(name="vm-scan.p99_latency", direction="lower", direction_by="operator")
    result = world.result(SHA, "mm: a")
    changes = {name: {**result[name], **each} if isinstance(each, dict) else each for name, each in changes.items()}
    world.ingest({**result, **changes})
    report = Report.objects.get()
    assert BisectResult.objects.get().held == reason
    assert report.held == reason
    assert compose_due(world.settings, world.now) == (not reason)


def beside(role: str, metric: str, old: list[float], new: list[float]) -> dict[str, Any]:
    [entry] = measured(old, new, metric=metric, role=role)["measurements"]
    return entry  # type: ignore[no-any-return]


QUIET = ([1000.0, 1010.0, 990.0], [1001.0, 1009.0, 992.0])


@pytest.mark.parametrize(
    ("suite", "stated", "other", "headline"),
    [
        ("vm-scan", "perf-profile.calltrace.foo", ("vm-scan.ops_per_sec", CLEAR), "vm-scan.ops_per_sec"),
        ("vm-scan", "vmstat.system.cs", ("vm-scan.ops_per_sec", QUIET), "vm-scan.ops_per_sec"),
        ("will-it-scale", "will-it-scale.scalability", ("will-it-scale.per_process_ops", CLEAR), "per_process_ops"),
        ("will-it-scale", "will-it-scale.scalability", ("will-it-scale.per_process_ops", QUIET), "scalability"),
        ("of-the-lab", "of-the-lab.p99_ms", ("of-the-lab.throughput", CLEAR), "of-the-lab.p99_ms"),
    ],
)
def test_the_headline_is_what_the_suite_is_run_for(
    world: World, suite: str, stated: str, other: tuple[str, Any], headline: str
) -> None:
    name, samples = other
    result = world.result(SHA, "mm: a")
    measurements = [beside("headline", stated, *CLEAR), beside("kpi", name, *samples)]
    world.ingest({**result, "test": {"suite": suite, "params": {}}, "measurements": measurements})
    assert Finding.objects.get(headline=True).metric.name.endswith(headline)


def test_a_lab_says_what_its_suite_is_run_for(world: World) -> None:
    Metric.objects.create(name="will-it-scale.scalability", direction="higher", key=True)
    Metric.objects.create(name="will-it-scale.per_process_ops", direction="higher", key=False)
    result = world.result(SHA, "mm: a")
    measurements = [
        beside("headline", "will-it-scale.scalability", *CLEAR),
        beside("kpi", "will-it-scale.per_process_ops", *CLEAR),
    ]
    world.ingest({**result, "test": {"suite": "will-it-scale", "params": {}}, "measurements": measurements})
    assert Finding.objects.get(headline=True).metric.name == "will-it-scale.scalability"


def test_a_culprit_without_an_author_is_held(world: World, client: Client) -> None:
    from bot.results.formats import bisect_log
    from bot.results.storage import take_all
    from tests.bot.results.formats.test_bisect_log import CSV, LOG

    samples = "".join(line for line in CSV.splitlines(keepends=True) if "author" not in line)
    take_all([bisect_log.parse({"log": LOG, "samples": samples}, "in")], world.now, {})
    report = Report.objects.get()
    assert report.held == "the culprit's author is not known"
    assert "not reported yet: the culprit&#x27;s author is not known" in client.get(f"/report/{SHA}/").content.decode()


@pytest.mark.parametrize(("days", "known"), [(0, True), (30, False)])
def test_a_report_that_is_not_sent_yet_says_how_old_the_last_walk_is(world: World, days: int, known: bool) -> None:
    walked = timezone.now() - timedelta(days=days)
    Tree.objects.create(name="linus", role=TreeRole.MAINLINE, walked_at=walked)
    world.ingest(world.result(SHA, "mm: a"))
    not_known = f"not known whether it is merged: tree last walked {walked:%Y-%m-%d}"
    assert Report.objects.get().status.startswith("currently not merged" if known else not_known)


def test_a_direction_that_nobody_told_says_neither_word(world: World, client: Client) -> None:
    result = world.result(SHA, "mm: a")
    headline = result["measurements"][0]
    headline["metric"] = "vm-scan.widgets"
    world.ingest({**result, "measurements": [headline]})
    assert Report.objects.get().verdict == "regression"  # the lab told it
    result = world.result("c" * 40, "mm: b", id="2", test={"suite": "fio", "params": {}})
    Metric.objects.filter(name="vm-scan.widgets").update(direction="unknown", direction_by="operator")
    world.ingest({**result, "measurements": [headline]})
    report = Report.objects.get(culprit__sha="c" * 40)
    assert report.verdict == "unknown"
    assert report.held.startswith("no direction is set for vm-scan.widgets")
    finding = report.findings.get()
    assert (finding.verdict, finding.change_pct, finding.change_pct_raw) == ("unknown", None, pytest.approx(-30.0))
    page = client.get(f"/report/{'c' * 40}/").content.decode()
    assert "direction unknown" in page
    assert not corrections.release(report)  # a click is not a direction
    metric = Metric.objects.get(name="vm-scan.widgets")
    metric.direction = "higher"
    metric.save()
    assert corrections.regrade([metric]) == 1
    report.refresh_from_db()
    assert (report.verdict, report.findings.get().verdict) == ("regression", "regression")


def test_an_operator_tells_a_direction_in_the_admin(world: World, admin_client: Client) -> None:
    world.ingest(world.result(SHA, "mm: a"))
    metric = Metric.objects.get()
    assert (metric.direction, metric.direction_by) == ("higher", "table")
    admin_client.post(f"/admin/tracker/metric/{metric.pk}/change/", {"name": metric.name, "direction": "lower"})
    metric.refresh_from_db()
    assert (metric.direction, metric.direction_by) == ("lower", "operator")
    report = Report.objects.get()
    assert (report.verdict, report.state) == ("improvement", "no_action")
    world.ingest(world.result("c" * 40, "mm: b", id="2"))  # the lab says higher again
    later = Report.objects.get(culprit__sha="c" * 40)
    assert later.verdict == "improvement"
    assert "the result says higher is better" in later.held


def test_the_click_lets_a_report_go(world: World, admin_client: Client) -> None:
    result = world.result(SHA, "mm: a")
    result["first_bad"]["is_merge"] = True
    world.ingest(result)
    report = Report.objects.get()
    admin_client.post("/admin/tracker/report/", {"action": "release", "_selected_action": [report.pk]})
    assert Report.objects.get().held == ""
    assert compose_due(world.settings, world.now) == 1
    row = BisectResult.objects.get()
    assert (row.held, row.note) == ("", "was held: the culprit is a merge commit")
    assert "lab-bbbbbbbb" not in admin_client.get("/results/?held=1").content.decode()


def test_a_clear_result_lets_a_held_report_go_and_leads(world: World) -> None:
    result = world.result(SHA, "mm: a", **measured([1000.0], [500.0]))
    world.ingest(result, world.result(SHA, "mm: a", id="clear", machine={"id": "lab7-m2", "cpus": 8}))
    report = Report.objects.get()
    assert report.held == ""
    assert report.findings.get(headline=True).machine.name == "lab7-m2"


def test_a_clear_result_takes_the_place_of_a_doubtful_one(world: World) -> None:
    """The same test on the same machine, now with enough runs: its numbers are told, and no others."""
    for once in (True, False):
        sha = "b" * 40 if once else "c" * 40
        doubtful = world.result(sha, "mm: a", id=f"one-{once}", **measured([1000.0], [500.0]))
        clear = world.result(sha, "mm: a", id=f"six-{once}")
        world.ingest(doubtful, clear) if once else [world.ingest(each) for each in (doubtful, clear)]
        report = Report.objects.get(culprit__sha=sha)
        finding = report.findings.get()
        assert (finding.headline, finding.old_runs, round(finding.change_pct or 0)) == (True, 3, -30)
        assert report.held == ""


def test_what_is_held_is_in_no_mail(world: World) -> None:
    doubtful = world.result(
        SHA, "mm: a", id="doubtful", machine={"id": "lab7-m9", "cpus": 8}, **measured([1000.0], [500.0])
    )
    world.ingest(world.result(SHA, "mm: a"), doubtful)
    assert compose_due(world.settings, world.now) == 1
    assert b"lab7-m9" not in bytes(OutgoingMail.objects.get().raw)


def test_a_held_report_is_in_no_table(world: World) -> None:
    sha = world.commit("mm: a")
    world.tag("v9.1-rc1")
    world.ingest(world.result(sha, "mm: a", **measured([1000.0], [500.0])))
    world.track()
    assert Report.objects.get().landing == "v9.1-rc1"
    assert not Report.objects.filter(merged_release="v9.1")
    corrections.release(Report.objects.get())
    assert Report.objects.filter(merged_release="v9.1").count() == 1


@pytest.mark.parametrize("outcome", ["inconclusive", "not-reproduced"])
def test_other_outcomes_are_stored_and_shown_and_never_reported(world: World, client: Client, outcome: str) -> None:
    world.ingest(world.result(SHA, "mm: a", outcome=outcome))
    assert BisectResult.objects.get().outcome == outcome
    assert not Report.objects.exists()
    assert compose_due(world.settings, world.now) == 0
    assert not OutgoingMail.objects.exists()
    page = client.get(f"/results/?outcome={outcome}").content.decode()
    assert "lab/lab-bbbbbbbb" in page
    assert "stored, not reported" in page
    assert START.strftime("%Y-%m-%d") in page


def test_another_unit_tells_no_direction(world: World, admin_client: Client) -> None:
    result = world.result(SHA, "mm: a")
    result["measurements"][0]["metric"] = "vm-scan.widgets"
    world.ingest(result)
    metric = Metric.objects.get()
    form = {"name": metric.name, "direction": metric.direction, "unit": "widgets"}
    admin_client.post(f"/admin/tracker/metric/{metric.pk}/change/", form)
    metric.refresh_from_db()
    assert (metric.unit, metric.direction_by) == ("widgets", "lab")


def test_an_operator_makes_another_finding_the_headline(world: World, admin_client: Client) -> None:
    world.ingest(world.result(SHA, "mm: a"), world.result(SHA, "mm: a", id="2", machine={"id": "lab7-m2", "cpus": 8}))
    other = Finding.objects.get(headline=False)
    admin_client.post("/admin/tracker/finding/", {"action": "set_headline", "_selected_action": [other.pk]})
    assert Report.objects.get().findings.get(headline=True) == other


def test_a_mail_and_a_page_have_an_end(world: World, client: Client) -> None:
    result = world.result(SHA, "mm: a")
    one = {**result["measurements"][0], "role": "monitor"}
    result["measurements"] += [{**one, "metric": f"vmstat.m{number}"} for number in range(800)]
    world.ingest(result)
    assert compose_due(world.settings, world.now) == 1
    assert bytes(OutgoingMail.objects.get().raw).count(b"  vmstat.m") <= 300 + 3  # the first screen names three
    assert client.get(f"/report/{SHA}/").content.decode().count('<th scope="row" class="m v">') == 500


def test_long_names_make_no_mail_too_large(world: World) -> None:
    result = world.result(SHA, "mm: a")
    one = {**result["measurements"][0], "role": "monitor"}
    name = "perf-profile.calltrace.cycles-pp." + "do_syscall_64." * 18
    result["measurements"] += [{**one, "metric": f"{name}f{number}"} for number in range(400)]
    world.ingest(result)
    assert compose_due(world.settings, world.now) == 1
    mail = OutgoingMail.objects.get()
    assert (mail.state, mail.reason) == ("composed", "")
    assert len(bytes(mail.raw)) < 100_000
    assert "metrics of monitors." in mail.body


def test_a_change_of_words_alone_is_held(world: World) -> None:
    from datetime import UTC, datetime

    from bot.git.inspection import CommitInspection
    from bot.results.recognise import read_path
    from bot.results.storage import Receipt, take_all
    from tests.conftest import ROOT

    (one,) = read_path(ROOT / "fixtures" / "results" / "01-mm-vmscan.json")
    assert one.result
    assert one.result.culprit
    sha = one.result.culprit.sha
    inspection = CommitInspection(
        sha, ("1" * 40,), "mm: words", "", "", datetime(2026, 9, 1, tzinfo=UTC), (), no_op=True
    )
    (receipt,) = take_all([one.result], world.now, {sha: inspection})
    assert isinstance(receipt, Receipt)
    assert receipt.row.held == "the culprit changes comments or documentation only"


@pytest.mark.parametrize(("p", "shown"), [(0.132, "0.13"), (0.0104, "0.0104"), (0.89, "0.89")])
def test_a_p_value_is_not_rounded_to_the_one_that_it_exceeds(p: float, shown: str) -> None:
    assert p_text(p) == shown
