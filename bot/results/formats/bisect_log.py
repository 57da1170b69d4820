"""`git bisect log` with a CSV of samples: what a developer has after `git bisect run`. Pure.

The CSV has one line `sha,metric,value` per sample, in any order, below that header. Lines above the header that begin
with `#` give the rest, each as `# name: value`: suite, machine, cpus, tree, branch, url, author, date, producer, id;
any other name is a parameter of the test. The first metric of the file was bisected and is the headline. The parent
is the last good commit that has samples; across merges it need not be the culprit's parent, so a git tree or an
operator decides.

A log may be as people paste it: quoted (`> `), indented, without git's comments, with several commits behind one `git
bisect good`, or ending in git's own `SHA is the first bad commit`.
"""

import csv
import hashlib
import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bot.mail.addresses import parse_addresses
from bot.results.formats import checks
from bot.results.formats.checks import canonical
from bot.results.values import CommitInfo, MachineInfo, RejectedInput, Result, TestRun

FORMAT = "git-bisect-log"
HEAD = ("sha", "metric", "value")
MAX_LINES = 1_000_000
# "# bad: [sha] subject", with git's own terms or those of `git bisect start --term-old=… --term-new=…`
_MARK = re.compile(r"# ([^\s:']{1,40}): \[([0-9a-f]{40})\] ?(.*)")
# "# first bad commit: [sha] subject", since git 2.45 "# first 'bad' commit:", and "# possible first …" after skips
_FIRST = re.compile(r"# (possible )?first '?([^\s']{1,40})'? commit: \[([0-9a-f]{40})\] ?(.*)")
_COMMAND = re.compile(r"git bisect ([^\s-][^\s]{0,39})((?: +[0-9a-f]{40})+)\s*$")
_SAID = re.compile(r"([0-9a-f]{40}) is the first '?([^\s']{1,40})'? commit")
_QUOTED = re.compile(r"^[ \t]*(?:[>|][> |\t]*)?")
_HEADER_NAMES = frozenset(["suite", "machine", "cpus", "tree", "branch", "url", "author", "date", "producer", "id"])


def is_log(text: str) -> bool:
    """Whether a text is the output of `git bisect log`."""
    lines = _lines(text[:5000])
    return any(line.startswith("git bisect start") for line in lines) and any(
        _MARK.match(line) or _COMMAND.match(line) for line in lines
    )


def _lines(text: str) -> list[str]:
    """Return the lines without what a mail program puts before them."""
    return [_QUOTED.sub("", line).rstrip() for line in text.splitlines()]


def is_samples(text: str) -> bool:
    """Whether a text is a CSV of samples: its first line without a `#` is the header."""
    lines = (line for line in text[:20_000].splitlines() if line.strip() and not line.startswith("#"))
    return tuple(cell.strip() for cell in next(lines, "").split(",")) == HEAD


def parse(data: Any, where: str) -> Result:
    """Return the result of {"log": text, "samples": text}."""
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in ("log", "samples")):
        raise RejectedInput(where, "expected an object with the texts `log` and `samples`")
    log = _read_log(data["log"], where)
    by_name, header, params = _read_samples(data["samples"], f"{where}, its CSV")
    values = _by_commit(by_name, log, f"{where}, its CSV")
    old, new, uncertainty = _sides(log, values, where)
    metrics = [name for name in values[new] if name in values[old]]
    if not metrics:
        raise RejectedInput(where, f"expected samples of one metric for both {old[:10]} and {new[:10]}, found none")
    measured = (
        checks.measurement(name, "", values[old][name], values[new][name], f"{where}, {name[:80]}") for name in metrics
    )
    # The first metric of the file was bisected.
    measurements = tuple(
        replace(measurement, role="kpi" if number else "headline") for number, measurement in enumerate(measured)
    )
    payload = canonical({"log": data["log"], "samples": data["samples"]})
    try:
        created_at = checks.utc(header["date"]) if "date" in header else None
    except ValueError:
        fault = f"expected # date: a date (ISO 8601), found {header['date'][:40]!r}"
        raise RejectedInput(f"{where}, its CSV", fault) from None
    culprit = _culprit(log.first[0], header, where) if len(log.first) == 1 else None
    suite = header.get("suite") or next(iter(values[new])).partition(".")[0]
    return Result(
        producer=header.get("producer", "git-bisect"),
        id=(header.get("id") or hashlib.sha256(payload.encode("utf-8", "replace")).hexdigest()[:20])[:200],
        created_at=created_at,
        outcome="conclusive" if culprit else "inconclusive",
        tree=header.get("tree", "unknown"),
        branch=header.get("branch", ""),
        tree_url=header.get("url", ""),
        good=log.good[0],
        bad=log.bad[0],
        culprit=culprit,
        parent=next(commit for commit in log.good if commit.sha == old),
        patch_message_id="",
        runs=(TestRun(suite, params, _machine(header, where), measurements),),
        payload=payload,
        format=FORMAT,
        uncertainty=uncertainty,
        parent_is_stated=False,
    )


def steps_of(text: str) -> tuple[str, str, int]:
    """Return the good and the bad end of a log, and how many commits were marked between; empty if it is not a log."""
    try:
        log = _read_log(text, "")
    except RejectedInput:
        return "", "", 0
    return log.good[0].sha[:12], log.bad[0].sha[:12], max(len({commit.sha for commit in log.other}) - 2, 0)


@dataclass(frozen=True, slots=True)
class _Log:
    """The commits in the order they were marked. `first`: the first bad one, or the candidates for it; `other`: all
    that were marked.
    """

    good: tuple[CommitInfo, ...]
    bad: tuple[CommitInfo, ...]
    first: tuple[CommitInfo, ...]
    other: tuple[CommitInfo, ...]


def _read_log(text: str, where: str) -> _Log:
    if "\0" in text or len(text) > 16_000_000:
        raise RejectedInput(where, "expected text of at most 16 MB without NULs")
    lines = _lines(text)
    bad_terms, good_terms = {"bad", "new", "slow"}, {"good", "old", "fast"}
    for term, term_used in _terms(next((line for line in lines if line.startswith("git bisect start")), "")):
        (bad_terms if term in ("new", "bad") else good_terms).add(term_used)
    marks = [(match[1], CommitInfo(match[2], match[3][:1000])) for line in lines if (match := _MARK.match(line))]
    named = {(term_used, commit.sha) for term_used, commit in marks}
    for line in lines:
        if match := _COMMAND.match(line):
            shas = dict.fromkeys(match[2].split())
            marks += [(match[1], CommitInfo(sha)) for sha in shas if (match[1], sha) not in named]
            named |= {(match[1], sha) for sha in shas}
    good = tuple(commit for term_used, commit in marks if term_used in good_terms)
    bad = tuple(commit for term_used, commit in marks if term_used in bad_terms)
    if not good or not bad:
        kind = "good" if not good else "bad"
        raise RejectedInput(where, f"expected a commit marked {kind} (`# {kind}: [sha] title`), found none")
    firsts = [match for line in lines if (match := _FIRST.match(line))]
    certain = [candidate for candidate in firsts if not candidate[1]]
    first = dict.fromkeys(CommitInfo(candidate[3], candidate[4][:1000]) for candidate in certain[-1:] or firsts)
    if not first:
        titles = {commit.sha: commit.title for _, commit in marks}
        said = [match[1] for line in lines if (match := _SAID.match(line)) and match[2] in bad_terms]
        first = dict.fromkeys(CommitInfo(sha, titles.get(sha, "")) for sha in said[-1:])
    return _Log(good, bad, tuple(first), tuple(commit for _, commit in marks))


_LONGEST_START = 4000  # characters of a line: shlex takes quadratic time


def _terms(start: str) -> Iterator[tuple[str, str]]:
    """Yield the custom terms of `git bisect start --term-old=fast --term-new slow`: (new, slow), (old, fast)."""
    if len(start) > _LONGEST_START:
        return
    try:
        arguments = shlex.split(start)
    except ValueError:  # a quote that is not closed
        return
    for argument, after in pairwise([*arguments, ""]):
        option, equals, value = argument.partition("=")
        if option in ("--term-new", "--term-bad", "--term-old", "--term-good"):
            yield option.removeprefix("--term-"), value if equals else after


def _read_samples(
    text: str, where: str
) -> tuple[Mapping[str, Mapping[str, list[float]]], Mapping[str, str], Mapping[str, str]]:
    """Return the contents of a CSV: samples by sha and metric, the values above its header, the test's parameters."""
    header: dict[str, str] = {}
    values: dict[str, dict[str, list[float]]] = {}
    past_header = False
    if "\0" in text:
        raise RejectedInput(where, "expected text, found a NUL")
    for number, line in enumerate(text.splitlines(), start=1):
        if number > MAX_LINES:
            raise RejectedInput(where, f"expected at most {MAX_LINES:,} lines")
        if not line.strip():
            continue
        if not past_header:
            if line.startswith("#"):
                name, _, value = line.lstrip("# ").partition(":")
                header[name.strip()[:200]] = value.strip()[:1000]
                continue
            if tuple(cell.strip() for cell in line.split(",")) != HEAD:
                raise RejectedInput(
                    f"{where}, line {number}", f"expected the header {','.join(HEAD)}, found {line[:60]!r}"
                )
            past_header = True
            continue
        sha, metric, sample = _row(line, f"{where}, line {number}")
        values.setdefault(sha, {}).setdefault(metric, []).append(sample)
    if not values:
        raise RejectedInput(where, "expected samples, found none")
    params = {name: value for name, value in list(header.items())[:100] if name not in _HEADER_NAMES and name and value}
    return values, {name: value for name, value in header.items() if value}, params


def _row(line: str, where: str) -> tuple[str, str, float]:
    try:
        row = [cell.strip() for cell in next(csv.reader([line]))]
    except csv.Error as error:
        raise RejectedInput(where, f"invalid CSV: {error}") from None
    if len(row) != 3 or not re.fullmatch(r"[0-9a-f]{7,40}", row[0]) or not row[1] or len(row[1]) > 500:
        raise RejectedInput(where, f"expected a sha, a metric and a value, found {line[:60]!r}")
    try:
        return row[0], row[1], checks.finite_number(row[2])
    except ValueError:
        raise RejectedInput(where, f"expected a finite number, found {row[2][:40]!r}") from None


def _by_commit(
    samples: Mapping[str, Mapping[str, list[float]]], log: _Log, where: str
) -> dict[str, Mapping[str, list[float]]]:
    """Return the samples by full sha; the CSV may abbreviate. Samples of commits not in the log are ignored."""
    shas = sorted({commit.sha for commit in (*log.good, *log.bad, *log.first, *log.other)})
    values: dict[str, Mapping[str, list[float]]] = {}
    for sha, metrics in samples.items():
        matches = shas[bisect_left(shas, sha) : bisect_left(shas, sha + "g")]
        if not matches:
            continue
        if len(matches) > 1:
            raise RejectedInput(where, f"{sha} is ambiguous, it matches {len(matches)} commits: use more digits")
        if matches[0] in values:
            raise RejectedInput(where, f"{matches[0][:12]} is written in two ways: use one of them")
        values[matches[0]] = metrics
    return values


def _sides(log: _Log, values: Mapping[str, object], where: str) -> tuple[str, str, str]:
    """Return the parent and culprit whose samples are compared, and what is doubtful about them.

    In linear history, every commit marked good is nearer to the culprit than those before, so the last one is its
    parent. Across merges it need not be; a git tree or an operator then decides.
    """
    culprits = log.first or log.bad[-1:]
    new = next((culprit.sha for culprit in culprits if culprit.sha in values), None)
    if new is None:
        raise RejectedInput(
            where, f"expected samples of {culprits[0].sha[:12]}, the first bad commit of the log; found none"
        )
    old = next((commit.sha for commit in reversed(log.good) if commit.sha in values), None)
    if old is None:
        raise RejectedInput(where, "expected samples of a commit that was marked good, found none")
    if old == new:
        raise RejectedInput(where, f"{new[:12]} is marked both bad and good: check the log")
    uncertainty = (
        "" if old == log.good[-1].sha else f"the last good commit has no samples; {old[:10]} is used as the parent"
    )
    return old, new, uncertainty


def _culprit(commit: CommitInfo, header: Mapping[str, str], where: str) -> CommitInfo:
    author = next(iter(parse_addresses(header.get("author", ""))), None)
    if header.get("author") and author is None:
        raise RejectedInput(f"{where}, its CSV", f"expected # author: Name <mail>, found {header['author'][:60]!r}")
    return CommitInfo(commit.sha, commit.title, author.name if author else "", author.email if author else "")


def _machine(header: Mapping[str, str], where: str) -> MachineInfo:
    cpus = header.get("cpus", "")
    if cpus and not re.fullmatch(r"[1-9]\d{0,5}", cpus):
        raise RejectedInput(f"{where}, its CSV", f"expected # cpus: a number, found {cpus[:40]!r}")
    return MachineInfo(header.get("machine", "unknown")[:200], cpus=int(cpus) if cpus else None)
