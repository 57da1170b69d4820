"""A performance report by the kernel test robot, recognised by its body and read into one value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.ingest.robot_mail.box import Impact, find_impacts
from bot.ingest.robot_mail.machine import MachineParts, machine_parts
from bot.ingest.robot_mail.origin import Origin, find_origin
from bot.ingest.robot_mail.table import Row, Table, Value, find_row, find_tables
from bot.ingest.robot_mail.tags import Tags, find_tags
from bot.replies.mail import Mail
from bot.replies.patches import bare_title

_NOTICED = re.compile(
    r"^[^>|\n]{0,60}\bnoticed an? (?P<percent>-?\d+(?:\.\d+)?)%\s+(?P<verdict>regression|improvement)\s+of\s+"
    r"(?P<metric>\S{1,200})\s+(?:due to commit|on):",
    re.M,
)
_COMMIT = re.compile(r'^commit: (?P<sha>[0-9a-f]{40}) \("(?P<title>.{0,400})"\)', re.M)
# [list-tag]? [tree:branch]? [subsystem]? sha10: metric (-)?N.N% (regression|improvement)
_SUBJECT = re.compile(r"(?P<brackets>(?:\[[^\]]{1,120}\]\s*)*)(?P<sha>[0-9a-f]{7,40})?\s*:\s")
_FIELD = re.compile(
    r"^(?:in |on |with following )?(?P<name>testcase|config|compiler|test machine|parameters|test-url):\s*(?P<value>.*)"
)
_PARAMETER = re.compile(r"\s+([\w.:-]{1,80}):\s?(.*)")
_RECHECK = re.compile(
    r"^\[(?P<what>still regression|test failed|regression) on (?P<ref>\S+)\s+(?P<sha>[0-9a-f]{7,40})\]", re.M
)


_GREETING = re.compile(r"\s*(?:Greetings?|Hello|Hi)[,!.]?\s*\Z|\s*FYI,?\s*\Z")
_PLOT_EDGE = re.compile(r"^[ \t]*[-\d.e+]{0,12}[ ]?[+|]-{30,}[-+|]*[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Recheck:
    """What the robot saw on a later head: "still regression", "test failed"."""

    what: str
    ref: str
    sha: str


@dataclass(frozen=True, slots=True)
class RobotReport:
    """What a report says. `change_pct`: plus is better; `change_pct_raw`: the metric's own movement."""

    culprit: str
    culprit_title: str
    metric: str
    verdict: str
    change_pct: float
    change_pct_raw: float
    tree: str
    branch: str
    subsystem: str
    suite: str
    machine: str  # the lab's name of it ("lkp-csl-2sp5"), "" where no table tells
    machine_text: str
    parameters: tuple[tuple[str, str], ...]
    parent: str  # the first digits of its sha, "" where the table names a tag
    base: str  # that tag
    old: Value | None
    new: Value | None
    additional: tuple[Impact, ...]
    rechecks: tuple[Recheck, ...]
    closes: str
    problems: tuple[str, ...]
    list_tag: str  # "f2fs-dev", of a list that marks its subjects
    config: str
    compiler: str
    test_url: str
    origin: Origin
    machine_parts: MachineParts
    tags: Tags
    preamble: str  # what a person wrote above the robot's greeting
    plots: int  # drawn in letters below the tables, until 2021
    tables: tuple[Table, ...]
    lines: tuple[str, ...]  # that the tables count in


def find_report(mail: Mail) -> RobotReport | None:
    """The report in a mail, or None. Whether its sender is a robot that we follow is for the caller to ask.

    The sentence "noticed a N% regression of METRIC" must stand unquoted, and a `commit:` line below it.
    """
    text = mail.text
    noticed = _NOTICED.search(text)
    commit = _COMMIT.search(text, noticed.end()) if noticed else None
    if not noticed or not commit:
        return None
    lines = text[commit.end() :].split("\n")  # above it stands what a person wrote, tables and all
    prose = text[commit.end() :].split("\nDetails are as below", 1)[0].split("\n")
    list_tag, tree, branch, subsystem = _subject(mail.subject)
    test = _test(prose)
    suite, machine_text, parameters = test["testcase"], test["test machine"], _parameters(prose)
    tags = find_tags(text[commit.end() :])
    percent = float(noticed["percent"])
    verdict, metric = noticed["verdict"], noticed["metric"]
    problems: list[str] = []
    tables = list(find_tables(lines))
    # A table that a person pasted has no axes above it.
    table = next((each for each in tables if each.axes), tables[0] if tables else None)
    row = find_row(lines, table, metric) if table else None
    if not row:
        problems.append("no_headline_row")
    magnitude = abs(percent)
    head = table.parent if table else ""
    return RobotReport(
        culprit=commit["sha"],
        culprit_title=commit["title"],
        metric=metric,
        verdict=verdict,
        change_pct=magnitude if verdict == "improvement" else -magnitude,
        change_pct_raw=_raw_change(row, percent),
        tree=tree,
        branch=branch,
        subsystem=subsystem,
        suite=suite or metric.split(".")[0],
        machine=table.axis("tbox_group") if table else "",
        machine_text=machine_text,
        parameters=parameters,
        parent=head if not head.startswith("v") else "",
        base=head if head.startswith("v") else "",
        old=row.old if row else None,
        new=row.new if row else None,
        additional=find_impacts(prose),
        rechecks=tuple(Recheck(m["what"], m["ref"], m["sha"]) for m in _RECHECK.finditer("\n".join(prose))),
        closes=tags.closes,
        problems=tuple(problems),
        list_tag=list_tag,
        config=test["config"],
        compiler=test["compiler"],
        test_url=test["test-url"],
        origin=find_origin(prose),
        machine_parts=machine_parts(machine_text),
        tags=tags,
        preamble=_preamble(text[: noticed.start()]),
        plots=len(_PLOT_EDGE.findall(text, commit.end())) // 2,
        tables=tuple(each for each in tables if each.axes),
        lines=tuple(lines),
    )


def _preamble(above: str) -> str:
    """The lines above the greeting, which stands by itself or begins the sentence."""
    kept = [line for line in above.split("\n") if not _GREETING.match(line)]
    return "\n".join(kept).strip()


def _raw_change(row: Row | None, percent: float) -> float:
    """The movement as the table prints it; where it prints none, the sentence's, by the table's sign."""
    if row is None:
        return percent
    if row.change_pct is not None:
        return row.change_pct
    return -abs(percent) if row.change.startswith("-") else abs(percent)


def _subject(subject: str) -> tuple[str, str, str, str]:
    """The list's tag, tree, branch and subsystem of a subject, each "" where it is not told."""
    found = _SUBJECT.match(" ".join(subject.split()))
    tree = branch = ""
    names: list[str] = []
    for bracket in re.findall(r"\[([^\]]+)\]", found["brackets"]) if found else ():
        if ":" in bracket and not tree:
            tree, _, branch = bracket.partition(":")
        elif bracket.upper() not in ("LKP", "PATCH", "EXTERNAL"):
            names.append(bracket.strip())
    list_tag = names[0] if len(names) > 1 else ""
    return list_tag, tree.strip(), branch.strip(), names[-1] if names else ""


def _test(prose: Sequence[str]) -> dict[str, str]:
    """The fields of the test by their names; "" for those that are not told."""
    told = dict.fromkeys(("testcase", "config", "compiler", "test machine", "test-url"), "")
    for line in prose:
        if (found := _FIELD.match(line)) and not told.get(found["name"], "-"):
            told[found["name"]] = found["value"].strip()
    return told


def _parameters(prose: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The indented lines below "parameters:"."""
    parameters: list[tuple[str, str]] = []
    within = False
    for line in prose:
        if found := _FIELD.match(line):
            within = found["name"] == "parameters"
        elif within and line[:1].isspace() and (pair := _PARAMETER.match(line)):
            parameters.append((pair[1], pair[2].strip()))
        elif within and line.strip():
            within = False
    return tuple(parameters)


def impact_row(report: RobotReport, impact: Impact) -> tuple[Table, Row] | None:
    """The table of a further impact, which has its parameters among its axes, and its row there."""
    wanted = set(impact.parameters)
    found = [
        (table.machine_line.endswith(impact.machine), -len(table.axes), -number, table, row)
        for number, table in enumerate(report.tables)
        if wanted <= set(table.axes) and (row := find_row(report.lines, table, impact.metric))
    ]
    best = max(found, key=lambda each: each[:3], default=None)  # on that machine, with the fewest other axes
    return (best[3], best[4]) if best else None


def clean_title(report: RobotReport) -> str:
    """The culprit's title without "[PATCH v2 1/3]"."""
    return bare_title(report.culprit_title)
