"""A performance report of the kernel test robot: recognised, parsed, checked for contradictions. Pure.

A report is recognised by its body. Its claim is an unquoted sentence, "noticed a -12.4% regression of METRIC on:",
and the commit below it; if a mail has several, its subject says which one it is about. The prefilter asks the raw
bytes whether a mail can be a report before any mail is parsed, and never rejects one.

An inconsistency is where a report contradicts itself or lacks what it should have; an operator must check it if its
culprit or metric may be wrong. To add a check, yield one more in `_about_claim` or `_about_details`. Whether the robot
sent a report is decided as for any other mail (DESIGN rule 8).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from bot.mail.message import ParsedMail
from bot.mail.patches import bare_title
from bot.mail.quoting import holds_older_mail
from bot.replies import gate
from bot.replies.reading import Reading
from bot.robot_reports.fields import (
    MachineParts,
    Origin,
    ReportSubject,
    Tags,
    Testing,
    find_origin,
    find_tags,
    find_testing,
    machine_parts,
    read_subject,
)
from bot.robot_reports.tables import Impact, ReportRow, ReportTable, Value, find_impacts, find_tables, is_sha

# --- Prefilter ---

_RECOGNISER_NOTICED = re.compile(rb"noticed\s+an?\s")
# In these, the sentence may be split by soft line breaks or not appear in the bytes at all.
_ENCODINGS = (b"quoted-printable", b"base64", b"utf-16", b"utf-32", b"delsp", b"text/html")


class Recogniser:
    """Built once for the robots' addresses. It never rejects a report; what passes is parsed by `find_report`."""

    def __init__(self, robots: Iterable[str]) -> None:
        self._robots = tuple(robot.lower().encode() for robot in sorted(robots))

    def is_robot(self, sender: bytes) -> bool:
        """Whether a From header names a robot."""
        lower = sender.lower()
        return any(robot in lower for robot in self._robots)

    def may_be_report(self, sender: bytes, raw: bytes) -> bool:
        """Whether the mail must be parsed. `sender`: its From header; `raw`: the whole mail."""
        if not self.is_robot(sender):
            return False
        # Fixed strings first: ten times faster than patterns.
        first = raw.find(b"noticed")
        if first >= 0 and _RECOGNISER_NOTICED.search(raw, first):
            return True
        lower = raw.lower()
        return any(name in lower for name in _ENCODINGS)


# --- The report as a value ---


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """An inconsistency: a code and its detail. `unsure`: culprit or metric may be wrong, so an operator must check."""

    code: str
    about: str = ""
    unsure: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.about}" if self.about else self.code


@dataclass(frozen=True, slots=True)
class ReportRecheck:
    """What the robot saw on a later head: "still regression", "test failed"."""

    what: str
    ref: str
    sha: str


@dataclass(frozen=True, slots=True)
class RobotReport:
    """The contents of a report. `change_pct`: plus is better; `change_pct_raw`: the metric's own change."""

    subject: ReportSubject
    culprit: str
    culprit_title: str
    metric: str
    verdict: str
    percent: str  # as printed in the sentence, or "+inf"
    change_pct: float | None  # None from zero
    change_pct_raw: float | None
    test: Testing
    row: ReportRow | None  # of the metric, in the first table
    additional: tuple[Impact, ...]
    impact_rows: tuple[tuple[ReportTable, ReportRow] | None, ...]  # for each of `additional`
    unread_impacts: tuple[str, ...]
    rechecks: tuple[ReportRecheck, ...]
    rechecks_other: tuple[str, ...]  # other bracketed lines, as written
    origin: Origin
    tags: Tags
    between: str  # what a person wrote between the sentence and the commit
    preamble: str  # what a person wrote above the robot's greeting
    other_commits: tuple[str, ...]  # named in the preamble
    plots: int  # ASCII plots below the tables, until 2021
    tables: tuple[ReportTable, ...]
    head: ReportTable | None  # the first of `tables`, or else one pasted by a person
    inconsistencies: tuple[Inconsistency, ...] = ()

    @property
    def old(self) -> Value | None:
        return self.row.old if self.row else None

    @property
    def new(self) -> Value | None:
        return self.row.new if self.row else None

    @property
    def suite(self) -> str:
        return self.test.testcase or self.metric.split(".")[0]

    @property
    def machine(self) -> str:
        """The lab's name of the machine ("lkp-csl-2sp5"), "" if no table names it."""
        return self.head.machine if self.head else ""

    @property
    def machine_parts(self) -> MachineParts:
        return machine_parts(self.test.machine)

    @property
    def parent(self) -> str:
        """The abbreviated sha of the parent, "" if the table names a tag."""
        return "" if self.base or not self.head else self.head.parent

    @property
    def base(self) -> str:
        """The tag that it was compared with, "" if it was a commit."""
        return self.head.parent if self.head and not is_sha(self.head.parent) else ""

    @property
    def direction(self) -> str:
        """Which direction is better according to the robot, "" if no row shows how the metric moved."""
        moved = self.row.change_value if self.row else None
        if not moved:
            return ""
        return "higher" if (moved > 0) == (self.verdict == "improvement") else "lower"

    @property
    def unsure(self) -> tuple[str, ...]:
        """Why an operator must check the report first; empty if its culprit and metric are clear."""
        return tuple(str(inconsistency) for inconsistency in self.inconsistencies if inconsistency.unsure)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(str(inconsistency) for inconsistency in self.inconsistencies)


# --- The claim ---

# The sentence may be wrapped.
_NOTICED = re.compile(
    r"\bnoticed\s+an?\s+(?P<percent>[-+]?(?:\d+(?:\.\d+)?(?:e\+?\d+)?|inf))%\s+(?P<verdict>regression|improvement)\s+of\s+"
    r"(?P<metric>\S{1,200}?),?\s+(?:due\s+to\s+(?:the\s+)?(?:following\s+)?commit|on)\s{0,3}:"
)
_QUOTED = re.compile(r"[^\n]*[>|]|[^\n]{121}")  # the text before it on its line
_COMMIT = re.compile(r'^[ \t]{0,4}commit:[ \t]+(?P<sha>[0-9a-f]{40})\s+\("(?P<title>.{0,300}(?:\n.{1,100})?)"\)', re.M)
_MOST = 20  # sentences examined


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence and its commit. `percent` is as written; `start` and `end` are offsets of the sentence's start and
    the commit's end in the text.
    """

    percent: str
    verdict: str
    metric: str
    culprit: str
    title: str
    between: str  # the text between them
    start: int
    end: int
    is_certain: bool = True  # the only one, or the one that the subject names


def _claim(text: str, subject: ReportSubject) -> Claim | None:
    """Return the claim that a mail is about.

    A commit belongs to the nearest sentence above it. Text below "-----Original Message-----" is quoted, whatever its
    lines begin with.
    """
    by_commit: dict[int, Claim] = {}
    for noticed, _ in zip(_NOTICED.finditer(text), range(_MOST), strict=False):
        line = text.rfind("\n", 0, noticed.start()) + 1
        if _QUOTED.match(text[line : noticed.start()]) or (
            "e" in noticed["percent"] and not isfinite(float(noticed["percent"]))
        ):
            continue
        if not by_commit and holds_older_mail(text[: noticed.start()]):
            return None
        commit = _COMMIT.search(text, noticed.end())
        if not commit:
            break
        by_commit[commit.start()] = Claim(
            percent=noticed["percent"],
            verdict=noticed["verdict"],
            metric=noticed["metric"],
            culprit=commit["sha"],
            title=" ".join(commit["title"].split("\n")),
            between=text[noticed.end() : commit.start()].strip(),
            start=line,
            end=commit.end(),
        )
    claims = list(by_commit.values())
    if len(claims) < 2:
        return next(iter(claims), None)
    named = [claim for claim in claims if subject.sha and claim.culprit.startswith(subject.sha)]
    named = [claim for claim in named if claim.metric == (subject.metric or claim.metric)]
    return named[0] if len(named) == 1 else replace(claims[0], is_certain=False)


# --- Inconsistencies ---

ROUNDING = 0.11  # percentage points; both numbers are printed with one decimal
MOST = 50


def _about_claim(report: RobotReport, is_certain: bool) -> Iterator[Inconsistency]:
    """Yield what contradicts its culprit and metric. `is_certain`: it is clear which of its claims it is about."""
    subject = report.subject
    if not is_certain:
        yield Inconsistency("two_claims", "the mail reports more than one commit", unsure=True)
    if subject.sha and not report.culprit.startswith(subject.sha):
        yield Inconsistency("culprit_disagrees", f"the subject names {subject.sha}", unsure=True)
    name = report.tables[0].commits[1].name if report.tables else ""
    if is_sha(name) and not report.culprit.startswith(name):
        yield Inconsistency("culprit_disagrees", f"the table names {name}", unsure=True)
    if subject.metric and subject.metric != report.metric:
        yield Inconsistency("metric_disagrees", f"the subject names {subject.metric}", unsure=True)
    if subject.verdict and subject.verdict != report.verdict:
        yield Inconsistency("verdict_disagrees", f"the subject says {subject.verdict}", unsure=True)
    if report.row is None:
        # Only the sentence names the metric, although there is a table that should.
        yield Inconsistency("no_headline_row", unsure=bool(report.tables) and subject.metric != report.metric)
    elif report.change_pct is not None and (gap := _gap(report.row, report.change_pct)) is not None:
        yield Inconsistency("headline_disagrees", f"{report.metric} {report.change_pct:g}%, in its table {gap}")


def _about_details(report: RobotReport) -> Iterator[Inconsistency]:
    """Yield what is missing or can't be right in its test, its additional impacts and its tables."""
    details = (("no_table", report.tables), ("no_machine", report.test.machine), ("no_testcase", report.test.testcase))
    yield from (Inconsistency(code) for code, value in details if not value)
    if report.other_commits:
        yield Inconsistency("other_commit_above", ", ".join(sha[:10] for sha in report.other_commits[:5]))
    yield from (Inconsistency("impact_unread", text[:100]) for text in report.unread_impacts)
    for impact, place in zip(report.additional, report.impact_rows, strict=True) if report.tables else ():
        if place is None:
            yield Inconsistency("impact_without_row", impact.metric)
        elif (gap := _gap(place[1], impact.change_pct)) is not None:
            yield Inconsistency("impact_disagrees", f"{impact.metric} {impact.change_pct:g}%, in its table {gap}")
    for number, table in enumerate(report.tables, start=1):
        if not table.axes:
            yield Inconsistency("axes_unread", f"table {number}")
        if table.unread:
            first = table.unread[0].strip()[:60]
            yield Inconsistency("rows_unread", f"{len(table.unread)} of table {number}, first {first!r}")
        if not table.is_complete:
            yield Inconsistency("cut_table", f"table {number} is truncated")


def _gap(row: ReportRow, change_pct: float) -> str | None:
    """Return the change printed in a row if it differs from the claimed one, else None. Signs are ignored: the row's
    is the metric's own.
    """
    printed = row.change_pct
    if printed is None or abs(abs(printed) - abs(change_pct)) <= ROUNDING:
        return None
    return row.change


# --- Parsing ---

_IN_BRACKETS = re.compile(r"^[ \t]{0,8}\[(.{1,300})\][ \t]*$", re.M)
_RECHECK = re.compile(r"(?P<what>[A-Za-z][A-Za-z ]{2,40}?)\s+on\s+(?P<ref>\S.{0,80}?)\s+(?P<sha>[0-9a-f]{7,40})\s*")
_COMMIT_ABOVE = re.compile(r"^[ \t]{0,8}commit:?[ \t]+([0-9a-f]{12,40})\b", re.M | re.I)
_GREETING = re.compile(r"\s*(?:Greetings?|Hello|Hi)[,!.]?\s*\Z|\s*FYI,?\s*\Z")
_PLOT_EDGE = re.compile(r"^[ \t]*[-\d.e+]{0,12}[ ]?[+|]-{30}[-+|]*[ \t]*$", re.M)
_MAX_LINE = 1000  # letters; the longest line of a report has 235 (seen in 2020-2025 reports)


def find_report(mail: ParsedMail) -> RobotReport | None:
    """Return the report in a mail, or None. The caller checks that the sender is a robot that we follow.

    The sentence "noticed a N% regression of METRIC" must be unquoted, with a `commit:` line below it.
    """
    text = "\n".join([line[:_MAX_LINE] for line in mail.text.split("\n")])
    subject = read_subject(mail.subject)
    claim = _claim(text, subject)
    if not claim:
        return None
    below = text[claim.end :]  # a person's text above it may hold tables as well
    prose = below.split("\nDetails are as below", 1)[0].split("\n")
    test = find_testing(prose)
    impacts, unread_impacts = find_impacts(prose)
    values = [
        value for parameters in (test.parameters, *(impact.parameters for impact in impacts)) for _, value in parameters
    ]
    candidates = tuple(find_tables(below.split("\n"), values))
    # A table pasted by a person has no axes above it.
    tables = tuple(table for table in candidates if table.axes_text)
    head = next(iter(tables or candidates), None)
    row = head.row(claim.metric) if head else None
    percent = abs(float(claim.percent))
    change = (percent if claim.verdict == "improvement" else -percent) if isfinite(percent) else None
    # The change printed in the table, or else the sentence's with the table's sign
    if change is None:
        change_raw = None
    elif row is None:
        change_raw = float(claim.percent)
    elif (printed := row.change_pct) is not None:
        change_raw = printed
    else:
        change_raw = -percent if row.change.startswith("-") else percent
    above = text[: claim.start]
    bracketed = [(_RECHECK.fullmatch(line), line) for line in _IN_BRACKETS.findall("\n".join(prose))]
    report = RobotReport(
        subject=subject,
        culprit=claim.culprit,
        culprit_title=claim.title,
        metric=claim.metric,
        verdict=claim.verdict,
        percent=claim.percent,
        change_pct=change,
        change_pct_raw=change_raw,
        test=test,
        row=row,
        additional=impacts,
        impact_rows=tuple(_impact_row(tables, entry) for entry in impacts),
        unread_impacts=unread_impacts,
        rechecks=tuple(ReportRecheck(match["what"], match["ref"], match["sha"]) for match, _ in bracketed if match),
        rechecks_other=tuple(line for match, line in bracketed if not match),
        origin=find_origin(prose),
        tags=find_tags(below),
        between=claim.between,
        # The greeting has its own line or begins the sentence.
        preamble="\n".join(line for line in above.split("\n") if not _GREETING.match(line)).strip(),
        other_commits=tuple(sha for sha in _COMMIT_ABOVE.findall(above) if not claim.culprit.startswith(sha)),
        plots=len(_PLOT_EDGE.findall(below)) // 2,
        tables=tables,
        head=head,
    )
    inconsistencies = [*_about_claim(report, claim.is_certain), *_about_details(report)]
    return replace(report, inconsistencies=tuple(dict.fromkeys(inconsistencies[:MOST])))


def _impact_row(tables: Sequence[ReportTable], impact: Impact) -> tuple[ReportTable, ReportRow] | None:
    """Return the table of an additional impact, whose axes include its parameters, and its row there."""
    parameters = set(impact.parameters)
    candidates = [
        (table.machine_line.endswith(impact.machine), -len(table.axes), -number, table, row)
        for number, table in enumerate(tables)
        if parameters <= set(table.axes) and (row := table.row(impact.metric))
    ]
    # On that machine, with the fewest other axes
    best = max(candidates, key=lambda candidate: candidate[:3], default=None)
    return (best[3], best[4]) if best else None


def clean_title(report: RobotReport) -> str:
    """Return the culprit's title without "[PATCH v2 1/3]"."""
    return bare_title(report.culprit_title)


# --- Proof ---


def is_proven(report: RobotReport, reading: Reading, policy: str) -> bool:
    """Whether the report in a mail counts without a click: its sender is proven, and every reading says the same.

    `open`, for old archives: always.
    """
    others = reading.others
    same = others is not None and all(find_report(other.mail) == report for other in others)
    standing = gate.Standing(reading.trust, same_words=same)
    return gate.permitted(gate.Caused.REPORT, standing, policy)
