"""Measurements over time: commits are measured, a change is found, handed to a bisection, reported, and seen to end."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.cache import cache
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.notifications.report import compose_due
from bot.results.storage import extend_curves
from tests.support.rows import line
from tests.support.world import World
from tracker.domain.events import EventData, EventKind, State, Verdict
from tracker.domain.track_record import FEWEST, WITHIN, Course, Share, by, group, record
from tracker.models import Curve, CurveChange, Event, Kernel, OutgoingMail, Report, RuleRecord
from tracker.pages.statistics import load_statistics
from tracker.services import event_log

# --- Measurements over time: commits are measured, a change is found, handed to a bisection, reported, and seen to
# end ---

START = datetime(2026, 1, 1, tzinfo=UTC)
HEADLINE = {"metric": "will-it-scale.per_process_ops", "unit": "1/s", "direction": "higher", "role": "headline"}


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository of 40 commits, whose file `speed` falls at the 26th; and their shas."""
    path = tmp_path / "tree"
    run(path.parent, "git", "init", "-q", "-b", "master", str(path))
    shas = []
    for number in range(40):
        (path / "speed").write_text(f"{1000 if number < 25 else 850}\n{number}\n")
        run(path, "git", "add", "speed")
        author = ("-c", "user.name=Dana", "-c", "user.email=dana@dev.example")
        run(path, "git", *author, "commit", "-qm", f"mm: change {number}")
        shas.append(run(path, "git", "rev-parse", "HEAD").strip())
    return path, shas


def run(path: Path, *command: str, **env: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(path), **env}
    return subprocess.run(command, cwd=path, capture_output=True, text=True, check=True, env=env).stdout


def measured(sha: str, number: int, level: float) -> dict[str, Any]:
    """A lab's result for one commit, three runs around a level."""
    rng = random.Random(number)
    moment = (START + timedelta(days=number)).isoformat().replace("+00:00", "Z")
    return {
        "schema": "perf-release-result/1",
        "id": f"commit-{number}",
        "producer": {"name": "lab"},
        "created_at": moment,
        "kernel": {"sha": sha, "committed_at": moment},
        "test": {"suite": "will-it-scale", "params": {"test": "mmap1"}},
        "machine": {"id": "m1", "cpus": 8},
        "measurements": [
            {
                **HEADLINE,
                "samples": [level * (1 + rng.gauss(0, 0.004)) for _ in range(3)],
            }
        ],
    }


def bisected(world: World, request: dict[str, Any], parent: str, culprit: str) -> dict[str, Any]:
    """The lab's bisect result for a request."""
    value = world.result(culprit, "mm: change 25", id="bisection-1")
    value.update(test=request["test"], machine={**request["machine"], "cpus": 8})
    value["parent"]["sha"], value["good"], value["bad"] = parent, {"sha": request["good"]}, {"sha": request["bad"]}
    value["created_at"] = (START + timedelta(days=41)).isoformat().replace("+00:00", "Z")
    for commit, day in (("parent", 24), ("first_bad", 25)):
        value[commit]["date"] = (START + timedelta(days=day)).isoformat().replace("+00:00", "Z")
    good, bad = {"samples": [1001.0, 999.5, 1000.2]}, {"samples": [850.1, 849.2, 851.0]}
    value["measurements"] = [{**HEADLINE, "metric": request["metric"], "good": good, "bad": bad}]
    return value


def test_from_forty_commits_to_a_fix_that_is_measured(
    world: World,
    client: Client,
    tree: tuple[Path, list[str]],
    tmp_path: Path,
    django_assert_max_num_queries: Callable[[int], Any],
) -> None:
    path, shas = tree
    # Results of 40 commits come in, and a change is found.
    world.ingest(*[measured(sha, n, 1000.0 if n < 25 else 850.0) for n, sha in enumerate(shas)])
    extend_curves(world.now)
    change = CurveChange.objects.get()
    assert (change.before, change.build, change.is_regression) == (shas[24], shas[25], True)
    listed = client.get("/changes/").content.decode()
    assert "−15." in listed
    assert shas[25][:12] in listed
    # A bisect request goes out, which a lab can run as it is.
    request = client.get(f"/changes/{change.pk}/bisect.json").json()
    assert (request["schema"], request["good"], request["bad"]) == ("perf-bisect-request/1", shas[24], shas[25])
    CurveChange.objects.update(before=f"{shas[24]}/2M", build=f"{shas[25]}/2M")  # of a variant git knows nothing
    varied = client.get(f"/changes/{change.pk}/bisect.json").json()
    assert (varied["good"], varied["bad"]) == (shas[24], shas[25])
    CurveChange.objects.update(before=shas[25])
    assert client.get(f"/changes/{change.pk}/bisect.json").status_code == 404
    CurveChange.objects.update(before=shas[24], build=shas[25])
    script = client.get(f"/changes/{change.pk}/bisect.sh").content.replace(shas[24].encode(), shas[0].encode())
    assert f"{shas[25]} is the first bad commit" in run_script(path, tmp_path / "bisect.sh", script)
    # The bisect result comes back: a report, whose culprit is marked on the curve.
    world.ingest(bisected(world, request, shas[24], shas[25]))
    extend_curves(world.now)
    report = Report.objects.get()
    curve = Curve.objects.get()
    change.refresh_from_db()
    assert (report.culprit.sha, change.report) == (shas[25], report)
    with django_assert_max_num_queries(5):  # the curve, its points, changes, reports, and titles of commits
        page = client.get(f"/curve/{curve.pk}/").content.decode()
    assert f'href="/report/{shas[25]}/" aria-label="culprit at {shas[25][:12]}' in page
    # It begins with how far the level moved, since when, and what became of it.
    assert re.search(r'<span class="big worse">▼\xa0−15\.\d%</span><span class="soft">95% interval −1[56]', page)
    assert re.search(r"<b>Worse since <time [^>]*>26 Jan 2026</time></b>: [\d,.]+ → 8[45]\d", page)
    assert '<span class="tag bad">No answer yet</span>' in page
    assert "Script for git bisect" not in page  # it was bisected
    assert f"/curve/{curve.pk}/" in client.get(f"/report/{shas[25]}/").content.decode()
    assert "No unreported changes." in client.get("/changes/").content.decode()
    # The mail says how well the change is known, and where to look.
    compose_due(world.settings, world.later(), approve_first=True)
    mail = OutgoingMail.objects.get().body
    assert re.search(r"7[0-9]\.[0-9]x the usual noise\s+here \(\d\.\d+%, from 126\s+runs\)", mail)
    assert f"stable since 2026-01-01, 25 builds;\n           https://perf.example.org/curve/{curve.pk}/" in mail
    assert (
        "stable since 2026-01-01, 25 builds before the culprit" in client.get(f"/report/{shas[25]}/").content.decode()
    )
    # A fix lands, is measured, and the curve recovers: the report is fixed, and measured.
    fixed = [f"{number:040x}" for number in range(1, 9)]
    fix_lands(world, report, fixed[0])
    world.ingest(*[measured(sha, 42 + n, 1000.0) for n, sha in enumerate(fixed)])
    extend_curves(world.later(24))
    recovered = CurveChange.objects.exclude(pk=change.pk).get()
    assert (recovered.build, recovered.is_regression) == (fixed[0], False)
    assert recovered.new_level == pytest.approx(1000, rel=0.01)
    report.refresh_from_db()
    assert (report.state, report.status) == ("fixed", "the regression has been fixed in v9.2-rc3, as measured")
    confirmed = report.events.get(kind="fix_confirmed")
    assert (confirmed.commit, confirmed.result) == (fixed[0], f"curve {curve.pk}")
    assert "will-it-scale.per_process_ops is back at" in confirmed.quote
    assert not report.suggestions.exists()
    page = client.get(f"/curve/{curve.pk}/").content.decode()
    assert f'aria-label="fix at {fixed[0][:12]}' in page


def run_script(tree: Path, file: Path, script: bytes) -> str:
    """Run a script that bisects by the speed that each commit has in a file; return what it prints."""
    file.write_bytes(script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return run(tree, "sh", str(file), MEASURE="head -1 speed")


def fix_lands(world: World, report: Report, sha: str) -> None:
    """What following the mainline records: a commit that fixes the culprit is in a version."""
    landed = EventData("fix_landed:x", EventKind.FIX_LANDED, world.now, commit=sha, title="mm: repair", tag="v9.2-rc3")
    event_log.record([event_log.event_row(report, landed, world.now)])


def test_a_change_that_vanished_is_suggested_as_disappeared(world: World, client: Client) -> None:
    """Nobody said what fixed it: a person decides. A report that is closed is left alone, and so is half a way back."""
    shas = [f"{number + 1:040x}" for number in range(60)]
    request = {
        "test": {"suite": "will-it-scale", "params": {"test": "mmap1"}},
        "machine": {"id": "m1"},
        "metric": "will-it-scale.per_process_ops",
        "good": shas[0],
        "bad": shas[39],
    }
    world.ingest(*[measured(sha, n, 1000.0 if n < 25 else 850.0) for n, sha in enumerate(shas[:40])])
    world.ingest(bisected(world, request, shas[24], shas[25]))
    extend_curves(world.now)
    report = Report.objects.get()
    world.ingest(*[measured(sha, 45 + n, 920.0) for n, sha in enumerate(shas[40:48])])
    extend_curves(world.now)
    assert not report.suggestions.exists()
    world.ingest(*[measured(sha, 55 + n, 1002.0) for n, sha in enumerate(shas[48:56])])
    extend_curves(world.now)
    (suggested,) = report.suggestions.all()
    assert (suggested.kind, suggested.rule, suggested.commit) == ("disappeared", "curve", shas[48])
    assert re.search(r"is back at 1,00\d 1/s in 8 builds since 0+; it was 849\.\d with the culprit", suggested.quote)
    report.refresh_from_db()
    assert report.state == "no_response"
    world.ingest(measured(shas[56], 64, 1001.0))
    extend_curves(world.now)
    assert report.suggestions.count() == 1  # once
    # In the queue, it shows the curve that it was read from.
    assert f'href="/curve/{Curve.objects.get().pk}/"' in client.get("/review/").content.decode()


def test_ranges_and_what_is_none(world: World, client: Client) -> None:
    world.ingest(*[measured(f"{n + 1:040x}", n, 1000.0) for n in range(20)])
    extend_curves(world.now)
    curve = Curve.objects.get()
    page = client.get(f"/curve/{curve.pk}/", {"since": "2026-01-05", "until": "2026-01-09"}).content.decode()
    assert (page.count('<th scope="row" class="m">'), f"{5:012x}"[:12] in page) == (5, True)
    drawn = client.get(f"/curve/{curve.pk}/", {"since": "2026-01-05", "format": "json"}).json()
    assert (len(drawn["means"]), drawn["runs"][0], drawn["unit"]) == (16, 3, "1/s")
    assert (len(drawn["samples"][0]), drawn["levels"], drawn["titles"][0]) == (3, [], "")
    picture = client.get(f"/curve/{curve.pk}.svg", {"since": "2026-01-05"})
    assert picture["Content-Type"] == "image/svg+xml"
    assert len(ElementTree.fromstring(picture.content).findall(".//{*}path")) == 4  # band, dots, line and levels
    assert client.get(f"/curve/{curve.pk}.svg", {"since": "2030-01-01"}).status_code == 404
    assert "None was found in 20 builds" in client.get(f"/curve/{curve.pk}/").content.decode()
    assert json.dumps(drawn)
    for query, status in (({"since": "soon"}, 400), ({"until": "2026-02-31"}, 400), ({"since": "2030-01-01"}, 200)):
        assert client.get(f"/curve/{curve.pk}/", query).status_code == status
    assert client.get("/curve/999999999/").status_code == 404
    assert client.get("/changes/?before=x").status_code == 400
    assert client.get("/changes/7/bisect.sh").status_code == 404
    names = client.get("/metric/will-it-scale.per_process_ops/").content.decode()
    assert f'href="/curve/{curve.pk}/"' in names
    assert f'href="/curve/{curve.pk}/"' in client.get("/machine/m1/").content.decode()


def test_a_mail_that_is_composed_before_its_result_is_on_the_curve_has_its_history(world: World) -> None:
    shas = [f"{number + 1:040x}" for number in range(30)]
    world.ingest(*[measured(sha, n, 1000.0) for n, sha in enumerate(shas)])
    extend_curves(world.now)
    request = {
        "test": {"suite": "will-it-scale", "params": {"test": "mmap1"}},
        "machine": {"id": "m1"},
        "metric": "will-it-scale.per_process_ops",
        "good": shas[0],
        "bad": "e" * 40,
    }
    world.ingest(bisected(world, request, "d" * 40, "c" * 40))
    compose_due(world.settings, world.later(), approve_first=True)
    assert "history:   stable since 2026-01-01, 30 builds;" in OutgoingMail.objects.get().body


def test_two_curves_over_one_another(
    world: World, client: Client, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    """Each in per cent of its first builds: a loss on one machine stands beside the machine without."""
    other = {"machine": {"id": "m2", "cpus": 8}}
    world.ingest(*[measured(f"{n + 1:040x}", n, 1000.0 if n < 15 else 800.0) for n in range(30)])
    world.ingest(*[measured(f"{n + 1:040x}", n, 50.0) | other | {"id": f"other-{n}"} for n in range(30)])
    extend_curves(world.now)
    first, second = Curve.objects.order_by("machine__name")
    with django_assert_max_num_queries(4):
        page = client.get("/curves/", {"of": [first.pk, second.pk]}).content.decode()
    assert re.findall(r'<td class="n">(−?[+0-9.]+%) <small class="nowrap">2026-', page) == ["−20.0%"]
    assert page.count('<span class="soft">none found</span>') == 1
    assert page.count('<path class="line over') == 4  # two curves, and two keys in the table
    assert client.get("/curves/", {"of": [first.pk, second.pk], "since": "2030-01-01"}).status_code == 200
    for chosen, status in (([first.pk], 302), ([first.pk, "x"], 400), ([first.pk, 10**9], 404), ([1, 2, 3, 4, 5], 400)):
        assert client.get("/curves/", {"of": chosen}).status_code == status
    listed = client.get("/metric/will-it-scale.per_process_ops/").content.decode()
    assert f'<input type="checkbox" name="of" value="{first.pk}"' in listed


def test_hostile_names_are_text(world: World, client: Client) -> None:
    """Names come from labs: in the page, in the JSON within it, and in the script, they stay text."""
    evil = "</script><script>alert(1)</script>$(touch x)`id`'\";\n#"
    values = [measured(f"{n + 1:040x}", n, 1000.0 if n < 15 else 700.0) for n in range(30)]
    for value in values:
        value["measurements"][0]["metric"] = evil.replace("\n", "")
        value["machine"]["id"] = evil.replace("\n", "")
        value["kernel"] = {
            "version": f"x-{value['kernel']['sha'][-3:]}';touch${{IFS}}y;'",
            "committed_at": value["created_at"],
        }
    world.ingest(*values)
    extend_curves(world.now)
    curve, change = Curve.objects.get(), CurveChange.objects.get()
    page = client.get(f"/curve/{curve.pk}/").content.decode()
    assert "<script>alert" not in page
    assert ElementTree.fromstring(client.get(f"/curve/{curve.pk}.svg").content).find("{*}title") is not None
    script = client.get(f"/changes/{change.pk}/bisect.sh").content.decode()
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=True).returncode == 0
    starts = next(line for line in script.splitlines() if line.startswith("git bisect start"))
    words = subprocess.check_output(
        ["sh", "-c", starts.replace("git bisect start", "printf '%s\\n'")], text=True
    ).splitlines()
    assert words == [change.build, change.before]
    assert all(line.startswith("#") for line in script.splitlines() if "alert" in line)


# --- Statistics: times and false alarms by release, subsystem, suite and machine, with the counts behind them ---

AT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def reports(db: None) -> None:
    cache.clear()
    for number in range(12):
        waited = None if number % 4 == 3 else AT + (number + 1) * HOUR
        fixed = {"state": "fixed", "closed_at": AT + 100 * HOUR} if number == 0 else {}
        wrong = {"state": "invalid", "closed_at": AT + 9 * HOUR} if number == 1 else {}
        report = line(
            number,
            reported_at=AT,
            responded_at=waited,
            subsystem="mm" if number % 2 else "=cmd()",
            suite="wis",
            machine="m1",
            merged_release="v9.1",
            **fixed,
            **wrong,
        )
        if number == 0:
            values = {"kind": "fix_proposed", "occurred_at": AT + 50 * HOUR, "recorded_at": AT, "message_id": "f@x"}
            Event.objects.create(report=report, key="f", **values)
    line(20, reported_at=AT, verdict="improvement", subsystem="mm")
    RuleRecord.objects.create(rule="expected", accepted=3, rejected=1)


def test_the_page_says_times_with_their_counts(reports: None, client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(4):
        page = client.get("/statistics/").content.decode()
    assert (
        "9 of 12 (75%); of 9 whose time is known, half within 6 h (95% CI 2 h to 10 h) and nine in ten within 11 h"
    ) in page
    assert "1 of 12; of 1 whose time is known, half within 2 d" in page
    assert "1 of 2 closed or disputed reports</dd>" in page
    assert "1 day: 9 · 3 days: 9" in page
    assert '<a href="/subsystem/mm/">mm</a>' in page
    with django_assert_num_queries(0):
        client.get("/statistics/")


def test_the_table_opens_in_a_spreadsheet(reports: None, client: Client) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/statistics.csv").getvalue().decode())))
    total = rows[0]
    assert (total["by"], total["regressions"], total["response_number"], total["response_median_hours"]) == (
        "all", "12", "9",
        "6.0",
    )  # fmt: skip
    assert (total["candidate_median_hours"], total["landing_median_hours"]) == ("50.0", "100.0")
    subsystems = [row["name"] for row in rows if row["by"] == "subsystem"]
    assert subsystems == ["'=cmd()", "mm"]
    assert (total["precision_number"], total["precision_of"], total["fixed"], total["invalid"]) == ("1", "2", "1", "1")


def settled(number: int, release: str, state: str) -> None:
    line(number, reported_at=AT, responded_at=AT + HOUR, merged_release=release, state=state)


def test_the_page_says_whether_the_lab_is_worth_reading(db: None, client: Client) -> None:
    cache.clear()
    states = {
        "v9.1": ["fixed", "fixed", "invalid", "disputed", "disappeared"],
        "v9.2": ["fixed", "expected", "dropped", "fix_proposed", "duplicate", "no_response"],
    }
    for release, of_release in states.items():
        for number, state in enumerate(of_release):
            settled(100 * int(release[-1]) + number, release, state)
    page = client.get("/statistics/").content.decode()
    # real: three fixed, one expected, one reverted; withdrawn or disputed: two
    assert "5 of 7 that people settled were real: <b>71%</b>, 95% CI 36 to 92%" in page
    assert "6 of 11 (55%, 95% CI 28 to 79%) are fixed, reverted, expected, or being worked on" in page
    assert "Fixed: 3 · Reverted: 1 · Expected: 1 · Gone: 1 · Duplicate: 1 · Disputed: 1 · Withdrawn: 1" in page
    assert 'aria-label="Precision: v9.1 50.0, v9.2 100.0"' in page
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(client.get("/statistics.csv").getvalue().decode()))}
    assert (rows["v9.2"]["precision_low_pct"], rows["v9.2"]["precision_high_pct"]) == ("43.9", "100.0")


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_of_a_share_holds_it(number: int, more: int) -> None:
    share = Share(number, number + more)
    if share.of < FEWEST:
        assert share.bounds is None
        return
    assert share.bounds
    low, high = share.bounds
    assert 0 <= low <= 100 * number / share.of <= high <= 100


def test_an_imported_table_says_that_somebody_responded_but_not_when(db: None, client: Client) -> None:
    cache.clear()
    line(1, reported_at=AT, responded_at=AT)
    page = client.get("/statistics/").content.decode()
    assert "1 of 1</dd>" in page
    assert "Responded within" not in page


def test_nothing_yet(client: Client, db: None) -> None:
    cache.clear()
    assert "No regressions yet." in client.get("/statistics/").content.decode()


COURSES = st.builds(
    Course,
    *(st.sampled_from(("", "a", "b")) for _ in range(4)),
    state=st.sampled_from(list(State)),
    verdict=st.sampled_from(list(Verdict)),
    reported_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    responded_at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@given(st.lists(COURSES, max_size=30))
def test_any_reports_have_counts_that_add_up(courses: list[Course]) -> None:
    total = group("all", courses)
    assert total.response.number <= total.response.of == sum(each.verdict == "regression" for each in courses)
    assert list(total.within) == sorted(total.within)
    assert len(total.within) == len(WITHIN)
    assert total.false.number <= total.false.of
    named = by(courses, lambda each: each.suite)
    assert sum(each.response.of for each in named) == sum(
        bool(each.suite) and each.verdict == "regression" for each in courses
    )


@given(st.lists(COURSES, max_size=30))
def test_no_record_has_more_false_alarms_than_ended_reports(courses: list[Course]) -> None:
    track_record = record([*courses, Course("v5.6", "", "", "", State.INVALID, Verdict.IMPROVEMENT, None)])
    for tally in (track_record.total, *track_record.by_release):
        assert tally.false.number <= tally.false.of
        assert (tally.false.pct or 0) <= 100


def test_only_what_was_mailed_and_what_stands_counts(db: None) -> None:
    cache.clear()
    line(1)  # never mailed
    undone = line(2, reported_at=AT)
    fixed = line(3, reported_at=AT, state="fixed", closed_at=AT + HOUR)  # first closed as expected
    common = {"recorded_at": AT, "actor": "toni"}
    Event.objects.create(report=undone, key="f", kind="fix_proposed", occurred_at=AT + HOUR, **common)
    Event.objects.create(report=undone, key="u", kind="reversed", occurred_at=AT + HOUR, reverses="f", **common)
    Event.objects.create(report=fixed, key="l", kind="fix_landed", occurred_at=AT + 90 * HOUR, **common)
    total = load_statistics()["total"]
    assert (total.response.of, total.candidate.number) == (2, 0)
    assert (total.landing.number, total.landing.median) == (1, 90 * HOUR)


def test_an_unknown_kernel_is_said_above_those_that_can_be_compared(client: Client, db: None) -> None:
    kernel = Kernel.objects.create(name="v9.1", measured_at=datetime(2026, 11, 1, tzinfo=UTC))
    answer = client.get("/compare/", [("of", str(kernel)), ("of", "v8.8")])
    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'role="alert" class="wrong">of: no kernel &#x27;v8.8&#x27; was measured<' in page
    assert 'name="of" value="v9.1"' in page
    assert client.get("/compare.txt?of=v8.8").status_code == 400
