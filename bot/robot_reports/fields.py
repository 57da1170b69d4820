"""The subject of a report: `[list-tag]? [tree:branch]? [subsystem]? sha10: metric N.N% (regression|improvement)`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUBJECT = re.compile(
    r"(?P<brackets>(?:\[[^\]]{1,120}\]\s*)*)(?P<sha>[0-9a-f]{7,40})?\s*:\s"
    r"(?:(?:(?P<metric>\S{1,200})\s+)?(?P<percent>[-+]?\d+(?:\.\d+)?)%\s+(?P<verdict>regression|improvement)\b)?",
    re.I,
)
_BRACKET = re.compile(r"\[([^\]]+)\]")
_ANSWER = re.compile(r"(?:\s*(?:re|fwd?)\s*:\s*)+", re.I)
_NO_NAMES = ("LKP", "LKP-ROBOT", "PATCH", "EXTERNAL")


@dataclass(frozen=True, slots=True)
class ReportSubject:
    """The parts of a subject, "" if missing; all are missing in a reply, `Re: [PATCH …]`."""

    list_tag: str = ""  # "f2fs-dev", added by a mailing list
    prefix: str = ""  # "linus:master", as written
    tree: str = ""
    branch: str = ""
    subsystem: str = ""
    sha: str = ""
    metric: str = ""
    percent: str = ""
    verdict: str = ""


def read_subject(subject: str) -> ReportSubject:
    """Parse a subject, with white space collapsed."""
    text = " ".join(subject.split())
    answer = _ANSWER.match(text)  # at its start only: a tree's name may end in "re"
    found = _SUBJECT.match(text[answer.end() :] if answer else text)
    if not found:
        return ReportSubject()
    prefix = ""
    marks: list[str] = []  # list tags, which come before the tree
    names: list[str] = []
    for bracket in _BRACKET.findall(found["brackets"]):
        if ":" in bracket and " " not in bracket.strip() and not prefix:
            prefix, marks, names = bracket.strip(), names, []
        elif bracket.upper() not in _NO_NAMES:
            names.append(bracket.strip())
    if not prefix and len(names) > 1:
        marks = names[:1]
    tree, _, branch = prefix.partition(":")
    return ReportSubject(
        list_tag=marks[0] if marks else "",
        prefix=prefix,
        tree=tree.strip(),
        branch=branch.strip(),
        subsystem=names[-1] if names else "",
        sha=(found["sha"] or "").lower(),
        metric=found["metric"] or "",
        percent=found["percent"] or "",
        verdict=(found["verdict"] or "").lower(),
    )


def benchmark_in(subject: str) -> str:
    """Return the benchmark that a report's subject names, "will-it-scale" of "will-it-scale.per_thread_ops"."""
    return read_subject(subject).metric.partition(".")[0]
