"""Kernels side by side: wins of variants, speedups of versions, and the two studies in the fixtures."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.results.storage import ReadAgain, read_again
from tests.conftest import NOW, ROOT
from tracker.charts import bars, letters
from tracker.documents import blocks
from tracker.documents.blocks import ChartBlock, Document, Heading, Paragraph, TableBlock
from tracker.documents.study import StudyFacts, average, average_pct, compose, outcomes, speedup, system, tally
from tracker.domain.kernel_comparison import Box, Cell, ChangeVerdict, ComparisonLine, lines, pooled, summary
from tracker.domain.kernel_comparison import ComparedTest as Tried
from tracker.domain.statistics import SampleSummary, summarise
from tracker.domain.tool_output import ListingRow, ToolListing
from tracker.models import Kernel, Measurement, ReleaseResult, Study, ToolOutput
from tracker.pages.studies import document

FIXTURES = ROOT / "fixtures" / "studies"
SLUGS = ("direct-map", "oltp", "cstates", "slub")


def tried(direction: str = "higher", box: str = "m1") -> Tried:
    return Tried("suite", (("test", "a"),), Box(box), "suite.ops", "ops/s", direction)


def cell(*samples: float) -> Cell:
    return Cell(summarise(samples), tuple(samples))


def mean(value: float) -> Cell:
    return Cell(SampleSummary(value, None, 1))


def line(*cells: Cell | None, direction: str = "higher") -> ComparisonLine:
    (found,) = lines([(tried(direction), cells)])
    return found


@pytest.mark.parametrize(
    ("old", "new", "direction", "word", "percent"),
    [
        (cell(100, 101, 99), cell(91, 92, 90), "higher", ChangeVerdict.REGRESSION, "-9%"),
        (cell(100, 101, 99), cell(91, 92, 90), "lower", ChangeVerdict.IMPROVEMENT, "-9%"),
        (cell(100, 101, 99), cell(91, 92, 90), "unknown", ChangeVerdict.UNKNOWN, "-9%"),
        (cell(100, 120, 80), cell(95, 118, 79), "higher", ChangeVerdict.SAME, "-2.67%"),  # within chance
        (cell(100, 100.01), cell(100.5, 100.51), "higher", ChangeVerdict.SAME, "0.5%"),  # sure, and too small to matter
        (mean(100), mean(91.32), "higher", ChangeVerdict.REGRESSION, "-8.68%"),  # no samples: the size decides
        (mean(100), mean(100), "higher", ChangeVerdict.SAME, "0%"),
        (mean(0), mean(5), "higher", ChangeVerdict.IMPROVEMENT, ""),
        (mean(0), mean(0), "higher", ChangeVerdict.SAME, ""),
        (mean(-100), mean(-50), "higher", ChangeVerdict.IMPROVEMENT, "50%"),
    ],
)
def test_how_two_kernels_differ(old: Cell, new: Cell, direction: str, word: ChangeVerdict, percent: str) -> None:
    change = line(old, new, direction=direction).changes[1]
    assert change
    assert (change.verdict, change.percent) == (word, percent)
    assert change.tested == (len(old.samples) > 1)


def test_the_interval_is_of_the_metric_itself_whatever_is_better() -> None:
    old, new = cell(100, 101, 99, 100), cell(91, 92, 90, 91)
    up, down = line(old, new).changes[1], line(old, new, direction="lower").changes[1]
    assert up
    assert down
    assert up.low is not None
    assert up.high is not None
    assert up.low < -9 < up.high
    assert (down.low, down.high) == (up.low, up.high)


def test_what_is_missing_stays_missing() -> None:
    found = line(None, mean(5), mean(6))
    assert found.changes == (None, None, None)
    assert found.relative == (None, None, None)
    assert line(mean(50), None, mean(75)).relative == (100.0, None, 150.0)


def test_several_results_of_one_place_are_read_together() -> None:
    assert pooled([cell(1, 2), cell(3)]).samples == (1, 2, 3)
    assert pooled([mean(1), mean(2)]).mean == 2
    assert pooled([cell(1, 3), mean(9)]).mean == 2  # samples say more than a mean


def test_the_words_of_a_change() -> None:
    changes = [line(mean(100), mean(each)).changes[1] for each in (91.32, 100.2, 253.32)]
    sentences = [summary(tried(), change, "v5.6", "v5.5") for change in changes if change]
    assert sentences == [
        "suite.ops on kernel v5.6 has -8.68% regression when comparing to v5.5",
        "suite.ops on kernel v5.6 is almost the same as that in v5.5",
        "suite.ops on kernel v5.6 has 153.32% improvement when comparing to v5.5",
    ]


def test_a_winner_or_a_tie() -> None:
    clear = line(cell(100, 101), cell(110, 111), cell(90, 91))
    shared = line(cell(100, 101), cell(110, 111), cell(110.1, 111.1))
    lower = line(cell(100, 101), cell(110, 111), cell(90, 91), direction="lower")
    nobody_knows = line(cell(1, 2), cell(3, 4), cell(5, 6), direction="unknown")
    found = outcomes([clear, shared, lower, nobody_knows, line(cell(1, 2), None, cell(5, 6))])
    assert [each.winner for each in found] == [1, None, 2]
    assert sorted(found[1].best) == [1, 2]
    totals = tally(found, 3)
    assert [share.wins for share in totals.shares] == [0, 1, 1]
    assert (totals.tests, totals.ties) == (3, 1)


def test_the_best_of_all_leads_by_something() -> None:
    close = tally(outcomes([line(cell(100, 101), cell(100.04, 101.04))]), 2)
    assert (close.best, close.shares[1].average_pct) == (None, pytest.approx(0.04, abs=0.001))
    clear = tally(outcomes([line(cell(100, 101), cell(110, 111), cell(105, 106))]), 3)
    assert (clear.best, clear.lead_pct) == (1, pytest.approx(100 * (110.5 / 105.5 - 1)))
    assert tally([], 2).best is None


def test_no_winner_of_ties_alone_and_no_average_of_zeros() -> None:
    ties = tally(outcomes([line(cell(100, 120), cell(101, 121)), line(cell(10, 12), cell(10.1, 12.1))]), 2)
    assert (ties.ties, ties.best) == (2, None)
    zero = tally(outcomes([line(mean(10), mean(0)), line(mean(10), mean(11))]), 2)
    assert (zero.uneven, zero.shares[1].average_pct) == (1, pytest.approx(10))
    far = tally(outcomes([line(mean(1e-200), mean(1e200))]), 2)
    assert (far.uneven, far.best) == (1, None)
    assert line(mean(-10), mean(5)).relative == (None, None)  # no part of a hundred
    nothing = tally(outcomes([line(mean(1e17), mean(3))]), 2)
    assert (nothing.best, nothing.lead_pct) == (None, None)  # over next to nothing, no lead can be said


def test_where_lower_is_better_the_average_is_of_performance() -> None:
    slower = line(mean(10), mean(20), direction="lower")
    change = slower.changes[1]
    assert change
    assert change.pct == 100  # it takes 100 % longer
    assert average_pct([slower], 1) == pytest.approx(-50)  # and does half as much in a time
    drawn = bars(slower, ("v1", "v2"))
    assert drawn
    assert drawn.note == letters(slower, ("v1", "v2"))[-1] == "(lower is better)"


def test_the_average_is_geometric_and_leaves_zeros_out() -> None:
    twice, half = line(mean(10), mean(20)), line(mean(10), mean(5))
    assert speedup([twice, half], 1) == pytest.approx(1.0)
    assert average_pct([twice, line(mean(0), mean(3)), line(mean(3), mean(0))], 1) == pytest.approx(100.0)
    assert speedup([line(mean(10), mean(5), direction="lower")], 1) == pytest.approx(2.0)
    assert speedup([line(mean(0), mean(3))], 1) is None
    assert speedup([twice], 0) == 1.0


numbers = st.floats(0.001, 1e9)
cells = (
    st.lists(numbers, min_size=1, max_size=4).map(lambda numbers_drawn: cell(*numbers_drawn))
    | numbers.map(mean)
    | st.none()
)
tests = st.builds(tried, st.sampled_from(["higher", "lower", "unknown"]), st.sampled_from(["m1", "m2"]))
many = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.tuples(tests, st.lists(cells, min_size=n, max_size=n)), max_size=8)
)


@given(many)
def test_shares_add_up(rows: list[tuple[Tried, list[Cell | None]]]) -> None:
    kernels = len(rows[0][1]) if rows else 1
    found = outcomes(lines(rows))
    totals = tally(found, kernels)
    assert sum(share.wins for share in totals.shares) + totals.ties == totals.tests == len(found)
    if found:
        assert sum(share.pct for share in totals.shares) + totals.ties_pct == pytest.approx(100)
        if kernels == 1:
            assert totals.ties == 0
        boxes = {each.line.test.box for each in found}
        parts = [tally([each for each in found if each.line.test.box == box], kernels) for box in boxes]
        assert sum(part.ties for part in parts) == totals.ties


@given(many, st.floats(0.001, 1000))
def test_the_unit_of_a_metric_changes_nothing(rows: list[tuple[Tried, list[Cell | None]]], factor: float) -> None:
    scaled = [
        (test, [Cell(SampleSummary(one.mean * factor, None, 1)) if one else None for one in row]) for test, row in rows
    ]
    plain = [(test, [Cell(SampleSummary(one.mean, None, 1)) if one else None for one in row]) for test, row in rows]
    kernels = len(rows[0][1]) if rows else 1
    for index in range(kernels):
        before, after = (speedup(lines(each), index) for each in (plain, scaled))
        assert after is before is None or after == pytest.approx(before, rel=1e-9)


def test_what_the_machine_did_by_monitors_or_by_vmstat() -> None:
    printed = ToolListing(
        "mean", ("mean",), (ListingRow("in", (200.0,)), ListingRow("us", (70.0,)), ListingRow("wa", (1.0,)))
    )
    found = system({"vmstat.system.in": [100.0, 300.0]}, [printed])
    assert found.values == (200.0, None, 70.0, None, None, 1.0)
    assert not system({}, [])


# --- the studies of the fixtures ---


@pytest.fixture
def studies(db: None) -> None:
    call_command("ingest", *(str(FIXTURES / f"{name}.jsonl") for name in SLUGS), verbosity=0)
    call_command("loaddata", "lab_texts", "studies", verbosity=0)


def study_document(slug: str) -> Document:
    return document(Study.objects.get(slug=slug))


def table(found: Document, caption: str) -> TableBlock:
    (one,) = [block for block in found.blocks if isinstance(block, TableBlock) and block.caption == caption]
    return one


def test_the_direct_map(studies: None) -> None:
    found = study_document("direct-map")
    assert found.aside == "v5.10/1G, v5.10/2M, v5.10/4K: 72 tests of 11 benchmarks on 4 machines"
    shares = table(found, "How often each variant is best").rows
    assert [row[0] for row in shares] == ["1G", "2M", "4K", "ties", "all"]
    assert sum(int(str(row[1])) for row in shares[:4]) == int(str(shares[4][1])) == 72
    assert sum(float(str(row[2])) for row in shares[:4]) == pytest.approx(100.0, abs=0.2)
    by_machine = table(found, "Wins by machine")
    assert [row[0] for row in by_machine.rows] == ["lab-a-2sp1", "lab-b-2sp2", "lab-c-4sp1", "lab-d-2sp3"]
    for column, total in ((1, 72), (2, shares[0][1]), (3, shares[1][1]), (4, shares[2][1]), (5, shares[3][1])):
        assert sum(int(str(row[column])) for row in by_machine.rows) == int(str(total))
    assert {str(row[-1]) for row in by_machine.rows} <= {"1G", "2M", "4K", "none"}
    matrix = table(found, "The best variant of each benchmark on each machine")
    assert (len(matrix.rows), len(matrix.columns)) == (11, 5)
    assert sum(str(each) == "–" for row in matrix.rows for each in row) == 3  # not every benchmark on every machine


def test_a_win_of_the_direct_map_by_hand(studies: None) -> None:
    """The test with the clearest winner, reckoned from the file itself."""
    results = [json.loads(each) for each in (FIXTURES / "direct-map.jsonl").read_text().splitlines()]
    means: dict[str, float] = {}
    for each in results:
        for test in (each, *each["additional"]):
            if test["test"]["suite"] == "memtier" and test["machine"]["id"] == "lab-b-2sp2":
                samples = test["measurements"][0]["samples"]
                means[each["kernel"]["variant"]] = sum(samples) / len(samples)
    second, best = sorted(means, key=lambda variant: means[variant])[1:]
    lead = 100 * (means[best] / means[second] - 1)
    rows = {
        str(row[0]): row
        for row in table(study_document("direct-map"), "The best variant of each benchmark on each machine").rows
    }
    assert rows["memtier"][2] == f"{best} {lead:+.1f} % (1)"


def test_the_versions_under_oltp(studies: None) -> None:
    found = study_document("oltp")
    columns = ["Kernel", "Speedup (x)", "Intr/s", "CtxSw/s", "us%", "sys%", "idle%", "iowait%"]
    assert list(table(found, "Speedup").columns) == columns
    assert [tuple(map(str, row)) for row in table(found, "Speedup").rows] == [
        ("2.6.24.2", "1.000", "21969", "43425", "76", "24", "0", "0"),
        ("2.6.27.2", "0.973", "30402", "43523", "74", "25", "0", "1"),
        ("2.6.28-rc8", "0.966", "30429", "42608", "74", "25", "0", "0"),
    ]
    profiles = table(found, "opreport of 2.6.24.2 and 2.6.27.2 and 2.6.28-rc8")
    functions = {str(row[0]): row for row in profiles.rows}
    assert functions["qla24xx_intr_handler (qla2xxx)"][1:] == ["0.3953", "0.6209", "0.8605", "+0.23", "+0.47"]
    assert functions["schedule (vmlinux)"][2:] == ["–", "–", "–", "–"]  # the list is cut, so nobody knows
    differences = [[abs(float(str(cell))) for cell in row[-2:] if cell != "–"] for row in profiles.rows]
    largest = [max(known) for known in differences if known]
    assert largest == sorted(largest, reverse=True)
    assert not any(differences[len(largest) :])  # those that can't be compared come last
    assert {each.kind for each in ToolOutput.objects.all()} == {"opreport", "slabinfo -AD", "vmstat"}


# --- Every table of the documents that these studies are from, made again ---


def seed(shared: Path, number: str) -> str:
    (path,) = (shared / "seeds").glob(f"{number}_*.txt")
    return path.read_text()


def test_every_function_of_the_oltp_report_stands_in_its_rank(studies: None, shared: Path) -> None:
    ranks = table(study_document("oltp"), "opreport of 2.6.24.2 and 2.6.27.2 and 2.6.28-rc8, by rank").rows
    assert len(ranks) == 30
    pairs = re.findall(r"^(\d\.\d{4}) (\S+?)\s?(\d\.\d{4}) (\S+)$", seed(shared, "003"), re.M)
    assert len(pairs) == 60  # two kernels side by side, twice
    for rank, (old, new) in enumerate(zip(pairs[:30], pairs[30:], strict=True)):
        published = [f"{old[0]} {old[1]}", f"{old[2]} {old[3]}", f"{new[2]} {new[3]}"]
        assert [str(cell) for cell in ranks[rank][1:]] == published
        assert published[1] == f"{new[0]} {new[1]}"
    summary = re.search(r"^2\.6\.27\.2 (.*)$", seed(shared, "003"), re.M)
    assert summary
    row = table(study_document("oltp"), "Speedup").rows[1]
    assert [str(cell) for cell in row[1:]] == summary[1].split()


def test_the_table_of_c_states(studies: None, shared: Path) -> None:
    rows = re.findall(
        r"^\| ▪ (\d+) disks?\s*\| (\d+) Mb/s\s*\| (\d+) Mb/s\s*\| (\d+) Mb/s\s*\|$", seed(shared, "001"), re.M
    )
    assert len(rows) == 3
    found = study_document("cstates")
    ours = {
        str(row[0]): [str(cell).partition(" ")[0] for cell in row[2:]]
        for row in table(found, "Every test on unnamed machine").rows
    }
    for disks, none, current, new in rows:
        assert ours[f"fio, rw=read, disks={disks}"] == [current, none, new]
    (chart,) = [block for block in found.blocks if isinstance(block, ChartBlock)]
    assert [bar.label for bar in chart.bars.bars] == ["current linux", "no cstates", "new algorithm"]
    assert chart.bars.bars[0].value == "100.0"
    assert all(bar.low is None for bar in chart.bars.bars)  # single runs on one machine tell nothing of chance


def test_the_listings_of_the_article_are_kept_as_printed(studies: None, shared: Path) -> None:
    article = seed(shared, "004")
    for row in ToolOutput.objects.filter(kernel__name="v2.6.25-rc4"):
        for line in row.text.splitlines():
            assert line in article
    page = blocks.render(study_document("slub"), "http://127.0.0.1:8000")
    assert "0.1 (-90.0)" in page
    for tool in ("vmstat", "opreport", "slabinfo"):
        assert f"default: {tool}.txt <http://127.0.0.1:8000/tool-output/" in page


def test_files_that_no_table_is_made_of_are_linked(studies: None, client: Client) -> None:
    text = "class name    con-bounces    contentions\n&q->lock:      12             14\n"
    for name in ("v2.6.24.2", "v2.6.27.2"):
        kernel = Kernel.objects.get(name=name)
        ToolOutput.objects.create(kernel=kernel, name="lock_stat.txt", kind="text", text=text, key=name, at=NOW)
    plain = client.get("/study/oltp.txt").content.decode()
    assert "- 2.6.24.2: lock_stat.txt <http://127.0.0.1:8000/tool-output/" in plain
    assert "- 2.6.27.2: lock_stat.txt <" in plain


def test_invented_numbers_are_called_so_where_they_are_read(studies: None, client: Client) -> None:
    assert "<h1>The kernel&#x27;s direct map in pages of 1G, 2M and 4K (invented numbers)</h1>" in (
        client.get("/study/direct-map/").content.decode()
    )
    assert "opreport, counts made from the shares.txt" in client.get("/study/oltp/").content.decode()


def test_each_bar_has_its_baseline_runs_and_interval(studies: None) -> None:
    """Reckoned by hand for one benchmark: over the machines that ran it, by Student's t."""
    charts = [block for block in study_document("direct-map").blocks if isinstance(block, ChartBlock)]
    assert len(charts) == 11
    for chart in charts:
        assert [f"{bar.label}{bar.repeated}" for bar in chart.bars.bars] == ["1G, n = 5", "2M, n = 5", "4K, n = 5"]
        assert chart.bars.bars[0].value == "100.0"
        assert all(bar.low is not None and bar.high is not None for bar in chart.bars.bars[1:])
    logs: dict[str, float] = {}
    means: dict[tuple[str, str], float] = {}
    for each in map(json.loads, (FIXTURES / "direct-map.jsonl").read_text().splitlines()):
        for test in (each, *each["additional"]):
            if test["test"]["suite"] == "reaim":
                samples = test["measurements"][0]["samples"]
                means[each["machine"]["id"], each["kernel"]["variant"]] = sum(samples) / len(samples)
    logs = {box: math.log(means[box, "4K"] / means[box, "1G"]) for box, variant in means if variant == "4K"}
    middle, error = statistics.fmean(logs.values()), statistics.stdev(logs.values()) / math.sqrt(len(logs))
    (lines_of_chart,) = [
        list(chart.letters) for heading, chart in pairwise(study_document("direct-map").blocks)
        if isinstance(heading, Heading) and heading.text == "reaim" and isinstance(chart, ChartBlock)
    ]  # fmt: skip
    low, high = (100 * math.exp(middle + sign * 3.182446 * error) for sign in (-1, 1))
    assert lines_of_chart[2].startswith(f"4K  {100 * math.exp(middle):>7.1f}")
    assert lines_of_chart[2].endswith(f"{low:.1f} to {high:.1f}, n = 5")


def test_they_round_trip(studies: None, tmp_path: Path) -> None:
    """What is kept of the results makes the same studies again."""
    before = {slug: blocks.render(study_document(slug)) for slug in SLUGS}
    kept = tmp_path / "kept.jsonl"
    payloads = ReleaseResult.objects.order_by("pk").values_list("payload", flat=True)
    kept.write_text("".join(f"{each}\n" for each in payloads))
    lines_of_file = [line for name in SLUGS for line in (FIXTURES / f"{name}.jsonl").open()]
    assert [json.loads(each) for each in kept.open()] == [json.loads(each) for each in lines_of_file]
    for model in (Study, ToolOutput, Measurement, ReleaseResult, Kernel):
        model.objects.all().delete()
    call_command("ingest", str(kept), verbosity=0)
    call_command("loaddata", "studies", verbosity=0)
    assert {slug: blocks.render(study_document(slug)) for slug in before} == before


def test_the_fixture_is_what_its_maker_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "fixtures"))
    import make_studies

    for name, results in make_studies.STUDIES.items():
        made = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in results())
        assert made == (FIXTURES / f"{name}.jsonl").read_text()


Queries = Callable[[int], Any]


def test_the_pages(studies: None, client: Client, django_assert_max_num_queries: Queries) -> None:
    for slug in SLUGS:
        with django_assert_max_num_queries(10):
            page = client.get(f"/study/{slug}/").content.decode()
        for block in study_document(slug).blocks:
            if isinstance(block, Heading):
                assert block.text.replace("'", "&#x27;") in page
        plain = client.get(f"/study/{slug}.txt").content.decode()
        assert plain == blocks.render(study_document(slug), "http://127.0.0.1:8000")
        assert max(map(len, plain.splitlines())) <= 78
        assert client.get(f"/study/{slug}.md").content.decode().startswith("# ")
    listed = client.get("/studies/").content.decode()
    assert "/study/oltp/" in listed
    with django_assert_max_num_queries(11):
        page = client.get("/compare/?of=v2.6.24.2&of=v2.6.28-rc8").content.decode()
    assert "v2.6.24.2 vs. v2.6.28-rc8" in page
    assert "How often each is best" in client.get("/compare/?of=v5.10/1G&of=v5.10/4K").content.decode()
    assert client.get("/compare.txt?of=v5.10/1G&of=v5.10/4K").content.decode().startswith("v5.10/1G vs. v5.10/4K")
    for path, status, message in (
        ("/compare/?of=v9.9", 400, "of: no kernel &#x27;v9.9&#x27; was measured"),
        ("/compare.txt", 400, "of: expected kernels, found none"),
        ("/compare/?" + "of=v5.10/1G&" * 13, 400, "of: expected at most 12 kernels, found 13"),
        ("/study/none/", 404, "There is no study none"),
        ("/study/oltp/?edit=x", 400, "edit: expected one of"),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert message.replace("&#x27;", "'") in answer.content.decode().replace("&#x27;", "'")


def test_a_comparison_is_kept_and_written_about(studies: None, client: Client) -> None:
    form = {"of": ["v2.6.24.2", "v2.6.27.2"], "slug": "old-ones", "title": "Old kernels", "kind": ""}
    toni = User.objects.create_user("toni", "toni@lab.example", "x")
    client.force_login(toni)
    assert client.post("/studies/keep/", form).status_code == 403
    toni.groups.add(Group.objects.get(name="triager"))
    assert client.post("/studies/keep/", {**form, "slug": "../x"}).status_code == 400
    assert client.post("/studies/keep/", {**form, "of": ["v2.6.24.2"]}).status_code == 400
    assert client.post("/studies/keep/", form)["Location"] == "/study/old-ones/"
    assert client.post("/studies/keep/", form).status_code == 400  # the address is taken
    data = {"slug": "old-ones", "name": "conclusions", "text": "The *middle* one is slower."}
    assert client.post("/studies/write/", data).status_code == 302
    assert "The <em>middle</em> one is slower." in client.get("/study/old-ones/").content.decode()


def test_a_large_study_says_what_it_leaves_out(db: None, tmp_path: Path, client: Client) -> None:
    vmstat = (ROOT / "tests" / "tracker" / "domain" / "tool_output" / "vmstat.txt").read_text()
    results = []
    for kernel in ("v6.1", "v6.2"):
        for number in range(110):
            headline = {
                "metric": "scan.ops",
                "unit": "ops/s",
                "direction": "higher",
                "role": "headline",
                "samples": [1, 2],
            }
            results.append(
                {
                    "schema": "perf-release-result/1",
                    "producer": {"name": "lab"},
                    "id": f"{kernel}-{number}",
                    "created_at": "2026-01-01T00:00:00Z",
                    "kernel": {"version": kernel},
                    "test": {"suite": "scan", "params": {"n": str(number)}},
                    "machine": {"id": "m1", "cpus": 1},
                    "measurements": [{**headline, "samples": [1, 2]}],
                    "evidence": [{"name": "vmstat.txt", "text": vmstat}],
                }
            )
    path = tmp_path / "many.json"
    path.write_text(json.dumps(results))
    call_command("ingest", str(path), verbosity=0)
    assert ToolOutput.objects.count() == 220
    page = client.get("/compare/?of=v6.1&of=v6.2").content.decode()
    assert "110 tests within noise, or changed by less than 1%" in page
    assert "180 files not shown (limit reached)." in page
    assert page.count("43,500") >= 2  # vmstat of both
    assert page.index('">30220</a></td>') < page.rindex('">30220</a></td>')  # and both in the columns


def test_the_first_that_is_chosen_is_the_base(studies: None, client: Client) -> None:
    listed = client.get("/compare/").content.decode()
    assert listed.index('value="v2.6.24.2"') < listed.index('value="v2.6.27.2"') < listed.index('value="v2.6.28-rc8"')
    page = client.get("/compare/?of=v2.6.24.2&of=v2.6.27.2").content.decode()
    assert 'href="?of=v2.6.27.2&amp;of=v2.6.24.2"' in page
    assert "v2.6.27.2 vs. v2.6.24.2" in client.get("/compare/?of=v2.6.27.2&of=v2.6.24.2").content.decode()


def test_the_page_of_a_kernel(studies: None, client: Client, django_assert_max_num_queries: Queries) -> None:
    with django_assert_max_num_queries(6):
        page = client.get("/kernel/v2.6.27.2/").content.decode()
    for expected in (
        "oltp.transactions",
        "vmstat.system.cs",
        "opreport, counts made from the shares.txt",
        "example/oltp-v2.6.27.2",
        "with v2.6.24.2",
    ):
        assert expected in page
    assert "with v5.10/2M" in client.get("/kernel/v5.10/1G/").content.decode()
    assert client.get("/kernel/v9.9/").status_code == 404
    sha = "a1b2" * 10
    Kernel.objects.create(name=sha, describe="v6.12-rc3-77-ga1b2a1b2", measured_at="2026-01-01T00:00:00Z")
    Kernel.objects.create(name="b" * 40, variant="2M", measured_at="2026-01-01T00:00:00Z")
    assert "<h1>v6.12-rc3-77-ga1b2a1b2" in client.get(f"/kernel/{sha}/").content.decode()
    compared = client.get(f"/compare.txt?of={sha}&of={'b' * 40}/2M").content.decode()
    assert compared.startswith("v6.12-rc3-77-ga1b2a1b2 vs. bbbbbbbbbbbb/2M\n")


def test_all_is_read_again_with_the_code_of_today(studies: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {slug: study_document(slug) for slug in SLUGS}
    ToolOutput.objects.update(kind="text")  # as if nobody had known these tools then
    Measurement.objects.filter(metric__name="oltp.transactions").update(mean=7.0)
    assert read_again() == ReadAgain(results=20, files=6, changed=9, rejected=0)
    assert {slug: study_document(slug) for slug in before} == before
    assert read_again().changed == 0


# --- Two kernels, by size of change ---


def test_two_kernels_are_compared_by_size_and_what_did_not_change_is_folded(
    v5_6_loaded: None, db: None, client: Client
) -> None:
    answer = client.get("/compare.json?of=v5.5&of=v5.6").json()
    (listed,) = [block for block in answer["blocks"] if block["kind"] == "changes"]
    sizes = [abs(math.log1p(row["change"] / 100)) for row in listed["rows"]]
    assert sizes == sorted(sizes, reverse=True)
    assert (len(listed["rows"]), len(listed["folded"])) == (17, 3)
    assert listed["rows"][0]["cells"] == ["100 → 694.1 ops/s", "1 + 1"]
    page = client.get("/compare/?of=v5.5&of=v5.6").content.decode()
    assert "<details><summary>3 tests within noise, or changed by less than 1%</summary>" in page
    assert "Of 20 tests, 8 worse, 9 better, 3 within noise or changed by less than 1%." in page
    assert "20 tests ran too few times to test for significance" in page
    plain = client.get("/compare.txt?of=v5.5&of=v5.6").content.decode()
    assert plain.index("+594.1%") < plain.index("-68.7%") < plain.index("3 tests within noise") < plain.index("+0.0%")


def clustered(*ratios: tuple[str, float]) -> list[ComparisonLine]:
    return [line_on(box, ratio) for box, ratio in ratios]


def line_on(box: str, ratio: float) -> ComparisonLine:
    (made,) = lines([(tried(box=box), [mean(100.0), mean(100.0 * ratio)])])
    return made


def test_tests_of_one_machine_count_as_one_where_chance_is_told() -> None:
    """Four tests that moved alike: on four machines that is much, on two of them little."""
    moved = (1.10, 1.11, 1.30, 1.31)
    apart = average(clustered(*((f"m{n}", ratio) for n, ratio in enumerate(moved))), 1)
    together = average(clustered(*((f"m{n // 2}", ratio) for n, ratio in enumerate(moved))), 1)
    assert apart[0] == together[0] == pytest.approx(100 * math.prod(moved) ** 0.25)
    assert apart[1]
    assert together[1]
    assert together[1] < 100 < apart[1] < apart[0]
    # by hand: two clusters, each with a sum of residuals of ± r, and Student's t with one degree of freedom
    logs = [math.log(ratio) for ratio in moved]
    residual = logs[0] + logs[1] - 2 * statistics.fmean(logs)
    error = math.sqrt(2 * residual**2 * 2 / 1) / 4
    assert together[1] == pytest.approx(100 * math.exp(statistics.fmean(logs) - 12.7062 * error), rel=1e-4)
    assert average(clustered(("m1", 1.2), ("m1", 1.2)), 1) == (pytest.approx(120.0), None, None)  # single runs
    assert average(clustered(("m1", 1.3), ("m1", 0.9), ("m2", 1.3), ("m2", 0.9)), 1)[1:] == (None, None)  # cancel out
    assert average([], 1) == (None, None, None)
    # one machine: the runs of both tests together
    runs = [line(cell(100, 101, 99, 100), cell(110, 111, 109, 110)), line(cell(10, 10.1, 9.9), cell(11, 11.1, 10.9))]
    middle, low, high = average(runs, 1)
    assert middle == pytest.approx(110.0, abs=0.01)
    assert low
    assert high
    assert 109.0 < low < 110.0 < high < 111.0


def test_a_sentence_about_two_kernels_counts_every_test() -> None:
    tests = [line(mean(100), mean(each), direction=direction) for each, direction in (
        (90, "higher"), (110, "higher"), (100, "higher"), (150, "unknown"),
    )]  # fmt: skip
    facts = StudyFacts("t", ("v1", "v2"), ("v1", "v2"), False, tests, [], [], {})
    text = " ".join(block.text for block in compose(facts).blocks if isinstance(block, Paragraph))
    assert "Of 4 tests, 1 worse, 1 better, 1 within noise or changed by less than 1%, 1 changed with unknown" in text
    assert "nothing tells how much of it is chance" in text
    nothing = StudyFacts("t", ("v1", "v2"), ("v1", "v2"), False, [line(mean(1), None)], [], [], {})
    assert "Of 0" not in blocks.render(compose(nothing))
