"""What tools print: recognised, read as tables of names and numbers, compared side by side. Pure.

A text is of the first kind in KINDS whose `claims` accepts its head, and in which `parse` finds rows; any other text
is TEXT, stored and shown as it is. A listing has a row per function, counter or cache. Shares are compared in
percentage points, all else in per cent. Tools print whatever they like: a line that doesn't fit is passed over.

To add a kind: `_is_…_heading` and `_parse_…` here, a line in KINDS, a sample in tests/tracker/domain/tool_output/, and
a row in docs/measurements.md.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean

from tracker.domain.statistics import change_pct

MOST_ROWS = 100_000
TEXT = "text"  # anything that no kind claims
_HEAD = 8_000  # characters that decide on the kind


@dataclass(frozen=True, slots=True)
class ListingRow:
    """A function, a counter, a cache. `note`: where it belongs, such as the module of a function."""

    name: str
    values: tuple[float | None, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """`title`: what the numbers are. `is_share`: they are per cent of a whole, and changes are in percentage points."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ListingRow, ...]
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A kind of output. `claims`: whether a text that starts so looks like it; `parse` reads the whole text."""

    name: str
    claims: Callable[[str], bool]
    parse: Callable[[str], ToolListing]


def kind_of(text: str) -> str:
    """Return the name of the kind that claims a text and finds something in it; TEXT if none does."""
    head = text[:_HEAD]
    return next((name for name, kind in KINDS.items() if kind.claims(head) and kind.parse(text).rows), TEXT)


def read(kind: str, text: str) -> ToolListing | None:
    """Return the text as a table; None if its kind is unknown or nothing is found in it."""
    listing = KINDS[kind].parse(text) if kind in KINDS else None
    return listing if listing and listing.rows else None


# --- Side by side ---

TOP = 30  # functions, as in profiles in mail
_COMPLETE_PCT = 99.0  # per cent: in a listing with less, a missing function may have been cut off


@dataclass(frozen=True, slots=True)
class CellState:
    """One column of one name: its value in each listing, and the changes of all but the first against the first, in
    percentage points for shares, otherwise in per cent; None if either is unknown. A function that is missing in a
    complete profile has a share of 0.
    """

    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One name, with a cell per column."""

    name: str
    note: str
    cells: tuple[CellState, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """`left_out`: the number of names not shown, since they are small or zero everywhere."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[DiffRow, ...]
    is_share: bool
    left_out: int


def diff(listings: Sequence[ToolListing], most: int = TOP) -> Diff:
    """Return the first `most` names: for profiles by largest share, otherwise in the order of the tool."""
    first = listings[0]
    columns = tuple(name for name in first.columns if all(name in listing.columns for listing in listings))
    names = list(dict.fromkeys((row.name, row.note) for listing in listings for row in listing.rows))
    rows = _rows(listings, names, columns)
    kept = [entry for entry in rows if any(value for cell in entry.cells for value in cell.values)]
    if first.is_share and "share" in columns:
        at = columns.index("share")
        kept.sort(key=lambda entry: -max(value or 0.0 for value in entry.cells[at].values))
    title = "; ".join(dict.fromkeys(listing.title for listing in listings))
    return Diff(title, columns, tuple(kept[:most]), first.is_share, len(rows) - len(kept[:most]))


def by_share(listing: ToolListing) -> list[ListingRow]:
    """Return the functions of a profile, the largest share first."""
    at = listing.columns.index("share")
    return sorted(listing.rows, key=lambda row: -(row.values[at] or 0.0))


def _rows(listings: Sequence[ToolListing], names: Sequence[tuple[str, str]], columns: Sequence[str]) -> list[DiffRow]:
    rows = [{(row.name, row.note): row for row in listing.rows} for listing in listings]
    at = [[listing.columns.index(column) for column in columns] for listing in listings]
    absent: list[float | None] = []  # the value of a name that a listing lacks
    for listing in listings:
        share = listing.columns.index("share") if listing.is_share else None
        total = 0.0 if share is None else sum(row.values[share] or 0.0 for row in listing.rows)
        absent.append(0.0 if total >= _COMPLETE_PCT else None)
    diff_rows = []
    for name, note in names:
        matches = [by_name.get((name, note)) for by_name in rows]
        cells = []
        for number, column in enumerate(columns):
            in_points = listings[0].is_share and column == "share"
            values = tuple(
                row.values[own[number]] if row else (lack if in_points else None)
                for row, own, lack in zip(matches, at, absent, strict=True)
            )
            cells.append(CellState(values, tuple(_change(values[0], value, in_points) for value in values[1:])))
        diff_rows.append(DiffRow(name, note, tuple(cells)))
    return diff_rows


def _change(old: float | None, new: float | None, in_points: bool) -> float | None:
    if old is None or new is None:
        return None
    return new - old if in_points else change_pct(old, new)


# --- What all parsers use ---


def lines_of(text: str, most: int = 1000) -> Iterator[str]:
    """Return the lines of a text, each cut: no tool prints longer ones, and they would slow down the patterns."""
    return (line[:most] for line in text.splitlines())


def with_heading(is_heading: Callable[[str], object]) -> Callable[[str], bool]:
    """Return the check whether a text has such a heading."""
    return lambda head: any(map(is_heading, lines_of(head, 300)))


def number(text: str) -> float | None:
    """Parse a finite number as tools print it: "1,234", "12.3%". Returns None for anything else."""
    try:
        value = float(text.strip().removesuffix("%").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def mean_of(values: Sequence[float]) -> float | None:
    """Return the mean; None for no values, or if it is not finite."""
    try:
        mean = fmean(values) if values else math.inf
    except OverflowError:
        return None
    return mean if math.isfinite(mean) else None


def summed(rows: Iterable[ListingRow]) -> tuple[ListingRow, ...]:
    """Add up rows of the same name and note, in order of first appearance; at most MOST_ROWS."""
    sums: dict[tuple[str, str], Sequence[float | None]] = {}
    for row in rows:
        key = (row.name, row.note)
        if key in sums:
            sums[key] = [
                (b if a is None else a if b is None else a + b) for a, b in zip(sums[key], row.values, strict=True)
            ]
        elif len(sums) < MOST_ROWS:
            sums[key] = row.values
    return tuple(ListingRow(name, tuple(values), note) for (name, note), values in sums.items())


# --- `perf report --stdio` ---

# Functions by their share of the samples (tools/perf/Documentation/perf-report.txt). Of call graphs only the
# functions' own lines count, of several events the first; of Children and Self, Self, so that shares make 100%.
_EVENT = re.compile(r"# Samples: \S{1,20} +of events? '([^']{1,100})'")
# The marks before a symbol: kernel, user space, guests.
_SYMBOL_MARKS = frozenset({"[k]", "[.]", "[g]", "[u]", "[H]"})


def _is_perf_report_heading(line: str) -> bool:
    words = line.removeprefix("#").split()
    return line.startswith("#") and words[:1] in (["Children"], ["Overhead"]) and "Symbol" in words


def _parse_perf_report(text: str) -> ToolListing:
    events = [match[1] for line in lines_of(text, 300) if (match := _EVENT.match(line))]
    title = events[0] if events else "samples"
    title += f", the first of {len(events)} events" if len(events) > 1 else ""
    return ToolListing(title, ("share",), summed(_perf_report_rows(text)), is_share=True)


def _perf_report_rows(text: str) -> Iterator[ListingRow]:
    headings, has_self = 0, False
    for line in lines_of(text):
        if line.startswith("#"):
            if _is_perf_report_heading(line):
                headings += 1
                has_self = has_self or "Self" in line
            if headings > 1:
                return
            continue
        words = line.split()
        at = next((index for index, word in enumerate(words) if word in _SYMBOL_MARKS), 0)
        if at < 1 or at + 1 >= len(words) or not words[0].endswith("%") or "--" in "".join(words[:at]):
            continue
        own = words[1] if has_self and at > 1 and words[1].endswith("%") else words[0]
        share = number(own)
        if share is not None:
            module = words[at - 1] if not words[at - 1].endswith("%") else ""
            yield ListingRow(" ".join(words[at + 1 :]), (share,), module)


# --- `opreport`, with or without `-l` ---

# Functions or images by their share of the samples (OProfile manual, chapter 4). A line holds [vma] samples %
# [image name] [app name] [symbol name], as its heading says; only the first event is read.
_COUNTED = re.compile(r"Counted (\w{1,60}) events")
_OPREPORT_NAMES = ("image name", "app name", "symbol name")


def _is_opreport_heading(line: str) -> bool:
    """ "samples  %  image name …", "vma  samples  %  …", "  samples|      %|"."""
    words = line.replace("|", " ").split()
    return words[:2] == ["samples", "%"] or words[:3] == ["vma", "samples", "%"]


def _parse_opreport(text: str) -> ToolListing:
    counted = next((match[1] for line in lines_of(text, 300) if (match := _COUNTED.match(line))), "samples")
    return ToolListing(counted, ("samples", "share"), summed(_opreport_rows(text)), is_share=True)


def _opreport_rows(text: str) -> Iterator[ListingRow]:
    first = events = names = 0
    for line in lines_of(text):
        if _is_opreport_heading(line):
            heading = line[:300].replace("|", " ")
            first = int(heading.split()[0] == "vma")
            events = heading.split().count("samples")
            names = max(1, sum(name in heading for name in _OPREPORT_NAMES))
            continue
        words = line.split(None, first + 2 * events + names - 1) if events else []
        labels = words[first + 2 * events :]
        if not labels:
            continue
        samples, share = number(words[first]), number(words[first + 1])
        if samples is not None and share is not None and 0 <= share <= 100:
            yield ListingRow(labels[-1].strip(), (samples, share), labels[0] if len(labels) > 1 else "")


# --- `slabinfo -AD` ---


# SLUB caches by activity (tools/mm/slabinfo.c). %Fast has two columns: allocation and free.
def _is_slabinfo_heading(line: str) -> bool:
    return line.split()[:5] == ["Name", "Objects", "Alloc", "Free", "%Fast"]


def _parse_slabinfo(text: str) -> ToolListing:
    columns: tuple[str, ...] = ()
    rows: list[ListingRow] = []
    for line in lines_of(text):
        if _is_slabinfo_heading(line):
            named = (("%Fast alloc", "%Fast free") if word == "%Fast" else (word,) for word in line.split()[1:20])
            columns = columns or tuple(chain.from_iterable(named))
        elif columns and len(rows) < MOST_ROWS:
            name, *words = line.split() or [""]
            values = [number(word) for word in words]
            if name and 4 <= len(values) <= len(columns) and None not in values:
                rows.append(ListingRow(name, (*values, *[None] * (len(columns) - len(values)))))
    return ToolListing("caches", columns, tuple(rows))


# --- `vmstat N` ---

# The mean of each column (man vmstat). The first line covers the time since boot, and is left out if others
# follow. The timestamp after the last column (`-t`) is ignored.
_MOST_VMSTAT_LINES = 100_000  # lines
_VMSTAT_COLUMNS = frozenset(
    (
        "r", "b", "swpd", "free", "inact", "active", "buff", "cache",
        "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st", "gu",
    )
)  # fmt: skip


def _vmstat_names(line: str) -> Sequence[str]:
    """Return the columns that a heading names; () if it is not a heading."""
    words = line.split()
    columns = [word for word in words if word in _VMSTAT_COLUMNS]
    return columns if words[:3] == ["r", "b", "swpd"] and len(set(columns)) == len(columns) >= 12 else ()


def _parse_vmstat(text: str) -> ToolListing:
    names: Sequence[str] = ()
    rows: list[list[float]] = []
    for line in islice(lines_of(text, 400), _MOST_VMSTAT_LINES):
        if heading := _vmstat_names(line):
            names = names or heading
        elif names:
            values = [number(word) for word in line.split()[: len(names)]]
            if len(values) == len(names) and None not in values:
                rows.append([value for value in values if value is not None])
    kept = rows[1:] or rows
    means = tuple(
        ListingRow(name, (mean_of(column),)) for name, column in zip(names, zip(*kept, strict=True), strict=False)
    )
    left = ", the one since boot left out" if len(rows) > 1 else ""
    return ToolListing(f"mean of {len(kept)} lines{left}", ("mean",), means)


# --- `/proc` counters ---

# `/proc/vmstat`, `/proc/meminfo` and the like: a name and a number per line, optionally with a unit.
_COUNTER = re.compile(r"^([A-Za-z][\w():.-]{0,80}?):?[ \t]+(-?\d{1,20})(?: (kB))?[ \t]*$")
_ENOUGH_COUNTERS = 0.9  # of the lines: prose is not a listing


def _is_counters(head: str) -> bool:
    lines = [line for line in head.splitlines()[:50] if line.strip()]
    matches = sum(bool(_COUNTER.match(line)) for line in lines[:-1])
    return len(lines) >= 3 and matches >= _ENOUGH_COUNTERS * (len(lines) - 1)


def _parse_counters(text: str) -> ToolListing:
    matches = filter(None, map(_COUNTER.match, lines_of(text, 300)))
    rows = (ListingRow(match[1].rstrip(":"), (number(match[2]),), match[3] or "") for match in matches)
    return ToolListing("counters", ("value",), summed(rows))


# The first that claims a text gets it: tools that print a distinctive heading come before those that don't.
KINDS = {
    kind.name: kind
    for kind in (
        ToolKind("perf report", with_heading(_is_perf_report_heading), _parse_perf_report),
        ToolKind("opreport", with_heading(_is_opreport_heading), _parse_opreport),
        ToolKind("slabinfo -AD", with_heading(_is_slabinfo_heading), _parse_slabinfo),
        ToolKind("vmstat", with_heading(_vmstat_names), _parse_vmstat),
        ToolKind("/proc counters", _is_counters, _parse_counters),
    )
}
