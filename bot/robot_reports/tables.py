"""The tables in a robot's report mail: the comparison of two commits, and the box of further impacts.

A comparison table begins at the rule below its two column heads and ends before the next one. Above it stand its axes
(between the names of the parameters and their values), the two commits below `commit:`, and for additional impacts
the machine. Columns are recognised by content and not by position: a stddev of four digits shifts everything right of
it. Values stay as printed beside the parsed numbers, since a share changes in percentage points and the rest in per
cent. A row is a measured metric or a count of failed runs; other lines among them are kept as `unread`.

The box ("the commit also has significant impact on the following tests") has one entry per test between `+---+`
lines. Its change is turned by the printed verdict, so that plus is better.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

# --- Comparison tables ---

_HEADS = re.compile(r"\s*(\S{3,16})\s+([0-9a-f]{7,27}|v\d\S{0,26})\s*\Z")
_RULE = re.compile(r"-{16} -{27}\s*\Z")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+|nan|inf)"
# In the wrong charset "±" is two characters or one mark; the stddev of a negative mean is negative.
_SPREAD = r"(?:\u00c2?\u00b1|\ufffd|\?)\s*(?P<{}>-?[\d.]{{1,12}}(?:e[+-]?\d+)?|nan)%"
# Columns are recognised by content, not position: a stddev of four digits shifts everything right of it.
_ROW = re.compile(
    rf"\s*(?P<old>{_NUMBER})\s*(?:{_SPREAD.format('oldsd')})?"
    rf"\s*(?P<change>[-+](?:\d[\d.e+-]*|inf|nan)%?|(?<=\s)new(?=\s)|(?<=\s)\d[\d.]*%)(?:(?<=%)\s*|\s+)"
    rf"(?P<new>{_NUMBER})\s*(?:{_SPREAD.format('newsd')})?\s+(?P<name>\S.*?)\s*\Z",
    re.I,
)
# "           :4           50%           2:4     kmsg.ACPI_Error": how often a run failed, on both sides
_FAIL = re.compile(r"\s*(?P<old>\d*:\d+)\s+(?P<change>-?\d+%)\s+(?P<new>\d*:\d+)\s+(?P<name>\S.*?)\s*\Z")
_COMMIT_LINE = re.compile(r'\s{1,4}(?P<name>\S{3,40})(?:\s+\("(?P<title>.*)"\))?\s*\Z')
_HEAD_ROW = re.compile(r"\s*(?:%stddev\b.*|fail:runs\b.*|[\\|/ ]+)\Z")
_SHA = re.compile(r"[0-9a-f]{7,40}")
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Value:
    """One side of a row: its mean, and its standard deviation in per cent (None: below 2 %, and so not printed)."""

    mean: float
    stddev_pct: float | None


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One metric: the old value, the change as printed ("-37.9%", "+0.2"), the new value."""

    name: str
    old: Value
    change: str
    new: Value

    @property
    def change_pct(self) -> float | None:
        """The printed change in per cent; None if it is in percentage points, as for shares."""
        return self.change_value if self.change.endswith("%") else None

    @property
    def change_value(self) -> float | None:
        """The printed change, in per cent or percentage points; None if it is not a finite number."""
        try:
            change = float(self.change.removesuffix("%"))
        except ValueError:  # "+1.2.3%"
            return None
        return change if isfinite(change) else None


@dataclass(frozen=True, slots=True)
class FailRow:
    """How many of the runs failed on each side, as printed: ":4", "50%", "2:4"."""

    name: str
    old: str
    change: str
    new: str


@dataclass(frozen=True, slots=True)
class TableSide:
    """One commit of a table, as named below `commit:`: a short sha or a tag, and its title."""

    name: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table: its axes by name, the parent as in its header (16 digits or a tag), both commits, and its rows."""

    axes: tuple[tuple[str, str], ...]
    axes_text: str  # the axes as printed, "" if there are none, as above a table pasted by a person
    parent: str
    commits: tuple[TableSide, TableSide]
    machine_line: str  # "lkp-icl-2sp6: 128 threads …", above the tables of additional impacts
    rows: tuple[ReportRow, ...]
    fails: tuple[FailRow, ...]
    unread: tuple[str, ...]  # lines among the rows that can't be parsed
    is_complete: bool  # ends with an empty line

    @property
    def machine(self) -> str:
        """The lab's name of the machine, "" if the table does not give it."""
        return dict(self.axes).get("tbox_group", "")

    def row(self, metric: str) -> ReportRow | None:
        """Return the row of a metric, or None."""
        return next((row for row in self.rows if row.name == metric), None)


def is_sha(name: str) -> bool:
    """Whether a table names a commit rather than a tag."""
    return _SHA.fullmatch(name) is not None


def find_tables(lines: Sequence[str], values: Collection[str] = ()) -> Iterator[ReportTable]:
    """Yield the tables of a mail. Each begins at the rule below its two column heads and ends before the next one.

    `values`: parameter values found elsewhere in the mail; one that contains a "/" is a single axis value.
    """
    slashed = sorted((value for value in set(values) if "/" in value), key=len, reverse=True)
    starts = [n for n, line in enumerate(lines) if _RULE.match(line) and n and _HEADS.match(lines[n - 1])]
    for start, end in pairwise([*starts, len(lines)]):
        heads = _HEADS.match(lines[start - 1])
        assert heads
        text, axes = _axes(lines, start, slashed)
        # The commits are on the two lines below the nearest `commit:`.
        above = range(start - 1, max(-1, start - 10), -1)
        head = next((number for number in above if lines[number].startswith("commit:")), len(lines))
        named = [_COMMIT_LINE.match(line) for line in (*lines[head + 1 : head + 3], "", "")[:2]]
        old, new = (TableSide(match["name"], match["title"] or "") if match else TableSide() for match in named)
        # The machine is below a row of asterisks, between the previous table and the axes.
        above = range(start, max(0, start - 16), -1)
        machine = next((lines[number].strip() for number in above if lines[number - 1].startswith("*****")), "")
        rows: list[ReportRow] = []
        fails: list[FailRow] = []
        unread: list[str] = []
        ended = False
        for line in lines[start + 1 : end]:
            if row := parse_row(line):
                rows.append(row)
            elif fail := _FAIL.match(line[:_LONGEST]):
                fails.append(FailRow(fail["name"], fail["old"], fail["change"], fail["new"]))
            elif not line.strip():
                ended = True
            elif not ended and not _HEAD_ROW.match(line[:_LONGEST]):
                unread.append(line)
        contents = (tuple(rows), tuple(fails), tuple(unread), ended)
        yield ReportTable(axes, text, heads[1], (old, new), machine, *contents)


def _axes(lines: Sequence[str], start: int, slashed: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the axes above a table, as printed and as (name, value) pairs."""
    for number in range(start, max(-1, start - 14), -1):
        if lines[number].startswith("====") and number + 2 < len(lines):
            names, values = lines[number + 1].strip(), lines[number + 2].strip()
            text = f"{names} {values}"
            for value in slashed:
                values = values.replace(value, value.replace("/", "\0"))
            keys, parts = names.rstrip(":").split("/"), values.split("/")
            if len(keys) != len(parts):
                return text, ()
            return text, tuple((key, part.replace("\0", "/")) for key, part in zip(keys, parts, strict=True))
    return "", ()


def parse_row(line: str) -> ReportRow | None:
    """Parse one row of a table; None for any other line."""
    match = _ROW.match(line[:_LONGEST])
    if not match:
        return None
    old_mean, old_sd, change, new_mean, new_sd, name = match.groups()
    try:
        sides = [(float(mean), float(sd or "nan")) for mean, sd in ((old_mean, old_sd), (new_mean, new_sd))]
    except ValueError:
        return None
    old, new = (Value(mean, abs(spread) if isfinite(spread) else None) for mean, spread in sides)
    return ReportRow(name, old, change, new)


# --- The impact box ---

_WIDEST = 40  # letters of the first cell
_CHANGE = re.compile(
    r"(?:(?P<suite>[^:\s]{1,80}):\s+)?(?P<metric>\S{1,160})\s+(?P<percent>[-+]?\d+(?:\.\d+)?(?:e\+?\d+)?)%"
    r"\s+(?P<verdict>regression|improvement)"
)


@dataclass(frozen=True, slots=True)
class Impact:
    """One more test that changed. `change_pct`: plus is better."""

    suite: str
    metric: str
    verdict: str
    percent: str  # as written
    change_pct: float
    machine: str
    parameters: tuple[tuple[str, str], ...]


def find_impacts(lines: Sequence[str]) -> tuple[tuple[Impact, ...], tuple[str, ...]]:
    """Return the entries of the box, which `+---+` lines separate, and the text of those that can't be parsed."""
    entries: list[list[tuple[str, str]]] = [[]]
    for line in lines:
        if line.startswith("+--"):
            entries.append([])
        elif line.startswith("|"):
            name, bar, value = line[1:].partition("|")  # the name is blank where an entry goes on
            if bar and name and len(name.strip()) <= _WIDEST:
                entries[-1].append((name.strip(), value.rstrip().removesuffix("|").strip()))
    read = [(_impact(entry), entry) for entry in entries if entry and entry[0][0].startswith("testcase")]
    return (
        tuple(impact for impact, _ in read if impact),
        tuple(" ".join(value for _, value in entry) for impact, entry in read if not impact),
    )


def _impact(entry: Sequence[tuple[str, str]]) -> Impact | None:
    change = machine = ""
    parameters: list[tuple[str, str]] = []
    key = ""
    for name, value in entry:
        key = name or key
        if key.startswith("testcase"):
            change = f"{change} {value}".strip()
        elif key.startswith("test machine"):
            machine = f"{machine} {value}".strip()
        elif key.startswith("test parameters") and "=" in value:
            parameter, _, setting = value.partition("=")
            parameters.append((parameter.strip(), setting.strip()))
    match = _CHANGE.match(change)
    if not match or not isfinite(float(match["percent"])):
        return None
    percent = abs(float(match["percent"]))
    return Impact(
        suite=match["suite"] or match["metric"].split(".")[0],
        metric=match["metric"],
        verdict=match["verdict"],
        percent=match["percent"],
        change_pct=percent if match["verdict"] == "improvement" else -percent,
        machine=machine,
        parameters=tuple(parameters),
    )
