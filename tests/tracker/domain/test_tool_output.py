"""Output of tools: parsed as tables, compared side by side, and stored as received; junk is text."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.domain.events import InvalidInput
from tracker.domain.tool_output import KINDS, TEXT, CellState, ListingRow, ToolListing, diff, kind_of, number, read
from tracker.models import Kernel, ToolOutput
from tracker.services import catalog

FOLDER = Path(__file__).parent / "tool_output"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
# The file, its kind, what its numbers are, how many rows it has, and one of them.
FILES = [
    ("perf-report.txt", "perf report", "cycles, the first of 2 events", 5,
     ListingRow("shrink_folio_list", (14.87,), "[kernel.kallsyms]")),
    ("perf-report-flat.txt", "perf report", "cycles:ppp", 2,
     ListingRow("native_queued_spin_lock_slowpath", (30.10,), "[kernel.kallsyms]")),
    (
            *("opreport.txt", "opreport", "CPU_CLK_UNHALTED", 4),
            ListingRow("Page::lock(unsigned int)", (71002, 4.489), "ledgerd"),
        ),
    ("opreport-images.txt", "opreport", "CPU_CLK_UNHALTED", 2, ListingRow("vmlinux", (701345, 71.221))),
    ("vmstat.txt", "vmstat", "mean of 3 lines, the one since boot left out", 17, ListingRow("cs", (43500,))),
    ("slabinfo.txt", "slabinfo -AD", "caches", 3,
     ListingRow("kmalloc-8192", (203, 12908333, 12908210, 1, 0, 8812, 2, 0, 0))),
    ("proc-vmstat.txt", "/proc counters", "counters", 4, ListingRow("pgfault", (99181234,))),
    ("proc-meminfo.txt", "/proc counters", "counters", 4, ListingRow("Active(anon)", (1224,), "kB")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "title", "rows", "one"), FILES)
def test_each_tool_is_known_and_read(name: str, kind: str, title: str, rows: int, one: ListingRow) -> None:
    text = (FOLDER / name).read_text()
    assert kind_of(text) == kind
    listing = read(kind, text)
    assert listing
    assert (listing.title, len(listing.rows)) == (title, rows)
    (found,) = [row for row in listing.rows if row.name == one.name]
    assert (found.values, found.note) == (pytest.approx(one.values), one.note)
    assert {len(row.values) for row in listing.rows} == {len(listing.columns)}


def test_every_kind_has_a_sample() -> None:
    assert {kind for _, kind, *_ in FILES} == set(KINDS)
    assert {name for name, *_ in FILES} == {each.name for each in FOLDER.glob("*.txt")}


def test_shares_of_a_profile_add_up() -> None:
    listing = read("perf report", (FOLDER / "perf-report.txt").read_text())
    assert listing
    assert sum(row.values[0] or 0 for row in listing.rows) == pytest.approx(40.0)  # Self, not Children


@pytest.mark.parametrize("text", ["We saw more time in the slow path.\nSee below.\n\nBye\n", "", "\n\n", "1 2 3\n"])
def test_prose_is_text(text: str) -> None:
    assert kind_of(text) == TEXT
    assert read(TEXT, text) is None


FILE_LINES = [line for name, *_ in FILES for line in (FOLDER / name).read_text().splitlines()]


@given(st.lists(st.sampled_from(FILE_LINES) | st.text(max_size=60), max_size=12))
def test_junk_never_fails(lines: list[str]) -> None:
    text = "\n".join(lines)
    kind = kind_of(text)
    for name in KINDS:
        listing = read(name, text)
        if listing is None:
            assert name != kind
            continue
        assert {len(row.values) for row in listing.rows} == {len(listing.columns)}
        found = diff([listing, listing, listing])
        assert len(found.rows) + found.left_out == len({row.name for row in listing.rows})
        assert {change for row in found.rows for cell in row.cells for change in cell.changes} <= {0.0, None}


HEADS = [(FOLDER / name).read_text() for name, *_ in FILES]


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "junk", [" " * 400_000, "<" * 400_000, " cs" * 130_000, "samples " * 50_000, "1.0 : " * 70_000]
)
def test_a_long_line_takes_no_longer_than_its_length(head: str, junk: str) -> None:
    begin = time.process_time()
    for text in (head + junk + "x", junk + head, head.replace("\n", junk[:9000] + "\n")):
        for kind in KINDS.values():
            kind.claims(text[:8000])
            kind.parse(text)
    assert time.process_time() - begin < 20  # it took minutes where a pattern walked a line again and again


def test_two_modules_have_a_function_of_one_name() -> None:
    def listing(own: float, theirs: float) -> ToolListing:
        return ToolListing(
            "cycles",
            ("share",),
            (ListingRow("memcpy", (own,), "libc"), ListingRow("memcpy", (theirs,), "vmlinux")),
            True,
        )

    found = diff([listing(60.0, 2.0), listing(60.0, 5.0)])
    assert [(row.note, row.cells[0].values) for row in found.rows] == [
        ("libc", (60.0, 60.0)),
        ("vmlinux", (2.0, 5.0)),
    ]


OTHERS: list[tuple[str, str, list[ListingRow]]] = [
    ("perf report", "# Overhead  sys  us  Command  Shared Object  Symbol\n 60.00%  55.00%  5.00%  a  vmlinux  [k] f\n",
     [ListingRow("f", (60.0,), "vmlinux")]),
    ("opreport", "samples  %  samples  %  image name  symbol name\n10  60.0  7  40.0  vmlinux  f\n",
     [ListingRow("f", (10.0, 60.0), "vmlinux")]),
    ("vmstat", "r b swpd free buff cache si so bi bo in cs us sy id wa st UTC\n"
     "1 0 0 9 9 9 0 0 0 0 7 5 1 2 97 0 0 2026-11-22 10:00:00\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "rows"), OTHERS)
def test_what_tools_print_with_other_options(kind: str, text: str, rows: list[ListingRow]) -> None:
    assert kind_of(text) == kind
    found = read(kind, text)
    assert found
    assert list(found.rows) == rows if rows else len(found.rows) == 17


def test_the_top_functions_before_and_after() -> None:
    old = ToolListing(
        "cycles",
        ("share",),
        (ListingRow("a", (30.0,)), ListingRow("b", (20.0,)), ListingRow("c", (50.0,))),
        is_share=True,
    )
    new = ToolListing(
        "cycles",
        ("share",),
        (ListingRow("b", (45.0,)), ListingRow("d", (5.0,)), ListingRow("c", (1.0,))),
        is_share=True,
    )
    found = diff([old, new], most=3)
    shares = [(row.name, row.cells[0]) for row in found.rows]
    assert shares == [
        ("c", CellState((50.0, 1.0), (-49.0,))),
        ("b", CellState((20.0, 45.0), (25.0,))),
        ("a", CellState((30.0, None), (None,))),  # the new list may be cut off
    ]
    assert found.left_out == 1
    assert diff([old, new]).rows[-1].cells == (CellState((0.0, 5.0), (5.0,)),)  # old is whole, so it had none of d


def test_counters_change_in_per_cent_and_zeros_are_left_out() -> None:
    old = ToolListing(
        "mean",
        ("mean",),
        (ListingRow("in", (200.0,)), ListingRow("cs", (0.0,)), ListingRow("gone", (1.0,)), ListingRow("so", (0.0,))),
    )
    new = ToolListing(
        "mean", ("mean",), (ListingRow("in", (300.0,)), ListingRow("cs", (9.0,)), ListingRow("so", (0.0,)))
    )
    found = diff([old, new, new])
    assert [(row.name, row.cells[0].changes) for row in found.rows] == [
        ("in", (50.0, 50.0)),
        ("cs", (None, None)),
        ("gone", (None, None)),
    ]
    assert found.left_out == 1


@pytest.mark.parametrize(
    ("text", "value"), [("1,234", 1234.0), ("12.5%", 12.5), ("nan", None), ("1_0", None), ("", None)]
)
def test_numbers_as_tools_print_them(text: str, value: float | None) -> None:
    assert number(text) == value


def test_a_file_is_kept_once_and_whole(db: None) -> None:
    kernel = Kernel.objects.create(name="v6.12", measured_at=NOW)
    text = (FOLDER / "vmstat.txt").read_text()
    first = catalog.attach("../../etc/vm\nstat.txt", text, "kim", NOW, kernel=kernel)
    assert catalog.attach("../../etc/vm\nstat.txt", text, "toni", NOW, kernel=kernel) == first
    assert (ToolOutput.objects.get().name, first.kind, first.text) == (".. .. etc vm stat.txt", "vmstat", text)
    for bad, why in ((" ", "the file is empty"), ("x" * (catalog.MOST_CHARACTERS + 1), "expected at most")):
        with pytest.raises(InvalidInput, match=why):
            catalog.attach("a", bad, "kim", NOW, kernel=kernel)
    catalog.attach("odd", "NUL \0 and half \ud800", "kim", NOW, kernel=kernel)
    assert ToolOutput.objects.get(name="odd").text == "NUL \ufffd and half ?"
