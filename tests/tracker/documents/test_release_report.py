"""The release report of v5.6 from the fixture, compared with the published one; and its numbers with its lists.

The order and the form are ours: the published report has its glossary first, and its rows by the name of the metric.
Every row, number and sentence of it is there. DEVIATIONS lists what differs, and why.
"""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from bot.management.commands import report as report_command
from tests.conftest import NOW, ROOT
from tests.support.needs import need
from tests.support.people import person
from tests.support.rows import line
from tracker.documents import blocks as markdown
from tracker.documents import blocks as text
from tracker.documents.blocks import (
    Block,
    ChangeList,
    ChangeRow,
    CycleFigure,
    Document,
    DocumentLink,
    Heading,
    Paragraph,
    TableBlock,
)
from tracker.domain.events import OPEN, State
from tracker.domain.timeline import LABELS
from tracker.models import (
    BasketEntry,
    Commit,
    Curve,
    Kernel,
    Machine,
    Measurement,
    Release,
    ReleaseCandidate,
    Report,
    ReportHighlight,
    TextRevision,
    Tree,
)
from tracker.pages.release_report import document

DEVIATIONS = {
    "counts": "24 regressions and 19 improvements are claimed, but its own table has 23 and 20: ours are counted",
    "typo": "'merged at at v5.6-rc2' has one word too many",
    "stop": "four of its statuses end with a full stop, the others with none: ours never",
    "twice": "fda31c5029 is said to be merged in one table and not merged in the other: ours says merged in both",
    "verdict": "'136.1% of hackbench.throughput' leaves out whether that is better: ours says which",
    "nr_threads": "the detail of 0ddad21d3e tells nr_threads twice, 100% and 50%: ours has the one of the table",
    "heading": "the detail of 361fdccf21 stands under the scenario of another commit: ours is headed by its own",
    "own words": "descriptions of suites and parameters are texts of our own",
    "no requirement": "parameters of which it says 'no requirement' are not told of a test: ours leaves them out",
    "machines": "its list omits the machines of its own comparison: ours has them",
}


@pytest.fixture
def published(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "v5.6-report.json").read_text())  # type: ignore[no-any-return]


@pytest.fixture
def release_report_v5_6(v5_6_loaded: None, db: None) -> Release:
    return Release.objects.get(version="v5.6")


@pytest.fixture
def report(release_report_v5_6: Release) -> Document:
    return document(release_report_v5_6, "0-Day CI", NOW)


def section(report: Document, heading: str) -> list[Block]:
    """The blocks below this heading, up to the next one of its level or above."""
    blocks: list[Block] = []
    level = 0
    for block in report.blocks:
        if isinstance(block, Heading):
            if block.text == heading:
                level = block.level
                continue
            if level and block.level <= level:
                break
        if level:
            blocks.append(block)
    assert blocks, heading
    return blocks


def listed(report: Document, heading: str) -> list[ChangeRow]:
    """The rows of the list that stands right below a heading; [] if it says None."""
    (changes,) = [block for block in section(report, heading) if isinstance(block, ChangeList)][:1] or [None]
    return list(changes.rows) if changes else []


def text_of(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Paragraph))


OPEN_MERGED, OPEN_ELSEWHERE = "Open in v5.6", "Open, found in other trees"
OPEN_VERSION_UNKNOWN = "Open, merged in a version that is not known"
ENDED = "Expected, reverted, gone or withdrawn"
IMPROVED, IMPROVED_ELSEWHERE = "Improvements", "Improvements in other trees"


def test_what_is_open_comes_first_and_the_method_last(report: Document) -> None:
    assert report.title == "Linux v5.6: performance report"
    assert report.aside == "0-Day CI · released 2020-03-29 · compared with v5.5 · as of 2026-11-21"
    headings = [(each.number, each.text) for each in report.blocks if isinstance(each, Heading) and each.number]
    assert headings == [
        ("1", OPEN_MERGED),
        ("2", OPEN_ELSEWHERE),
        ("3", "Fixed"),
        ("4", IMPROVED),
        ("5", "In more detail"),
        ("6", "v5.6 compared with v5.5"),
        ("7", "Method, machines and glossary"),
    ]
    first = next(block for block in report.blocks if isinstance(block, Paragraph))
    assert first.text == (
        "v5.6 has 25 open performance regressions of 28 reported. 23 of them are not in the mainline."
        " The worst is -69.5% of stress-ng.hdd.ops_per_sec (mm/lru). 25 wait for their authors, 25 for over four weeks."
    )


def test_every_published_row_is_in_the_list_where_it_belongs(report: Document, published: dict[str, Any]) -> None:
    lists = {
        heading: listed(report, heading)
        for heading in (OPEN_MERGED, OPEN_ELSEWHERE, "Fixed", ENDED, IMPROVED, IMPROVED_ELSEWHERE)
    }
    assert [len(rows) for rows in lists.values()] == [2, 23, 2, 1, 6, 20]  # 54
    assert published["counted"]["shift_left"] == {"regression": 23, "improvement": 20}, DEVIATIONS["counts"]
    for name, merged in (("release_test", True), ("shift_left", False)):
        for each in published[name]:
            if each["verdict"] == "improvement":
                headings = [IMPROVED if merged else IMPROVED_ELSEWHERE]
            else:
                headings = [OPEN_MERGED, "Fixed", ENDED] if merged else [OPEN_ELSEWHERE]
            rows = [row for heading in headings for row in lists[heading] if each["short_sha"] in str(row.what)]
            assert len(rows) == 1, each["short_sha"]
            compare_row(rows[0], each, report, merged=merged)


def compare_row(row: ChangeRow, each: dict[str, Any], report: Document, *, merged: bool) -> None:
    percent = float(re.search(r"(-?[\d.]+)%", each["report"])[1])  # type: ignore[index]
    assert row.change == pytest.approx(percent)
    assert row.verdict == each["verdict"]
    details = row.details.split(" · ")
    assert (details[0], each["machine"] in details) == (each["indicator"], True)
    shared = " ".join(
        block.text for block in report.blocks if isinstance(block, Paragraph) and "All of them" in block.text
    )
    for name, value in each["scenario"].items():
        assert f"{name}={value}" in f"{row.details} {shared}"
    if merged and "base" in each:
        assert f"against {each['base']}" in details
    status = each["status_text"].removesuffix(".")  # "stop"
    if each["short_sha"] == "fda31c5029":
        status = "merged at v5.6-rc4"  # "twice"
    assert row.cells[-1] == status.replace("at at", "at")  # "typo"
    assert row.told.endswith(row.cells[-1])


def test_lists_begin_with_what_weighs_most(report: Document) -> None:
    changes = [row.change or 0.0 for row in listed(report, OPEN_ELSEWHERE)]
    assert changes == sorted(changes)
    worst = [row.change for row in listed(report, "Worst open regressions")]
    assert worst == [-69.5, -69.4, -69.1, -64.2, -64.0]


def test_the_glossary(report: Document, published: dict[str, Any]) -> None:
    tables = {block.caption: block for block in report.blocks if isinstance(block, TableBlock)}
    rows = tables["Test parameters"].rows
    assert [row[:2] for row in rows] == [
        (each["classification"], each["name"]) for each in published["parameter_glossary"]
    ]
    assert len(rows) == 15
    for row, each in zip(rows, published["parameter_glossary"], strict=True):
        assert row[2] != each["description"], DEVIATIONS["own words"]
        assert len(str(row[2])) > 15
    described = {str(row[0]) for row in tables["Benchmarks"].rows}
    assert {each["suite"] for each in published["release_comparison"]} <= described


def test_the_narrated_commits(report: Document, published: dict[str, Any]) -> None:
    narrated = [*published["release_details"], *published["shift_left_details"]]
    rows = listed(report, "In more detail")
    assert len(rows) == len(narrated) == 7
    for each, row in zip(narrated, rows, strict=True):
        indicator, _, heading = str(row.what).partition(", ")
        if each["commit"] == "361fdccf21":
            assert (indicator, heading) == ("will-it-scale.per_process_ops", "process getppid1"), DEVIATIONS["heading"]
        else:
            assert (indicator, heading) == (each["heading_indicator"], each["heading_scenario"])
        word = "improvement" if each["percent"] > 0 else "regression"
        sentence, title, branch, scenario, machine, status = row.details.split(" · ")
        assert sentence == each["sentence"].replace("% of", f"% {word} of"), DEVIATIONS["verdict"]
        pairs = [pair for pair in each["scenario_pairs"] if [each["commit"], pair[1]] != ["0ddad21d3e", "100%"]]
        assert scenario == " ".join(f"{name}={value}" for name, value in pairs)
        assert title == f'"{each["title"]}"'
        assert (branch, machine) == (each["branch"], each["machine"])
        assert status == each["status_text"].removesuffix(".")


def test_the_comparison(report: Document, published: dict[str, Any]) -> None:
    measured = published["release_comparison"]
    assert "20 tests of 9 suites: 9 better, 8 worse, 3 almost the same" in text_of(list(report.blocks))
    rows = {(str(row.what), row.details): row for row in listed(report, "v5.6 compared with v5.5")}
    assert len(rows) == len(measured) == 20
    for each in measured:
        params = " ".join(f"{name}={value}" for name, value in each["parameters"].items())
        (row,) = [
            row
            for (what, details), row in rows.items()
            if (what, params) == (each["text"], details.partition(" · ")[0])
        ]
        assert row.cells[0] == f"{100 + each['change_pct']:.1f}"
        assert row.told == f"v5.5 is 100: {row.cells[0]}"
    words = [row.verdict for row in rows.values()]
    assert Counter(words) == {"regression": 8, "improvement": 9, "same": 3}
    assert words == sorted(words, key=["regression", "improvement", "same"].index)


def test_the_machines(report: Document, published: dict[str, Any]) -> None:
    (machines,) = [block for block in report.blocks if isinstance(block, TableBlock) and block.caption == "Machines"]
    ours = Counter(tuple(str(cell) for cell in row[1:]) for row in machines.rows)
    names = ("model", "brand", "cpu_number", "memory")
    listed_machines = [tuple(str(each[name]) for name in names) for each in published["test_machines"]]
    compared = {tuple(str(each["machine"].get(name, "")) for name in names) for each in published["release_comparison"]}
    assert ours == Counter(listed_machines) + Counter(compared), DEVIATIONS["machines"]
    families = [
        str(row[0]) for row in machines.rows if str(row[0]) in {each["group"] for each in published["test_machines"]}
    ]
    assert families == [each["group"] for each in published["test_machines"]]
    assert "No hardware details are known of lkp-csl-2sp5" in text_of(list(report.blocks))


def test_each_form_tells_all_of_it(release_report_v5_6: Release, report: Document, client: Client) -> None:
    page = client.get("/v5.6/report/").content.decode()
    plain = client.get("/v5.6/report.txt").content.decode()
    marked = client.get("/v5.6/report.md").content.decode()
    today = document(release_report_v5_6, settings.PERFWORK_LAB, timezone.now())
    assert plain == text.render(today, "http://127.0.0.1:8000")
    assert marked == markdown.to_markdown(today, "http://127.0.0.1:8000")
    data = json.loads(client.get("/v5.6/report.json").content)
    lists = [block for block in data["blocks"] if block["kind"] == "changes"]
    assert [len(block["rows"]) for block in lists] == [5, 2, 23, 2, 1, 6, 20, 7, 20]
    for form in (page, plain, marked):
        assert form.count("/report/") >= 5 + 54 + 7
        for sha in ("52262ee567", "361fdccf21"):
            assert sha in form
    assert max(map(len, plain.splitlines())) <= text.WIDTH


def test_the_course_of_the_cycle_is_drawn_and_its_numbers_stand_below(release_report_v5_6: Release) -> None:
    started = release_report_v5_6.released_at
    assert started
    for number in (1, 2):
        at = started - timedelta(days=7 * (3 - number))
        ReleaseCandidate.objects.create(
            release=release_report_v5_6, version=f"v5.6-rc{number}", number=number, tagged_at=at
        )
    report = document(release_report_v5_6, "0-Day CI", NOW)
    (figure,) = [block for block in report.blocks if isinstance(block, CycleFigure)]
    (numbers,) = [block for block in report.blocks if isinstance(block, TableBlock) and "candidate" in block.caption]
    assert numbers.columns == ("Until", "rc1", "rc2", "v5.6", "now")
    *_, still = numbers.rows
    assert [int(str(cell)) for cell in still[1:]] == [open_then for *_, open_then in figure.chart.dots]
    assert still[-1] == "25"


def random_cycle(seed: int) -> Release:
    """A release with some hundred reports of all kinds, in either section or in both."""
    chance = random.Random(seed)
    release = Release.objects.create(version=f"v7.{seed}", number=7_000_000 + seed)
    mainline, _ = Tree.objects.get_or_create(name="linus", role="mainline")
    for number in range(chance.randrange(60)):
        section = chance.choice(("merged", "shift_left", "both"))
        state = chance.choice([state.value for state in State])
        change = chance.choice((None, chance.uniform(-99, 300)))
        line(
            1000 * seed + number,
            merged_release="" if section == "shift_left" else release.version,
            shift_left_release="" if section == "merged" else release.version,
            state=state,
            status=LABELS[State(state)].lower(),
            verdict=chance.choice(("regression", "regression", "improvement", "unknown")),
            awaited=chance.choice(("author", "reporter", "nobody")),
            change=change,
            weight=abs(change or 0),
            metric="suite.metric",
            reported_at=chance.choice((None, NOW - timedelta(days=chance.randrange(100)))),
            tree=chance.choice((None, mainline)),
        )
    return release


def test_prose_and_lists_have_the_same_numbers(db: None) -> None:
    for seed in range(50):
        release = random_cycle(seed)
        report = document(release, "a lab", NOW)
        prose = text_of([block for block in report.blocks if isinstance(block, Paragraph)])
        lists = {block.caption: list(block.rows) for block in report.blocks if isinstance(block, ChangeList)}
        version = release.version
        elsewhere, unknown = lists.get(OPEN_ELSEWHERE, ()), lists.get(OPEN_VERSION_UNKNOWN, ())
        still = [*lists.get(f"Open in {version}", ()), *elsewhere, *unknown]
        reports = Report.objects.filter(tag__in=[f"{1000 * seed + n:016x}" for n in range(60)])
        regressions = [each for each in reports if each.verdict == "regression" and each.reported_at]
        assert len(still) == sum(each.state in OPEN for each in regressions)
        if not regressions:
            assert f"No performance regressions were reported in {version}" in prose
            continue
        assert f"{version} has {len(still)} open performance regression" in prose
        assert f"of {len(regressions)} reported" in prose
        ended = [*lists.get("Fixed", ()), *lists.get(ENDED, ())]
        assert len(still) + len(ended) == len(regressions)
        if said := re.search(r"(\d+) regressions? (?:was|were) merged in the \S+ cycle, of which (\d+)", prose):
            merged = [each for each in regressions if each.merged_release == version]
            assert [int(number) for number in said.groups()] == [len(merged), len(lists.get(f"Open in {version}", ()))]
        said = re.search(r"(\d+) of them (?:is|are) not in the mainline", prose)
        assert int(said[1] if said else 0) == len(elsewhere)
        said = re.search(r"in a version that is not known, of which (\d+)", prose)
        assert int(said[1] if said else 0) == len(unknown)
        if said := re.search(r"(\d+) wait for their authors", prose):
            waiting = [row for row in still if row.verdict == "regression" and "author" in str(row.told)]
            assert int(said[1]) == sum(each.awaited == "author" for each in regressions if each.state in OPEN)
            assert len(waiting) <= len(still)
        if said := re.search(r"(\d+) (?:is|are) fixed\.", prose):
            assert int(said[1]) == len(lists["Fixed"])
        for heading in report.blocks:
            if isinstance(heading, Heading) and heading.text in lists and heading.aside:
                assert heading.aside == f"({len(lists[heading.text])})"
        improved = re.search(r"(\d+) improvements? (?:was|were) merged(?:, (\d+))?", prose)
        numbers = [int(number or 0) for number in improved.groups()] if improved else [0, 0]
        assert numbers == [len(lists.get(IMPROVED, ())), len(lists.get(IMPROVED_ELSEWHERE, ()))]


def test_what_nobody_was_told_of_is_in_no_report(db: None) -> None:
    release = Release.objects.create(version="v7.99", number=7_000_099)
    columns: dict[str, Any] = {"merged_release": "v7.99", "metric": "a.ops"}
    line(1, change=-90.0, weight=90.0, **columns)  # not mailed yet
    line(
        2,
        change=-5.0,
        weight=5.0,
        reported_at=NOW - timedelta(days=40),
        awaited_since=NOW - timedelta(days=1),
        **columns,
    )
    prose = text_of(list(document(release, "a lab", NOW).blocks))
    assert "v7.99 has 1 open performance regression of 1 reported. The worst is -5.0% of a.ops (0000000003)." in prose
    assert "1 waits for its author." in prose  # since yesterday


def test_an_index_against_a_release_that_has_nothing_of_it_is_not_told(release_report_v5_6: Release) -> None:
    only = Measurement.objects.filter(kernel__name="v5.6").first()
    assert only
    Measurement.objects.filter(kernel__name="v5.5", metric=only.metric).delete()
    BasketEntry.objects.create(basket="default", metric=only.metric, weight=1.0)
    assert "Against v5.5 the index" not in text_of(list(document(release_report_v5_6, "a lab", NOW).blocks))


def test_a_title_of_the_labs_own(release_report_v5_6: Release, client: Client) -> None:
    toni = person("triager", "toni", "toni@lab.example", "x")
    client.force_login(toni)
    data = {"version": "v5.6", "name": "title", "text": "Kernel performance\nat our lab <b>"}
    assert client.post("/write/report/", data).status_code == 302
    assert client.get("/v5.6/report.txt").content.decode().startswith("Kernel performance at our lab <b>\n====")
    assert "<h1>Kernel performance at our lab &lt;b&gt;</h1>" in client.get("/v5.6/report/").content.decode()


@pytest.mark.slow
@pytest.mark.long
def test_it_prints_as_six_pages_of_pdf(release_report_v5_6: Release, tmp_path: Path) -> None:
    """By WeasyPrint, which counts them."""
    need("pango")
    import weasyprint

    out = io.StringIO()
    call_command("report", "v5.6", format="html", stdout=out)
    pages = weasyprint.HTML(string=out.getvalue()).render().pages
    assert 3 <= len(pages) <= 6
    assert report_command._pdf(out.getvalue()).startswith(b"%PDF-")
    assert "http" not in re.sub(r'href="[^"]*"', "", out.getvalue())  # nothing to fetch
    assert 'href="http://127.0.0.1:8000/report/' in out.getvalue()  # it is read elsewhere


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "first"), [("txt", "Linux v5.6"), ("md", "# Linux v5.6"), ("html", "<!doctype html>")]
)
def test_the_command(release_report_v5_6: Release, form: str, first: str) -> None:
    out = io.StringIO()
    call_command("report", "v5.6", format=form, stdout=out)
    assert out.getvalue().startswith(first)
    assert "19 improvements" not in out.getvalue()
    with pytest.raises(CommandError, match="unknown release"):
        call_command("report", "v9.9")


def test_a_report_gets_a_section_of_its_own_and_loses_it(release_report_v5_6: Release, client: Client) -> None:
    toni = User.objects.create_user("toni", "toni@lab.example", "x")
    client.force_login(toni)
    form = {"version": "v5.6", "report": "8019ad13ef", "heading": "futexes"}
    assert client.post("/write/detail/", form).status_code == 403
    toni.groups.add(Group.objects.get(name="triager"))
    for _ in range(2):  # once more changes nothing
        assert client.post("/write/detail/", form).status_code == 302
        assert "per_process_ops, futexes" in client.get("/v5.6/report.txt").content.decode()
    assert "Remove</button>" in client.get("/report/8019ad13ef/").content.decode()
    assert client.post("/write/detail/", {**form, "away": "1"}).status_code == 302
    assert "futexes" not in client.get("/v5.6/report.txt").content.decode()
    assert "Highlight</button>" in client.get("/report/8019ad13ef/").content.decode()


def test_prose_is_written_with_history(release_report_v5_6: Release, client: Client) -> None:
    toni = User.objects.create_user("toni", "toni@lab.example", "x")
    client.force_login(toni)
    data = {"version": "v5.6", "name": "introduction", "text": "A **calm** release. <script>alert(1)</script>"}
    assert client.post("/write/report/", data).status_code == 403
    toni.groups.add(Group.objects.get(name="triager"))
    assert client.post("/write/report/", data).status_code == 302
    assert client.post("/write/report/", {**data, "text": "A **quiet** release."}).status_code == 302
    assert client.post("/write/report/", {**data, "text": "A **quiet** release."}).status_code == 302  # nothing new
    page = client.get("/v5.6/report/?edit=introduction").content.decode()
    assert "A <strong>quiet</strong> release." in page
    assert "A **calm** release. &lt;script&gt;" in page
    assert "A **quiet** release." in client.get("/v5.6/report.md").content.decode()
    assert [(row.by, row.text[:9]) for row in TextRevision.objects.order_by("pk")] == [
        ("toni", "A **calm*"),
        ("toni", "A **quiet"),
    ]
    assert client.post("/write/report/", {**data, "text": ""}).status_code == 302
    assert "quiet</strong>" not in client.get("/v5.6/report/").content.decode()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v9.9/report/", 404), ("/v9.9/report.txt", 404), ("/v5.6/report.pdf", 404), ("/v5.6/report/?edit=x", 400)],
)
def test_what_is_not_there(release_report_v5_6: Release, client: Client, path: str, status: int) -> None:
    assert client.get(path).status_code == status


def test_a_release_that_was_never_measured(release_report_v5_6: Release, client: Client) -> None:
    page = client.get("/v6.1/report.txt").content.decode()
    assert "no measurements of v6.1 yet" in page
    assert "None." in page


def test_the_newest_candidate_stands_for_a_release_in_the_making(release_report_v5_6: Release, client: Client) -> None:
    Measurement.objects.filter(kernel__name="v5.6").delete()
    Kernel.objects.filter(name="v5.6").update(name="v5.6-rc7")
    assert "v5.6-rc7 compared with v5.5" in client.get("/v5.6/report.txt").content.decode().replace("\n", " ")


def test_what_nobody_bisected_has_no_placeholder_for_a_commit(release_report_v5_6: Release, client: Client) -> None:
    facts = {"reporter": "Pat", "mail": "first@users.example"}
    what = {"metric": "fio.read_bw", "change": -50.0, "reported_at": datetime(2020, 3, 1, tzinfo=UTC)}
    report = line(9, merged_release="v5.6", reported_by="person", facts=facts, **what)
    Commit.objects.filter(pk=report.culprit_id).update(placeholder=True, title="")
    ReportHighlight.objects.create(release=release_report_v5_6, report=report)
    page = " ".join(client.get("/v5.6/report.txt").content.decode().split())
    assert "A change that nobody has bisected was reported to have -50.0% regression of fio.read_bw" in page
    assert f"Commit {report.culprit.sha[:10]}" not in page
    assert "not bisected: not bisected" not in page
    assert "fio.read_bw, " not in page


def test_as_many_queries_whatever_there_is(release_report_v5_6: Release, client: Client) -> None:
    def query_count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/v5.6/report/").status_code == 200
        return len(queries)

    few = query_count()
    assert few <= 24
    for report in Report.objects.all():
        ReportHighlight.objects.get_or_create(release=release_report_v5_6, report=report)
    for row in Measurement.objects.filter(kernel__name="v5.6"):
        machine = Machine.objects.create(name=f"another {row.pk}", cpus=row.pk)
        Measurement.objects.create(
            kernel=row.kernel, scenario=row.scenario, machine=machine, metric=row.metric, role=row.role, mean=1.0
        )
    assert query_count() == few


def test_a_test_with_a_history_is_drawn_over_time(release_report_v5_6: Release) -> None:
    """Only where there is one: the published report of a release that has none has no such column."""
    (compared,) = [block for block in section_of_comparison(release_report_v5_6) if isinstance(block, ChangeList)]
    assert [name for name, _ in compared.heads] == ["v5.5 = 100"]
    measured = Measurement.objects.filter(kernel__name="v5.6", role="headline").select_related("metric")[:3]
    for each in measured:
        Curve.objects.create(metric=each.metric, scenario=each.scenario, machine=each.machine, outline="0,0,50,100")
    (compared,) = [block for block in section_of_comparison(release_report_v5_6) if isinstance(block, ChangeList)]
    assert [name for name, _ in compared.heads] == ["v5.5 = 100", "Over time"]
    drawn = [row for row in compared.rows if row.cells[-1]]
    assert len(drawn) == 3
    assert {str(row.cells[-1]) for row in drawn} == {"▁▁▄█"}
    assert all(isinstance(row.what, DocumentLink) and row.what.url.startswith("/curve/") for row in drawn)


def section_of_comparison(release: Release) -> list[Block]:
    return section(document(release, "0-Day CI", NOW), "v5.6 compared with v5.5")


# --- The 0-Day report of v5.6, from the fixture's events to the table, compared with the published one ---

# What may differ, and why. All else is equal to the letter.
TYPO = {"52262ee567": ("merged at at v5.6-rc2", "merged at v5.6-rc2")}
# Listed in both tables with contradicting statuses; ours is one report, shown in both.
TWICE = "fda31c5029"


@pytest.fixture
def v5_6(v5_6_loaded: None, db: None) -> Mapping[str, list[Report]]:
    """The reports of v5.6 by section."""
    return {
        column: list(Report.objects.filter(**{column: "v5.6"}).select_related("culprit"))
        for column in ("merged_release", "shift_left_release")
    }


@pytest.fixture
def v5_6_report_source(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "v5.6-report.json").read_text())  # type: ignore[no-any-return]


def test_both_sections_are_complete(v5_6: Mapping[str, list[Report]]) -> None:
    assert [len(rows) for rows in v5_6.values()] == [11, 43]


def test_every_cell_is_that_of_the_published_report(
    v5_6: Mapping[str, list[Report]], v5_6_report_source: dict[str, Any]
) -> None:
    compare(v5_6["merged_release"], v5_6_report_source["release_test"])
    compare(v5_6["shift_left_release"], v5_6_report_source["shift_left"])


def compare(rows: list[Report], published: list[dict[str, Any]]) -> None:
    ours = {row.culprit.sha: row for row in rows}
    assert ours.keys() == {each["short_sha"] for each in published}
    for each in published:
        row = ours[each["short_sha"]]
        expected = each["status_text"].removesuffix(".")
        wrong, right = TYPO.get(row.culprit.sha, (expected, expected))
        assert expected == wrong
        assert row.status == ("merged at v5.6-rc4" if row.culprit.sha == TWICE else right)
        assert (row.metric, str(row), row.machine) == (each["indicator"], each["report"], each["machine"])
        assert row.scenario == " ".join(f"{name}={value}" for name, value in each["scenario"].items())
        assert row.verdict == each["verdict"]
        if "base" in each:
            assert row.base == each["base"]


def test_the_fixture_is_what_its_maker_makes(v5_6_report_source: dict[str, Any], shared: Path) -> None:
    maker = [sys.executable, str(ROOT / "fixtures" / "make_v5_6.py"), str(shared / "v5.6-report.json")]
    made = subprocess.run(maker, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "fixtures" / "v5_6.json").read_text()


def test_the_fixture_can_be_loaded_twice(v5_6: Mapping[str, list[Report]]) -> None:
    before = list(Report.objects.order_by("pk").values("pk", "state", "status", "metric", "merged_release"))
    call_command("loaddata", "v5_6", verbosity=0)
    call_command("refold", verbosity=0)
    assert list(Report.objects.order_by("pk").values("pk", "state", "status", "metric", "merged_release")) == before


def test_the_page_takes_a_constant_number_of_queries(
    v5_6: Mapping[str, list[Report]], client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(5):  # the release, two sections, the counts of filters, saved views
        page = client.get("/v5.6/?improvements=on").content.decode()
    assert page.count("data-row=") == 54
    assert client.get("/v5.6/").content.decode().count("data-row=") == 28
    with django_assert_num_queries(3):  # once more: nothing has changed, so nothing is counted
        client.get("/v5.6/?improvements=on&section=merged")
    with django_assert_num_queries(8):
        assert ">v5.6</a>" in client.get("/").content.decode()
    with django_assert_num_queries(14):
        client.get("/report/8019ad13ef/")


def test_a_wrong_filter_is_named(v5_6: Mapping[str, list[Report]], client: Client) -> None:
    answer = client.get("/v5.6/?state=sleeping")
    assert answer.status_code == 400
    assert "sleeping" in answer.content.decode()
    only = client.get("/v5.6/?state=working").content.decode()
    assert only.count("data-row=") == 2


@pytest.mark.parametrize("path", ["/v9.9/", "/report/0000000000/", "/report/not-a-sha/"])
def test_what_is_not_there_is_404(v5_6: Mapping[str, list[Report]], client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.content.decode()
