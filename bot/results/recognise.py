"""Detects the format of an input by its content, in files, directories and streams.

Results are yielded one at a time; what can't be read yields the error instead, and the rest is still read. Stored
payloads are read again by the format name stored with them. To add a format, see CONTRIBUTING.md.

Rejected input that has no other copy is kept in refused/ as received, with the reason beside it. For its mail,
`details_of` gives what a stored result says besides its findings: the range, the rechecks, the build.
"""

import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any

from bot.results.formats import benchmark_files, bisect_log, kcidb, lkp, perf_release_result
from bot.results.formats import perf_bisect_result as perf
from bot.results.formats.benchmark import Document
from bot.results.formats.checks import (
    HEAD,
    MAX_BYTES,
    canonical,
    checked,
    checked_release,
    decode_json,
    decode_text,
    head_of,
    read_text,
    reason_of,
)
from bot.results.values import KernelResult, MeasurementData, RejectedInput, Result, checked_parse
from tracker.domain.text import scenario_key

log = logging.getLogger(__name__)

# --- Reading ---

# By the format name that is stored with a payload. To add one: its line here, and how it is recognised: JSON in
# `_value`, any other text in `_file`, which reads named files only. A text needs a suffix of its own in _SUFFIXES,
# since directories skip others.
ADAPTERS: Mapping[str, Callable[[Any, str], Result]] = {
    perf.FORMAT: perf.parse,
    lkp.FORMAT: lkp.parse,
    bisect_log.FORMAT: bisect_log.parse,
    kcidb.FORMAT: kcidb.parse,
    benchmark_files.FORMAT: benchmark_files.parse,
}
_BOM = b"\xef\xbb\xbf"
_JSON = (".json", ".jsonl", ".ndjson")
_SUFFIXES = (*_JSON, ".log", ".txt", ".bisect", ".csv", "")
_MOST_OF_TOOL = 16 << 20  # bytes; a benchmark's own output is not larger
_OF_TOOL = "expected --kernel VERSION, or its files on two kernels: --parent FILE… --culprit FILE…"
READS = "JSON, LKP result roots, a git bisect log with its CSV, a CSV of measured commits"


@dataclass(frozen=True, slots=True)
class Input:
    """One result found in an input, or the error; `raw` holds the rejected bytes if they came from a stream.

    `where` names the file, and the line or the index.
    """

    where: str
    result: Result | KernelResult | None
    rejection: RejectedInput | None = None
    raw: bytes = b""


def reread(format_name: str, payload: str, bad_sha: str, where: str) -> Result:
    """Parse a stored payload with today's code. Raises RejectedInput if that no longer accepts it.

    `bad_sha`: the bad end by which it was stored; an adapter that only guesses the parent may guess the other one.
    """
    if format_name not in ADAPTERS:
        raise RejectedInput(where, f"there is no format {format_name!r} any more")
    result = checked_parse(lambda: ADAPTERS[format_name](json.loads(payload), where), where)
    return result.reversed() if result.may_be_reversed and result.good.sha == bad_sha else result


def read_paths(paths: Sequence[Path]) -> Iterator[Input]:
    """Yield every result of these paths. Two LKP result roots in succession are a parent and its culprit."""
    paired: set[int] = set()
    for number, (one, other) in enumerate(pairwise([*paths, Path()])):
        if number in paired:
            continue
        if _is_root(one) and _is_root(other) and one.resolve().parent == other.resolve().parent:
            paired.add(number + 1)
            yield from _lkp([one.resolve(), other.resolve()], one.resolve().parent, in_order=True)
        else:
            yield from read_path(one)


def _is_root(path: Path) -> bool:
    try:
        return path.is_dir() and lkp.is_root(path.resolve())
    except (OSError, RuntimeError):  # reported when the path is read
        return False


def read_path(path: Path) -> Iterator[Input]:
    """Yield every result in a file or below a directory, in order of name."""
    try:
        yield from _directory(path) if path.is_dir() else _file(path, path.resolve().parent)
    except (OSError, RuntimeError) as error:
        yield _rejected(str(path), reason_of(error))


def _directory(top: Path) -> Iterator[Input]:
    pairs = list(lkp.roots_below(top.resolve()))
    files = list(_files(top, {root for pair in pairs for root in pair}))
    count = 0
    for entry in chain(
        *(_lkp(pair, top.resolve(), in_order=False) for pair in pairs),
        *(_file(file, top, may_be_json=file.suffix.lower() in _JSON) for file in files),
    ):
        count += 1
        yield entry
    if not count:
        yield _rejected(str(top), f"expected one of {READS}; found none")


def _files(top: Path, roots: set[Path]) -> Iterator[Path]:
    """Yield the files that may hold results, in order of name, except those of result roots and samples of a log."""
    for path in sorted(top.rglob("*")):
        if path.suffix.lower() not in _SUFFIXES or path.is_dir() or path.name.startswith("."):
            continue
        if roots and not roots.isdisjoint((top.resolve() / path.relative_to(top)).parents):
            continue
        if path.suffix == ".csv" and partner_of(path):
            with suppress(RejectedInput, OSError):  # said when it is read
                if bisect_log.is_samples(head_of(path, top)):
                    continue  # half of a bisection, which its log brings in
        yield path


def _lkp(roots: Sequence[Path], top: Path, *, in_order: bool) -> Iterator[Input]:
    where = str(roots[0].parent)
    try:
        result = checked_parse(lambda: lkp.read_pair(roots, top, in_order=in_order), where)
        yield Input(where, checked(result, where))
    except RejectedInput as rejection:
        yield Input(where, None, rejection)


def _file(path: Path, top: Path, *, may_be_json: bool = True) -> Iterator[Input]:
    """Yield the results of one file. `may_be_json` false: text that nobody knows, such as a README, is skipped."""
    try:
        beginning = head_of(path, top)
        if bisect_log.is_log(beginning) or bisect_log.is_samples(beginning):
            # The result of a log and the samples beside it: NAME.log with NAME.csv
            partner, is_log = partner_of(path), path.suffix != ".csv"
            if partner is None:
                what = "samples (NAME.csv)" if is_log else "git bisect log (NAME.log)"
                raise RejectedInput(str(path), f"expected its {what} beside it in {path.parent}, found none")
            log, samples = (path, partner) if is_log else (partner, path)
            texts = {"log": read_text(log, top, MAX_BYTES), "samples": read_text(samples, top, MAX_BYTES)}
            result = checked_parse(lambda: bisect_log.parse(texts, str(log)), str(log))
            yield Input(str(log), checked(result, str(log)))
        elif perf_release_result.is_csv(beginning):
            written = read_text(path, top, MAX_BYTES)
            for value in checked_parse(lambda: perf_release_result.parse_csv(written, str(path)), str(path)):
                yield from _value(value, f"{path}, {value['kernel'].get('sha') or value['kernel']['version']}")
        elif (
            '"schema"' not in beginning
            and path.stat().st_size <= _MOST_OF_TOOL
            and (reader := benchmark_files.reader_of(Document(path.name, read_text(path, top, MAX_BYTES))))
        ):
            raise RejectedInput(str(path), f"{reader.name} of one kernel: {_OF_TOOL}")
        elif may_be_json:
            with path.open("rb") as stream:
                yield from read_stream(stream, str(path))
    except RejectedInput as rejection:
        yield Input(str(path), None, rejection)
    except OSError as error:
        yield _rejected(str(path), error.strerror or str(error))


def partner_of(path: Path) -> Path | None:
    """Return the samples of a log, or the log of samples: the file with the same stem beside it; None if missing."""
    suffixes = (".log", ".txt", ".bisect", "") if path.suffix == ".csv" else (".csv",)
    return next((path.with_suffix(suffix) for suffix in suffixes if path.with_suffix(suffix).is_file()), None)


def read_stream(stream: IO[bytes], name: str) -> Iterator[Input]:
    """Yield the results of one JSON value or array, or of JSON Lines, which are read one line at a time."""
    first = stream.readline(MAX_BYTES + 1).removeprefix(_BOM)
    lines = 1
    while first and not first.strip():
        first, lines = stream.readline(MAX_BYTES + 1), lines + 1
    # JSON Lines begin with a complete object on a line of its own; any other input is one value.
    is_complete = first.lstrip().startswith(b"{") and first.rstrip().endswith(b"}") and first.endswith(b"\n")
    if is_complete or len(first) > MAX_BYTES:
        yield from _lines(first, stream, name, lines)
        return
    raw = first + stream.read(MAX_BYTES + 1 - len(first))
    try:
        head = raw[:HEAD].decode("utf-8", "replace")
        if bisect_log.is_log(head):
            raise RejectedInput(
                name, "a git bisect log needs its samples: pass the file NAME.log, with NAME.csv beside it"
            )
        if perf_release_result.is_csv(head):
            raise RejectedInput(name, "a CSV of measured commits is read from a file: pass its name")
        value = decode_json(decode_text(raw, name), name)
    except RejectedInput as rejection:
        yield Input(name, None, rejection, raw)
        return
    if value == []:
        yield Input(name, None, RejectedInput(name, "expected a result, found an empty array"), raw)
    if isinstance(value, list):
        for number, element in enumerate(value):
            yield from _value(element, f"{name}, /{number}")
    else:
        yield from _value(value, name)


def read_bytes(raw: bytes, name: str) -> Iterator[Input]:
    """Yield the results held in `raw`."""
    return read_stream(io.BytesIO(raw), name)


def tool_of(raw: bytes) -> str:
    """Return the name of the benchmark that wrote this, "" if it is not the output of one."""
    if len(raw) > _MOST_OF_TOOL or b'"schema"' in raw[:HEAD]:
        return ""
    reader = benchmark_files.reader_of(Document("body", raw.decode("utf-8", "replace")))
    return reader.name if reader else ""


def _lines(first: bytes, stream: IO[bytes], name: str, number: int) -> Iterator[Input]:
    line = first
    while line:
        where = f"{name}, line {number}"
        if len(line) > MAX_BYTES:
            yield _rejected(where, f"expected at most {MAX_BYTES:,} bytes per result")
            while line and not line.endswith(b"\n"):  # skip the rest of it without keeping it
                line = stream.readline(1 << 20)
        elif line.strip():
            try:
                yield from _value(decode_json(decode_text(line, where), where), where)
            except RejectedInput as rejection:
                yield Input(where, None, rejection, line)
        number, line = number + 1, stream.readline(MAX_BYTES + 1)


def _value(value: Any, where: str) -> Iterator[Input]:
    """Yield the results of one JSON value, or why they are rejected."""
    answers: Iterable[Result | KernelResult | RejectedInput]
    if kcidb.is_report(value):
        answers = kcidb.parse_all(value, where)
    else:
        parse = perf_release_result.parse if perf_release_result.is_result(value) else perf.parse
        try:
            if isinstance(value, dict) and "schema" not in value:  # else each field of a result is missing, too
                why = f"expected a result with its schema, {perf.FORMAT}, say; found none"
                raise RejectedInput(where, why, [("", why)])
            answers = [checked_parse(lambda: parse(value, where), where)]
        except RejectedInput as rejection:
            answers = [rejection]
    kept = b""
    for answer in answers:
        try:
            if isinstance(answer, RejectedInput):
                raise answer
            if isinstance(answer, KernelResult):
                yield Input(where, checked_release(answer, where))
            else:
                yield Input(where, checked(answer, where))
        except RejectedInput as rejection:
            raw = b""
            if not kept:  # the bytes of a report with many errors are kept once
                with suppress(RejectedInput):  # nested too deeply to be written
                    kept = raw = canonical(value).encode("utf-8", "replace")
            yield Input(where, None, rejection.at(where), raw)


def _rejected(where: str, why: str) -> Input:
    return Input(where, None, RejectedInput(where, why))


# --- The refused/ folder ---

_MOST = 2_000  # files; no more are kept until an operator removes some (DESIGN rule 10)
_MOST_BYTES = 1 << 30


def keep(raw: bytes, rejection: RejectedInput, drop: Path, now: datetime, source: str = "") -> Path | None:
    """Keep the bytes of rejected input that has no other copy. Return the path, or None if the folder is full.

    `source`: who handed it in, to stand before the reason.
    """
    with own_folder(drop, "refused") as (folder, handle):
        sizes = [path.lstat().st_size for path in folder.iterdir()]
        if len(sizes) >= _MOST or sum(sizes) + len(raw) > _MOST_BYTES:
            log.error("%s is full: check and remove files in it; rejected and not kept: %s", folder, rejection)
            return None
        name = re.sub(r"[^\w.-]+", "-", rejection.where)[:60].strip("-.") or "input"
        target = free_name(folder, f"{name}.json", now)
        _write(target.name, raw, handle)
        write_reasons(target.name, [rejection], handle, source)
    return target


def dismiss_rejected(drop: Path) -> int:
    """Move what was rejected out of sight, into `dismissed/`, where `prune` removes it in time. Return how many files,
    their reasons not counted.
    """
    with own_folder(drop, "refused") as (folder, source), own_folder(drop, "dismissed") as (_, target):
        names = sorted(path.name for path in folder.iterdir())
        for name in names:
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    return sum(not name.endswith(".reason") for name in names)


@contextmanager
def own_folder(drop: Path, name: str) -> Iterator[tuple[Path, int]]:
    """Open a folder of ours in the drop directory, made if missing: its path, and a handle for what is put there.

    Labs write to the drop directory: a symbolic link in the place of the folder is not followed. Raises OSError.
    """
    folder = drop / name
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield folder, handle
    finally:
        os.close(handle)


def write_reasons(name: str, rejections: list[RejectedInput], folder: int, source: str = "") -> None:
    """Write the reasons beside a rejected file, after who handed it in."""
    lines = [*([source] if source else []), *map(str, rejections)]
    reason = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    _write(f"{name}.reason", reason, folder)


def _write(name: str, raw: bytes, folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as stream:
        stream.write(raw)


def free_name(folder: Path, name: str, now: datetime) -> Path:
    """Return an unused path in a folder: the name itself, else with a timestamp and a number before it."""
    name = name.encode("utf-8", "replace")[-150:].decode("utf-8", "ignore").lstrip(".") or "input"
    stamp = f"{now:%Y%m%dT%H%M%S%f}"
    candidates = (name, f"{stamp}-{name}", *(f"{stamp}-{number}-{name}" for number in range(2, 2 * _MOST)))
    return next(
        folder / candidate
        for candidate in candidates
        if not (folder / candidate).exists() and not (folder / candidate).is_symlink()
    )


# --- Details of a stored result ---

BUILD = ("kconfig", "config_url", "compiler", "rootfs", "cmdline")
LKP_BUILD = ("kconfig", "compiler", "rootfs")  # a job's other fields mean other things


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Empty where a format has no such field. `good`, `bad`: the ends of the bisected range, as git describes them."""

    good: str = ""
    bad: str = ""
    bisect_steps: int = 0
    tree_url: str = ""
    rechecks: tuple[tuple[str, str], ...] = ()  # (ref, state)
    test_text: str = ""
    test_url: str = ""
    artifacts: tuple[tuple[str, str], ...] = ()  # (name, URL)
    build: Mapping[str, str] = field(default_factory=dict)  # by the names in BUILD


def details_of(format_name: str, payload: str) -> ResultDetails:
    """Return the details of a stored payload; our own format, LKP's and the log of a bisection have any."""
    if format_name not in (perf.FORMAT, lkp.FORMAT, benchmark_files.FORMAT, bisect_log.FORMAT):
        return ResultDetails()
    value = json.loads(payload)
    if format_name in (benchmark_files.FORMAT, bisect_log.FORMAT):
        log = value.get("log") or _part(value, "about").get("bisect_log", "")
        good, bad, steps = bisect_log.steps_of(str(log)) if log else ("", "", 0)
        return ResultDetails(good=good, bad=bad, bisect_steps=steps)
    if format_name == lkp.FORMAT:
        job = _part(_part(value, "culprit"), "job")
        return ResultDetails(build={name: job[name] for name in LKP_BUILD if isinstance(job.get(name), str)})
    bisect, test, build = _part(value, "bisect"), _part(value, "test"), _part(value, "build")
    good, bad = (
        str(commit.get("describe") or str(commit.get("sha", ""))[:10])
        for commit in (_part(value, "good"), _part(value, "bad"))
    )
    return ResultDetails(
        good=good,
        bad=bad,
        bisect_steps=len(bisect.get("steps", ())),
        tree_url=_part(value, "tree").get("url", ""),
        rechecks=tuple((recheck["ref"], recheck["state"]) for recheck in bisect.get("rechecks", ())),
        test_text=test.get("description", ""),
        test_url=test.get("url", ""),
        artifacts=tuple(
            (artifact["name"], artifact["url"]) for artifact in value.get("artifacts", ()) if "url" in artifact
        ),
        build={name: build[name] for name in BUILD if isinstance(build.get(name), str)},
    )


def _part(payload: Any, name: str) -> dict[str, Any]:
    part = payload.get(name) if isinstance(payload, dict) else None
    return part if isinstance(part, dict) else {}


def remeasured(data: Result, sha: str, scenario: str, machine: str, metric: str) -> MeasurementData | None:
    """Return the measurement of a metric on a machine, from a result whose bad commit or culprit is `sha`; None if it
    was not measured there. `scenario`: its key.
    """
    if sha not in (data.bad.sha, data.culprit.sha if data.culprit else ""):
        return None  # a recheck without numbers
    for run in data.runs:
        if (scenario_key(run.suite, run.params), run.machine.id) == (scenario, machine):
            return next((measurement for measurement in run.measurements if measurement.metric == metric), None)
    return None
