"""What is kept of reports that others mailed: the facts of a person's mail, and the tables of a robot's. Pure.

Nobody measured a person's report for us, so there are no samples and no intervals: each fact has the sentence that it
is from, and what the mail doesn't say is unknown, and is shown as unknown. `bot/replies/person_report.py` reads the
mail; reports and offers in the review queue keep the facts as JSON. A robot's comparison tables are compressed, since
one may have 3,000 rows (`bot/robot_reports/tables.py` reads them).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from tracker.domain import versions
from tracker.domain.events import EventData, EventKind, Role
from tracker.domain.report_state import NOT_BISECTED

# --- A person's report ---

MAX_VALUE, MAX_SENTENCE = 200, 400  # characters of a fact, and of its sentence


@dataclass(frozen=True, slots=True)
class Fact:
    """A value as the mail gives it, and the sentence that gives it. Empty: the mail doesn't say."""

    value: str = ""
    sentence: str = ""

    def __bool__(self) -> bool:
        return bool(self.value)


UNKNOWN = Fact()


@dataclass(frozen=True, slots=True)
class PersonReport:
    """The facts of a mail. `change_pct`: the metric's own change in per cent, None if it can't be told."""

    reporter: str
    culprit: Fact = UNKNOWN  # a sha, perhaps abbreviated
    culprit_title: Fact = UNKNOWN
    culprit_author: Fact = UNKNOWN
    suite: Fact = UNKNOWN
    metric: Fact = UNKNOWN
    magnitude: Fact = UNKNOWN  # "170 MB/s -> 11 MB/s", "-40 %"
    change_pct: float | None = None
    good: Fact = UNKNOWN
    bad: Fact = UNKNOWN
    machine: Fact = UNKNOWN
    other_culprits: tuple[str, ...] = ()
    score: int = 0  # how much it looks like a report of a performance regression
    signs: tuple[str, ...] = ()  # what makes up the score

    @property
    def span(self) -> str:
        """Where it must lie while nobody has bisected it: "5.15 good, 5.16 bad"; "" if the mail names no version."""
        good = "" if self.good.value.startswith("before") else self.good.value  # which says no more than the bad one
        return ", ".join(f"{version} {word}" for version, word in ((good, "good"), (self.bad.value, "bad")) if version)

    @property
    def cycle(self) -> str:
        """The release in whose cycle the regression appeared, by the bad version: "v6.16" of "6.16-rc2"; "" unknown."""
        version = versions.parse("v" + self.bad.value.lstrip("v"))
        return version.cycle if version else ""

    def stored(self) -> dict[str, Any]:
        """Return it as JSON; unknown facts are left out."""
        values: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Fact):
                value = [value.value, value.sentence] if value else None
            if value not in (None, (), ""):
                values[field.name] = list(value) if isinstance(value, tuple) else value
        return values


def agreement(one: PersonReport, other: PersonReport) -> str:
    """Return why two mails may be about one regression, "" if nothing says so: the same culprit, the same versions, or
    the same metric or suite in the same release. Two that name different commits are not.
    """
    shas = [report.culprit.value.lower() for report in (one, other)]
    titles = {report.culprit_title.value.casefold() for report in (one, other)}
    digits = min(map(len, shas))  # either may be abbreviated
    if (digits and shas[0][:digits] == shas[1][:digits]) or (len(titles) == 1 and "" not in titles):
        return "the same culprit"
    if digits:
        return ""
    spans = {(report.good.value.lstrip("v"), report.bad.value.lstrip("v")) for report in (one, other)}
    if len(spans) == 1 and all(spans.pop()):
        return "between the same versions"
    for name in ("metric", "suite"):
        values = {getattr(report, name).value.casefold() for report in (one, other)}
        if len(values) == 1 and "" not in values and one.cycle and one.cycle == other.cycle:
            return f"the same {name} in {one.cycle}"
    return ""


def reported_event(report: PersonReport, message_id: str, at: datetime) -> EventData:
    """Return the event that a person reported it. `remark`: who; `title`: between which versions, if not bisected."""
    title = "" if report.culprit else (report.span or NOT_BISECTED)
    key, name = f"{EventKind.REPORTED}:{message_id}", report.reporter[:MAX_VALUE]
    return EventData(key, EventKind.REPORTED, at, Role.REPORTER, message_id=message_id, remark=name, title=title)


def placeholder(message_id: str) -> str:
    """Return what stands for the sha of a culprit that nobody knows: 40 digits, the same for the same mail."""
    return hashlib.sha1(
        b"reported in " + message_id.encode("utf-8", "surrogateescape"), usedforsecurity=False
    ).hexdigest()


def read_stored(stored: Mapping[str, Any]) -> PersonReport:
    """Return what `stored` gave. Unknown fields are ignored, so that an older program reads a newer one's rows."""
    values: dict[str, Any] = {"reporter": ""}
    for field in fields(PersonReport):
        value = stored.get(field.name)
        if value is None:
            continue
        if field.type == "Fact":
            values[field.name] = Fact(*value)
        else:
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return PersonReport(**values)


# --- The tables of a robot's report ---

MAX_ROWS = 20_000  # per report; the longest real one has 3,000
_MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row as printed: means, spreads in per cent (None: below 2 %), and the change with its sign and unit."""

    name: str
    old: float
    old_stddev_pct: float | None
    change: str
    new: float
    new_stddev_pct: float | None


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """How many runs failed in one way, as printed: "0:4", "25%", "1:4"."""

    name: str
    old: str
    change: str
    new: str


@dataclass(frozen=True, slots=True)
class KeptTable:
    """One table: its test ("nr_task=50%, …"), its two commits, its rows, and the failed runs."""

    test: str
    parent: str
    culprit: str
    rows: tuple[TableRow, ...]
    fails: tuple[FailedRuns, ...] = ()


_row_values = attrgetter(*(field.name for field in fields(TableRow)))  # astuple() copies deeply, ten times as slowly
_fail_values = attrgetter(*(field.name for field in fields(FailedRuns)))


def pack(tables: Sequence[KeptTable]) -> bytes:
    """Compress tables to a tenth of the size of their mail; rows beyond MAX_ROWS are only in the mail."""
    room = MAX_ROWS
    kept = []
    for table in tables:
        rows = table.rows[:room]
        fails = table.fails[: room - len(rows)]
        room -= len(rows) + len(fails)
        kept.append([table.test, table.parent, table.culprit, [*map(_row_values, rows)], [*map(_fail_values, fails)]])
    return zlib.compress(json.dumps(kept).encode())


def unpack(packed: bytes) -> tuple[KeptTable, ...]:
    """Return the tables that `pack` stored; () for empty bytes."""
    if not packed:
        return ()
    tables = []
    for test, parent, culprit, rows, *fails in json.loads(zlib.decompressobj().decompress(packed, _MAX_BYTES)):
        failed = (FailedRuns(*row) for row in (fails[0] if fails else ()))  # in the past, there were none
        tables.append(KeptTable(test, parent, culprit, tuple(TableRow(*row) for row in rows), tuple(failed)))
    return tuple(tables)
