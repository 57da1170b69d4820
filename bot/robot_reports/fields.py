"""The fields of a robot's report: subject, tags, origin, machine, test. Pure.

The subject is `[list-tag]? [tree:branch]? [subsystem]? sha10: metric N.N% (regression|improvement)`. The tag block
has Reported-by, Closes, Link and #regzbot; the link to the artifacts is read with it. The origin of the commit is a
repository and branch, or a patch series that the robot applied. A machine is described like "128 threads 2 sockets
Intel(R) … @ 2.60GHz (Ice Lake) with 128G memory". How the numbers were measured is told by the testcase with its
parameters, the machine, the config and the compiler. Missing values are empty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.mail.quoting import ANSWER

# --- Subject ---

_SUBJECT = re.compile(
    r"(?P<brackets>(?:\[[^\]]{1,120}\]\s*)*)(?P<sha>[0-9a-f]{7,40})?\s*:\s"
    r"(?:(?:(?P<metric>[^\s%>]\S{0,200})\s+)??(?:(?P<percent>[-+]?(?:\d+(?:\.\d+)?|inf))%"
    r"|(?P<sides>[-+.\de]{1,20} -> [-+.\de]{1,20}))\s+(?P<verdict>regression|improvement)\b)?",
    re.I,
)
_BRACKET = re.compile(r"\[([^\]]+)\]")
_ANSWER = re.compile(f"(?:{ANSWER})+", re.I)
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
    sides: str = ""  # "0.00 -> 811.50" where there is no percentage, since the first is zero


def read_subject(subject: str) -> ReportSubject:
    """Parse a subject, with white space collapsed."""
    text = " ".join(subject.split())
    answer = _ANSWER.match(text)  # at its start only: a tree's name may end in "re"
    match = _SUBJECT.match(text[answer.end() :] if answer else text)
    if not match:
        return ReportSubject()
    prefix = ""
    marks: list[str] = []  # list tags, which come before the tree
    names: list[str] = []
    for bracket in _BRACKET.findall(match["brackets"]):
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
        sha=(match["sha"] or "").lower(),
        metric=match["metric"] or "",
        percent=match["percent"] or "",
        sides=match["sides"] or "",
        verdict=(match["verdict"] or "").lower(),
    )


def benchmark_in(subject: str) -> str:
    """Return the benchmark that a report's subject names, "will-it-scale" of "will-it-scale.per_thread_ops"."""
    return read_subject(subject).metric.partition(".")[0]


# --- Tags and artifacts ---

# "| Reported-by: kernel test robot <lkp@intel.com>", since 2023 with a bar before it
_TAG = re.compile(r"^\|?[ \t]{0,20}(Reported-by|Closes|Link):[ \t]{1,10}(\S.*)$", re.M | re.I)
_REGZBOT = re.compile(r"^\|?[ \t]{0,10}#regzbot[ \t]+(\S.{0,400}?)[ \t]*$", re.M)
_ARTIFACTS = re.compile(
    r"materials to reproduce (?:is|are) available at:\s{1,4}(https?://\S{5,300})|^(https://download\.01\.org/0day-ci/archive/\S+)",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Tags:
    """The values as written, "" if missing."""

    reported_by: str = ""
    closes: str = ""
    link: str = ""
    regzbot: str = ""  # a command to regzbot
    artifacts_url: str = ""


def find_tags(text: str) -> Tags:
    """Return the first of each in the text from the commit on."""
    values: dict[str, str] = {}
    for tag in _TAG.finditer(text):
        values.setdefault(tag[1].capitalize(), tag[2].rstrip(" \t"))
    regzbot = _REGZBOT.search(text)
    artifacts = _ARTIFACTS.search(text)
    return Tags(
        reported_by=values.get("Reported-by", ""),
        closes=values.get("Closes", ""),
        link=values.get("Link", ""),
        regzbot=regzbot[1] if regzbot else "",
        artifacts_url=(artifacts[1] or artifacts[2]) if artifacts else "",
    )


# --- Origin ---

_REPOSITORY = re.compile(r"(?P<url>(?:https?|git)://\S{3,300})(?:\s+(?P<branch>\S{1,200}))?\s*\Z")
_PATCH = re.compile(r"(?P<name>url|base|patch link|patch subject):\s*(?P<value>\S.*)")


@dataclass(frozen=True, slots=True)
class Origin:
    """`repo_url` and `repo_branch` of a tree; or, for a patch, its series (`patch_url`), its base, its mail
    (`patch_link`) and that mail's subject. Missing values are "".
    """

    repo_url: str = ""
    repo_branch: str = ""
    patch_url: str = ""
    base_url: str = ""
    base_branch: str = ""
    patch_link: str = ""
    patch_subject: str = ""


def find_origin(prose: Sequence[str]) -> Origin:
    """Parse the lines below `commit:`, up to the first one about the test."""
    fields: dict[str, str] = {}
    for line in prose[:30]:
        if line.startswith(("in testcase", "testcase")):
            break
        if (field := _REPOSITORY.match(line)) and "repo_url" not in fields:
            fields |= {"repo_url": field["url"], "repo_branch": field["branch"] or ""}
        elif field := _PATCH.match(line.rstrip()):
            url, *rest = field["value"].split(None, 1)
            branch = rest[0] if rest else ""
            match field["name"]:
                case "url":
                    fields["patch_url"] = url
                case "base":
                    fields |= {"base_url": url, "base_branch": branch.strip()}
                case "patch link":
                    fields["patch_link"] = url
                case "patch subject":
                    fields["patch_subject"] = field["value"]
    return Origin(**fields)


# --- Machine ---

_PARTS = re.compile(
    r"(?:(?P<threads>\d{1,6}) threads?,?\s+)?(?:(?P<sockets>\d{1,4}) sockets?,?\s+)?(?P<cpu>.*?)"
    r"(?:(?:^|(?<=\s))\((?P<codename>[^()]{1,60})\))?(?:\s+with (?P<memory>\d[\d.]{0,8}\s?[KMGT]i?B?) memory)?\s*\Z"
)


@dataclass(frozen=True, slots=True)
class MachineParts:
    """The parts of a description; missing ones are None or "". `memory` is as written: "256G"."""

    threads: int | None = None
    sockets: int | None = None
    cpu: str = ""
    codename: str = ""
    memory: str = ""


def machine_parts(text: str) -> MachineParts:
    """Return the parts, with white space collapsed; text that doesn't match is all `cpu`."""
    match = _PARTS.match(" ".join(text[:500].split()))
    if not match:
        return MachineParts()
    cpu = match["cpu"].strip()
    is_name = not match["codename"] and re.fullmatch(r"[A-Z][a-z]+(?: [A-Z][a-z]+)*(?:-[A-Z]+)?", cpu) is not None
    return MachineParts(
        threads=int(match["threads"]) if match["threads"] else None,
        sockets=int(match["sockets"]) if match["sockets"] else None,
        cpu="" if is_name else cpu,
        codename=cpu if is_name else match["codename"] or "",
        memory=match["memory"] or "",
    )


# --- Test ---

# Until 2022 "in testcase: x", "on test machine: y", "with following parameters:".
_FIELD = re.compile(
    r"^(?:in |on |with following )?(?P<name>testcase|config|compiler|test machine|parameters|test-url):\s*(?P<value>.*)"
)
_PARAMETER = re.compile(r"\s+(?:([\w.:-]{1,80})|([^\s:][^:\n]{0,80})):(?:\s(.*)|\Z)")


@dataclass(frozen=True, slots=True)
class Testing:
    """The fields as written, "" if missing."""

    testcase: str = ""
    config: str = ""
    compiler: str = ""
    machine: str = ""
    test_url: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


def find_testing(prose: Sequence[str]) -> Testing:
    """Parse the lines below `commit:`: the first of each field; parameters are the indented lines below their head."""
    fields = dict.fromkeys(("testcase", "config", "compiler", "test machine", "test-url"), "")
    parameters: list[tuple[str, str]] = []
    within = False
    for line in prose:
        if field := _FIELD.match(line):
            within = field["name"] == "parameters"
            if not fields.get(field["name"], "-"):
                fields[field["name"]] = field["value"].strip()
        elif within and line[:1].isspace() and line.strip():
            if pair := _PARAMETER.match(line):
                parameters.append((pair[1] or pair[2], (pair[3] or "").strip()))
            elif parameters:  # a wrapped value
                name, value = parameters.pop()
                parameters.append((name, f"{value} {line.strip()}".strip()))
        elif within and line.strip():
            within = False
    return Testing(
        testcase=fields["testcase"],
        config=fields["config"],
        compiler=fields["compiler"],
        machine=fields["test machine"],
        test_url=fields["test-url"],
        parameters=tuple(parameters),
    )
