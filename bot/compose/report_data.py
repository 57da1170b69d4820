"""The content of a report mail: a report with its findings as values, and as text. Pure.

`ReportData` is a report as the mail presents it, its headline first. Numbers and table rows are formatted as the LKP
robot does: a change is the metric's own, in per cent, but in percentage points for profile shares and metrics whose
name ends in %.

The command that reproduces a measurement comes from the lab's template, with each value quoted for a shell, else from
the result's own script or job file; without these the mail says where to find what is needed. Labs that want them get
small text attachments: the job, and a script that reproduces it.
"""

import math
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import yaml

from bot.compose.conventions import Attached, Conventions, ThreadPosition
from bot.compose.mail import Attachment, CommitPeople
from bot.git.maintainers import Responsible
from bot.mail.addresses import Address
from bot.mail.message import one_line
from tracker.domain.events import Grade, Verdict
from tracker.domain.text import counted, p_value

PROFILE = "perf-profile."


@dataclass(frozen=True, slots=True)
class FindingData:
    """One metric that changed. `change_pct`: the metric's own change, None from zero; `low_pct` to `high_pct`: its
    95% confidence interval. `noise_pct`: its usual noise here, known from `noise_runs`. `overlap`: the samples of the
    sides overlap. `by_summary`: the interval is from means and spreads, since there are no samples.
    """

    metric: str
    unit: str
    direction: str
    verdict: Grade
    change_pct: float | None
    old_mean: float
    old_stddev_pct: float | None
    old_runs: int | None
    new_mean: float
    new_stddev_pct: float | None
    new_runs: int | None
    suite: str
    params: Mapping[str, str]
    machine: str
    machine_text: str
    p_value: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None
    noise_pct: float | None = None
    noise_runs: int | None = None
    overlap: bool = False
    by_summary: bool = False

    @property
    def table_key(self) -> tuple[str, str, str]:
        """Scenario and machine; the findings of one table share it."""
        return (self.suite, repr(sorted(self.params.items())), self.machine)

    @property
    def where(self) -> str:
        """ "vm-scan on lab7-m1"."""
        return f"{self.suite} on {self.machine}"

    @property
    def spreads(self) -> tuple[float, ...]:
        """The known spreads of both sides, in per cent of the mean."""
        return tuple(stddev for stddev in (self.old_stddev_pct, self.new_stddev_pct) if stddev is not None)

    @property
    def times_noise(self) -> float | None:
        """The change in multiples of the usual noise; None where one of them is not known."""
        return abs(self.change_pct) / self.noise_pct if self.change_pct is not None and self.noise_pct else None

    @property
    def is_profile(self) -> bool:
        return self.metric.startswith(PROFILE)

    @property
    def is_monitor(self) -> bool:
        """Whether it watches the machine, rather than being the benchmark's own."""
        return not self.metric.startswith(f"{self.suite}.")

    @property
    def in_points(self) -> bool:
        """Whether LKP tables show its change in percentage points: profile shares, and metrics whose name ends in %."""
        return self.is_profile or self.metric.endswith("%")

    @property
    def moved(self) -> float | None:
        """The change as LKP tables show it: in points for a share, else in per cent; None from zero."""
        return self.new_mean - self.old_mean if self.in_points else self.change_pct

    @property
    def is_graded(self) -> bool:
        """Whether it is a significant change for better or worse."""
        return self.verdict in (Grade.REGRESSION, Grade.IMPROVEMENT)


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """How the kernels were built and booted; "" if unknown."""

    kconfig: str = ""
    config_url: str = ""
    compiler: str = ""
    rootfs: str = ""
    cmdline: str = ""


@dataclass(frozen=True, slots=True)
class ReportData:
    """A report as the mail presents it. `findings`: the headline first; `raw`: the URL of the raw data.

    `responsible`: whom MAINTAINERS lists for the changed files. `patch`: the threading of a reply to the patch.
    `history`: how long the headline was stable before, and the URL of its curve. `files`: the lab's own that
    say how it was run, by name.
    """

    tag: str
    sha: str
    title: str
    author: Address
    trailers: tuple[tuple[str, str], ...]
    tree: str
    tree_url: str
    branch: str
    parent_sha: str
    parent_title: str
    base: str
    good: str
    bad: str
    bisect_steps: int
    verdict: Verdict
    findings: tuple[FindingData, ...]
    build: BuildInfo = field(default_factory=BuildInfo)
    authored_at: datetime | None = None
    tree_role: str = ""
    patch: ThreadPosition = field(default_factory=ThreadPosition)
    responsible: tuple[Responsible, ...] = ()
    rechecks: tuple[tuple[str, str], ...] = ()  # "v9.1-rc4", and still-bad, good or good-after-revert
    test_text: str = ""
    test_url: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()
    raw: str = ""
    history: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def headline(self) -> FindingData:
        return self.findings[0]

    @property
    def commit(self) -> CommitPeople:
        """The people of the culprit from whom the recipients are taken."""
        return CommitPeople(self.author, self.trailers, self.responsible, self.tree, self.tree_role)


def worst(findings: Iterable[FindingData]) -> list[FindingData]:
    """Return the findings with regressions first, then by size of the change; a change from zero is the largest."""
    return sorted(
        findings,
        key=lambda finding: (
            finding.verdict is not Grade.REGRESSION,
            -abs(finding.change_pct) if finding.change_pct is not None else float("-inf"),
        ),
    )


# --- Numbers and rows ---

DIGITS = 5  # significant digits; no benchmark is more precise
_LEAST_SPREAD = 2  # per cent; tables omit a smaller one


def value(number: float) -> str:
    """Format a value in at most ten columns: five significant digits, at most two trailing zeros."""
    size = abs(number)
    if number == 0:
        return "0.00"
    if size >= 1e9 or size < 1e-3:
        return f"{number:.4e}"
    if size >= 1e3 and number == int(number):
        return f"{number:.0f}"
    decimals = min(8, max(0, DIGITS - 1 - math.floor(math.log10(size))))
    integer, point, rest = f"{number:.{decimals}f}".partition(".")
    return integer + point + rest[:2] + rest[2:].rstrip("0")


def spread(percent: float | None) -> str:
    """Format a spread as "±  3%" in six columns, blank below 2 %."""
    if percent is None or percent < _LEAST_SPREAD:
        return " " * 6
    return f" ±{percent:3.0f}%" if percent < 1e4 else f" ±{percent:.0e}%"


NEW = "new"  # instead of a change from zero, which has no ratio


def means(finding: FindingData) -> str:
    """Format both means: "0.00 -> 811.50"."""
    return f"{value(finding.old_mean)} -> {value(finding.new_mean)}"


def moved(finding: FindingData) -> str:
    """Format a change: "-12.4%", "+0.7" for a share, "new" from zero."""
    change = finding.moved
    if change is None:
        return NEW
    unit = "" if finding.in_points else "%"
    return f"{change:+.1f}{unit}" if abs(change) < 1e7 else f"{change:+.1e}{unit}"


def row(finding: FindingData, name: str) -> str:
    """Return one row of the comparison table: 10 + 6 + 12 + 10 + 6 + 2 columns, then the name."""
    old, new = value(finding.old_mean), value(finding.new_mean)
    if finding.moved is None and len(new) >= 10:
        new = f" {new}"  # "new" has no per cent sign that would part it from a value as wide as its column
    return (
        f"{old:>10}{spread(finding.old_stddev_pct):6}{moved(finding):>12}"
        f"{new:>10}{spread(finding.new_stddev_pct):6}  {name}"
    )


def percent(number: float) -> str:
    """Format a percentage without its sign: "12.4", "0.4", "0.03"."""
    size = abs(number)
    return f"{size:.1f}" if size >= 0.05 else f"{size:.2g}"


def listed(finding: FindingData, name: str, columns: int) -> str:
    """Return "   -31.0%  fsmark.files_per_sec on lab7-m2", the name cut to fit the columns."""
    change, name = f"{moved(finding):>9}  ", one_line(name)
    room = columns - len(change)
    return change + (name if len(name) <= room else f"{name[: room - 3]}...")


def sides(finding: FindingData) -> str:
    """Return "18.39 ± 10% -> 24.37 us (+32.5%)"."""
    both = ((finding.old_mean, finding.old_stddev_pct), (finding.new_mean, finding.new_stddev_pct))
    text = " -> ".join(value(mean) + spread(stddev).rstrip() for mean, stddev in both)
    unit = f" {one_line(finding.unit, 20)}" if finding.unit else ""
    return f"{text}{unit} ({moved(finding)})"


_STRONG_P = 0.001
_STRONG_TIMES = 3.0  # the usual noise between builds
_WEAK_TIMES = 1.5


def strength(finding: FindingData) -> str:
    """Return how strong the evidence for a change is: "strong", "moderate" or "weak"; "" if it was not tested.

    Strong: p < 0.001, no value of one side lies within the other's, and at least 3 times the usual noise where that is
    known. Weak: not significant, the sides overlap, or less than 1.5 times the usual noise.
    """
    if finding.p_value is None or finding.verdict is Grade.NOT_TESTABLE:
        return ""
    times = finding.times_noise
    if finding.overlap or finding.verdict is Grade.NOT_SIGNIFICANT or (times is not None and times < _WEAK_TIMES):
        return "weak"
    return "strong" if finding.p_value < _STRONG_P and (times is None or times >= _STRONG_TIMES) else "moderate"


def evidence(finding: FindingData) -> list[str]:
    """Return the evidence for a change as phrases: runs, standard deviations, p-value."""
    parts = []
    if finding.old_runs and finding.new_runs:
        parts.append(f"{counted(finding.old_runs, 'run')} before, {finding.new_runs} after")
    if len(finding.spreads) == 2:
        parts.append("stddev " + " and ".join(f"{percent(stddev)}%" for stddev in finding.spreads))
    if finding.p_value is not None:
        parts.append(p_value(finding.p_value))
    return parts


# --- The command to reproduce ---

_SCRIPT = re.compile(r"(?:.*[/._-])?(?:reproduce?|repro|run)(?:[._-][\w.-]*)?\Z", re.I)
_JOB = re.compile(r"(?:.*/)?job(?:[\w.-]*)\.ya?ml\Z", re.I)
COLUMNS = 67  # of a line of the first screen, after its label
_LINES = 2
_FIELD = re.compile(r"\{(suite|params|machine|sha)\}")
_PLAIN_URL = re.compile(r"https?://[\w.~:/?#@!$&'()*+,;=%-]{3,300}\Z")


def reproduce(report: ReportData, template: str = "") -> str:
    """Return the command: the lab's template if set, with each value quoted for a shell, else from the result's own
    script or job file.
    """
    if template:
        headline = report.headline
        params = (one_line(f"{name}={value}", 160) for name, value in sorted(headline.params.items()))
        values = {
            "suite": shlex.quote(one_line(headline.suite, 80)),
            "machine": shlex.quote(one_line(headline.machine, 80)),
            "sha": report.sha,
            "params": " ".join(map(shlex.quote, params)),
        }
        return _FIELD.sub(lambda match: values[match[1]], template)
    links = [(name, url) for name, url in report.artifacts if _PLAIN_URL.match(url)]
    for pattern, run in ((_SCRIPT, "sh"), (_JOB, "lkp run")):
        if url := next((url for name, url in links if pattern.match(name)), ""):
            file = urlsplit(url).path.rpartition("/")[2]  # what curl -O calls it
            if file:
                return f"curl -sO {shlex.quote(url)} && {run} {shlex.quote(file)}"
    attached = {attachment.name for attachment in _own_files(report)}
    for name in SCRIPTS:
        if name in attached:
            return f"sh {name}  # attached"
    if JOB in attached:
        return f"lkp install {JOB} && lkp run {JOB}  # attached"
    return f"no script was provided{'; the parameters are below' if report.headline.params else ''}"


JOB, SCRIPTS = "job.yaml", ("reproduce.sh", "reproduce")


def in_lines(command: str) -> tuple[str, ...]:
    """Return a command as lines of the first screen, continued with backslashes.

    Empty where it must be printed whole further down: it is too long, or has a quoted string that must not be split.
    """
    if len(command) <= COLUMNS:
        return (command,)
    lines = textwrap.wrap(command, COLUMNS - 2, break_long_words=False, break_on_hyphens=False)
    if "'" in command or len(lines) > _LINES or max(map(len, lines)) > COLUMNS - 2:
        return ()
    return (*(f"{line} \\" for line in lines[:-1]), lines[-1])


# --- Attachments ---

MAX_BYTES = 20_000


def attachments(report: ReportData, conventions: Conventions) -> tuple[Attachment, ...]:
    """Return the attachments that the conventions ask for; those above MAX_BYTES are left out, the page has them."""
    files = _own_files(report)
    own = {file.name for file in files}
    if Attached.JOB in conventions.attach and JOB not in own:
        headline = report.headline
        job = {
            "suite": headline.suite,
            "parameters": dict(headline.params),
            "machine": headline.machine,
            "commit": report.sha,
            "parent": report.parent_sha,
            "kconfig": report.build.kconfig,
            "compiler": report.build.compiler,
            "rootfs": report.build.rootfs,
            "cmdline": report.build.cmdline,
        }
        fields = {name: value for name, value in job.items() if value}
        files.append(Attachment(JOB, yaml.safe_dump(fields, sort_keys=False, allow_unicode=False)))
    if Attached.SCRIPT in conventions.attach and conventions.reproduce and SCRIPTS[0] not in own:
        files.append(Attachment("reproduce.sh", f"#!/bin/sh\n{reproduce(report, conventions.reproduce)}\n"))
    return tuple(file for file in files if len(file.text.encode()) <= MAX_BYTES)


def _own_files(report: ReportData) -> list[Attachment]:
    """Return the lab's own job and script that are small enough for a mail; the result's page has all."""
    files = [Attachment(name, report.files[name]) for name in (JOB, *SCRIPTS) if name in report.files]
    return [file for file in files if len(file.text.encode()) <= MAX_BYTES]
