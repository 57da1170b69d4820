"""LKP result roots, as lkp-tests leaves them on disk: found, collected into a value, read as a Result.

A root is `<testcase>/<path_params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>/`, with a directory per run. A
job.yaml is in each run, and a matrix.json beside the runs or a stats.json in each. (A matrix.json inside a run is a
time series and is not read.) A matrix maps each metric to a list with one value per run; -1, null and NaN mean
missing. LKP pads a metric that appeared only in early runs with zeros at the end, one that appeared only in later
runs at the front, and some columns not at all. The stats of the runs tell which runs have the metric; where they are
gone, zeros at both ends are missing unless there are others, and a short column is samples without order. Without a
matrix, the stats of the runs hold the same.

A column that can't be used is left out, with the reason; a root without any other is refused.

Two roots are parent and culprit. The collected value is what is stored, so `parse` needs no files and is pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from bot.results.formats import checks
from bot.results.formats.checks import canonical, check_inside, decode_json, read_text
from bot.results.values import CommitInfo, MachineInfo, RejectedInput, Result, TestRun

# --- Numbers ---

FORMAT = "lkp-result-roots"
UNKNOWN_ORDER = "unknown which commit is the parent: assumed from the order of their names"
_INCOMPLETE = "last_state.is_incomplete_run"


def parse(data: Any, where: str, *, in_order: bool = False) -> Result:
    """Return the result of two collected roots. `in_order`: the user named the parent first."""
    if not isinstance(data, dict):
        raise RejectedInput(where, "expected two result roots, parent and culprit")
    parent, culprit = (_Root.of(data.get(name), f"{where}, {name}") for name in ("parent", "culprit"))
    for name in ("suite", "machine", "params"):
        if getattr(parent, name) != getattr(culprit, name):
            raise RejectedInput(where, f"expected the same test on both commits, but {name} differs")
    metrics = [name for name in parent.samples if name in culprit.samples]
    if not metrics:
        raise RejectedInput(where, "expected metrics common to both commits, found none")
    measured = [
        checks.measurement(name, "", parent.samples[name], culprit.samples[name], f"{where}, {name}")
        for name in metrics
    ]
    pair = f"{parent.commit[:12]}..{culprit.commit[:12]} ({parent.runs}+{culprit.runs} runs)"
    tree, _, branch = parent.job.get("branch", "").partition("/")
    return Result(
        producer="lkp",
        id=f"{pair} {parent.path}"[:200],  # more runs make another result of the report
        created_at=None,
        outcome="conclusive",
        tree=tree or "unknown",
        branch=branch,
        tree_url="",
        good=CommitInfo(parent.commit),
        bad=CommitInfo(culprit.commit),
        culprit=CommitInfo(culprit.commit),
        parent=CommitInfo(parent.commit),
        patch_message_id="",
        runs=(TestRun(parent.suite, parent.params, parent.machine, checks.with_roles(measured, parent.suite)),),
        payload=canonical(data),
        format=FORMAT,
        uncertainty="" if in_order else UNKNOWN_ORDER,
        may_be_reversed=not in_order,
        note=_left_out([*parent.left_out, *culprit.left_out]),
    )


def _left_out(reasons: Sequence[str]) -> str:
    """Return in a few lines' length which columns could not be used."""
    more = f"; and {len(reasons) - _MOST_LEFT_OUT} more columns" if len(reasons) > _MOST_LEFT_OUT else ""
    return f"left out: {'; '.join(reasons[:_MOST_LEFT_OUT])}{more}" if reasons else ""


_MOST_LEFT_OUT = 10


@dataclass(frozen=True, slots=True)
class _Root:
    """One commit's side. `samples`: the values of the complete runs, without missing ones."""

    commit: str
    path: str
    job: Mapping[str, str]
    suite: str
    params: Mapping[str, str]
    machine: MachineInfo
    runs: int
    samples: Mapping[str, Sequence[Any]]
    left_out: Sequence[str] = ()  # columns that could not be used, and why

    @classmethod
    def of(cls, data: Any, where: str) -> _Root:
        if not isinstance(data, dict) or not isinstance(data.get("job"), dict):
            raise RejectedInput(where, "expected a result root with a job.yaml")
        commit = str(data.get("commit", ""))
        job = {key: value for key, value in data["job"].items() if isinstance(value, str)}
        if not checks.SHA.match(commit) or job.get("commit", commit) != commit:
            name = job.get("commit", "")
            raise RejectedInput(where, f"expected the runs of {commit[:40]}, found a job of {name[:40]}")
        path = _path(job, commit, str(data.get("path", "")))
        suite = job.get("testcase") or job.get("suite") or path.partition("/")[0]
        if not suite:
            raise RejectedInput(where, "expected a testcase in job.yaml, found none")
        samples, runs, left_out = _samples(data, where)
        return cls(
            commit=commit,
            path=path,
            job=job,
            suite=suite[:200],
            params=_params(data["job"], suite, path),
            machine=_machine(job, path, where),
            runs=runs,
            samples=samples,
            left_out=left_out,
        )


def _path(job: Mapping[str, str], commit: str, path: str) -> str:
    """Return `<testcase>/<path_params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>`, wherever the files are now."""
    before, _, _ = job.get("result_root", "").partition(f"/{commit}")
    steps = before.split("/") if before else path.split("/")
    testcase = job.get("testcase") or job.get("suite") or ""
    if len(steps) >= 6 and (before or steps[-6] == testcase):
        return "/".join(steps[-6:])
    return "/".join([testcase, "", *(job.get(name, "") for name in ("tbox_group", "rootfs", "kconfig", "compiler"))])


def _samples(data: Mapping[str, Any], where: str) -> tuple[dict[str, list[Any]], int, list[str]]:
    """Return the samples of each metric over the complete runs, the number of those runs, and which columns could not
    be used, with the reason.
    """
    matrix, is_padded = data.get("matrix"), data.get("matrix") is not None
    if matrix is None:
        matrix = _matrix_of(data.get("runs"), where)
    where = f"{where}, {'matrix' if is_padded else 'stats'}.json"
    if not isinstance(matrix, dict) or not matrix:
        raise RejectedInput(where, "expected an object with a list per metric")
    texts = {name for name, column in matrix.items() if _is_texts(column)}
    columns, left_out = _usable({name: column for name, column in matrix.items() if name not in texts}, where)
    length = len(matrix["stats_source"]) if "stats_source" in texts else max(map(len, columns.values()))
    incomplete = columns.pop(_INCOMPLETE, [])
    complete = {run for run in range(length) if run >= len(incomplete) or incomplete[run] != 1}
    if not complete:
        raise RejectedInput(where, f"expected a complete run, found {length} incomplete ones")
    present = data.get("present")
    present = present if isinstance(present, dict) else {}
    samples: dict[str, list[Any]] = {}
    for name, column in columns.items():
        runs = present.get(name)
        runs = [run for run in runs if isinstance(run, int)] if isinstance(runs, list) else None
        values = _values(column, length, complete, runs, is_padded=is_padded)
        if values:
            samples[name] = values
    if not samples:
        raise RejectedInput(where, next(iter(left_out), "expected a measured value, found none"))
    return samples, len(complete), left_out


def _matrix_of(runs: Any, where: str) -> dict[str, list[Any]]:
    """Return the stats of the runs as a matrix; values that a run lacks are missing."""
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise RejectedInput(where, "expected the stats of at least one run, each an object")
    names = dict.fromkeys(name for run in runs for name in run)
    missing = {name: 0 if name == _INCOMPLETE else -1 for name in names}
    return {name: [run.get(name, missing[name]) for run in runs] for name in names}


def _is_texts(column: Any) -> bool:
    return isinstance(column, list) and bool(column) and all(isinstance(cell, str) or cell == -1 for cell in column)


def _usable(columns: Mapping[str, Any], where: str) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the columns of numbers, and why each of the others is not one. Raises RejectedInput if none is left."""
    usable: dict[str, list[Any]] = {}
    left_out: list[str] = []
    for name, column in columns.items():
        try:
            if not isinstance(column, list):
                raise RejectedInput(f"{where}, /{name[:80]}", "expected a list with one value per run")
            column = [-1 if value is None else value for value in column]
            checks.all_numbers(column, f"{where}, /{name[:80]}")
            if column:
                usable[name] = column
        except RejectedInput as error:
            left_out.append(str(error))
    if not usable.keys() - {_INCOMPLETE}:
        raise RejectedInput(where, next(iter(left_out), "expected columns of numbers, found none"))
    return usable, left_out


def _values(
    column: list[Any], length: int, complete: Collection[int], runs: list[int] | None, *, is_padded: bool
) -> list[Any]:
    """Return the measured values of the complete runs. `length`: how many runs there are; `runs`: those that have the
    metric in their own stats, None if that is not known.
    """
    column = column[:length]  # what is beyond the runs that were counted is padding
    if runs is not None:
        if len(column) == length:  # padded: each run's value is in its place
            pairs = [(run, column[run]) for run in runs if 0 <= run < length]
        elif len(column) == len(runs):
            pairs = list(zip(runs, column, strict=True))
        else:  # whose they are isn't known
            return [value for value in column if value != -1]
        return [value for run, value in pairs if run in complete and value != -1]
    if len(column) != length:  # whose they are isn't known
        return [value for value in column if value != -1]
    first, last = 0, length
    while is_padded and last and column[last - 1] == 0:
        last -= 1
    while is_padded and first < last and column[first] == 0:
        first += 1
    if not last or 0 in column[first:last]:  # then zeros are measured, too; at the end they are padding all the same
        first, last = 0, last or length
    return [column[run] for run in range(first, last) if run in complete and column[run] != -1]


# Keys that describe the job or the machine; any other may be a parameter of the test.
_NO_PARAMETER = frozenset(
    {
        "suite", "testcase", "category", "tbox_group", "commit", "branch", "kconfig", "compiler", "rootfs",
        "nr_cpu", "memory", "model", "result_root", "job_file", "queue", "id", "user", "arch",
    }
)  # fmt: skip


def _params(job: Mapping[str, Any], suite: str, path: str) -> dict[str, str]:
    """Return the parameters whose values occur in the path, under the job's names for them; the path alone is lossy."""
    values = path.split("/")[1] if path.count("/") >= 1 else ""
    own = job.get(suite)
    named = {key: value for key, value in job.items() if isinstance(value, str) and key not in _NO_PARAMETER}
    params = {key: value for key, value in named.items() if value and f"-{value}-" in f"-{values}-"}
    params |= own if isinstance(own, dict) else {}
    return {key[:200]: value[:1000] for key, value in sorted(params.items())[:100]}


def _machine(job: Mapping[str, str], path: str, where: str) -> MachineInfo:
    steps = path.split("/")
    name = job.get("tbox_group") or (steps[2] if len(steps) > 2 else "")
    if not name:
        raise RejectedInput(where, "expected a tbox_group in job.yaml, found none")
    cpus = job.get("nr_cpu", "")
    match = re.fullmatch(r"(\d{1,6})\s?([KMGT])i?B?", job.get("memory", ""))  # such as 256G
    return MachineInfo(
        name[:200],
        cpus=int(cpus) if re.fullmatch(r"[1-9]\d{0,5}", cpus) else None,
        cpu_model=job.get("model", "")[:200],
        memory_bytes=(int(match[1]) << {"K": 10, "M": 20, "G": 30, "T": 40}[match[2]] if match else None),
    )


# --- Result roots on disk ---

MAX_JOB = 256 * 1024  # bytes of a job.yaml; real ones have about 20,000
MAX_RUNS = 1000


def roots_below(top: Path) -> Iterator[list[Path]]:
    """Yield the result roots at or below `top`, grouped by test, in order of name."""
    groups: dict[Path, list[Path]] = {}
    candidates = [top, *(path for path in top.rglob("*") if path.is_dir() and not path.is_symlink())]
    for directory in candidates:
        if is_root(directory):
            groups.setdefault(directory.parent, []).append(directory)
    for parent in sorted(groups):
        yield sorted(groups[parent])


def is_root(directory: Path) -> bool:
    """Whether a directory holds the runs of one commit."""
    return checks.SHA.match(directory.name) is not None and (
        (directory / "matrix.json").is_file() or any((run / "stats.json").is_file() for run in _runs(directory))
    )


def _runs(root: Path) -> list[Path]:
    named = (path for path in root.iterdir() if path.name.isascii() and path.name.isdigit())
    return sorted((path for path in named if path.is_dir()), key=lambda path: int(path.name))


def read_pair(roots: Sequence[Path], top: Path, *, in_order: bool) -> Result:
    """Return the result of two roots. `in_order`: the user named the parent first."""
    if len(roots) != 2:
        names = ", ".join(path.name[:10] for path in roots[:5])
        raise RejectedInput(
            str(roots[0].parent), f"expected the result roots of a parent and a culprit, found {len(roots)}: {names}"
        )
    sides = {name: _gather(root, top) for name, root in zip(("parent", "culprit"), roots, strict=True)}
    result = parse(sides, str(roots[0].parent), in_order=in_order)
    return replace(result, files=_files_of(roots[1], top), parent_files=_files_of(roots[0], top))


# What a run leaves that says how it was run, and what the kernel said meanwhile, of which the end is kept.
_SAYS_HOW = ("job.yaml", "reproduce.sh", "reproduce", "config", "kconfig")
_LOGS = ("dmesg", "kmsg")
_MOST_OF_A_FILE = 64 * 1024  # bytes


def _files_of(root: Path, top: Path) -> dict[str, str]:
    """Return the small files of a root's first run, by name; what is too large or unreadable is left out."""
    files: dict[str, str] = {}
    for folder in (*_runs(root)[:1], root):
        for name in (*_SAYS_HOW, *_LOGS):
            path = folder / name
            with suppress(RejectedInput, OSError):
                if name in files or not path.is_file():
                    continue
                check_inside(path, top)
                size = path.stat().st_size
                if name in _LOGS or size <= _MOST_OF_A_FILE:
                    with path.open("rb") as stream:
                        stream.seek(max(0, size - _MOST_OF_A_FILE))
                        raw = stream.read(_MOST_OF_A_FILE)
                    files[name] = raw.decode("utf-8", "replace").replace("\0", "\ufffd")
    return files


def _gather(root: Path, top: Path) -> dict[str, Any]:
    """Return the contents of a root as a value that can be stored: commit, job, and the matrix or the runs' stats."""
    check_inside(root, top)
    runs = _runs(root)
    if len(runs) > MAX_RUNS:
        raise RejectedInput(str(root), f"expected at most {MAX_RUNS} runs, found {len(runs)}")
    jobs = [run / "job.yaml" for run in runs if (run / "job.yaml").exists()] or [root / "job.yaml"]
    data: dict[str, Any] = {"commit": root.name, "path": "/".join(root.parts[-7:-1])}
    data["job"] = read_job(read_text(jobs[0], top, MAX_JOB), str(jobs[0]))
    if (root / "matrix.json").exists():
        data["matrix"] = _numbers_in(root / "matrix.json", top)
        if present := _present(data["matrix"], [run / "stats.json" for run in runs], top):
            data["present"] = present
    else:
        stats = (_stats_of(run / "stats.json", top) for run in runs)
        data["runs"] = [run for run in stats if run is not None]
    return data


# What JSON has no words for, though Ruby and Python write it
_NOT_FINITE = re.compile(r"(?<=[\[,:\s])(?:-?Infinity|NaN)(?=[\s,\]}])")


def _numbers_in(path: Path, top: Path) -> Any:
    """Return the content of a JSON file, with null for what is not a finite number."""
    return decode_json(_NOT_FINITE.sub("null", read_text(path, top)), str(path))


def _present(matrix: Any, stats: Sequence[Path], top: Path) -> dict[str, list[int]]:
    """Return in which runs the metrics are whose column is short or has zeros; {} if it is not known whose they are.

    A run without stats, which may have crashed, is one of the columns or none. If it is one, it has what isn't zero.
    """
    if not isinstance(matrix, dict):
        return {}
    source, kept = matrix.get("stats_source"), [path for path in stats if path.exists()]
    length = len(source) if isinstance(source, list) else len(stats)
    if not kept or length not in (len(stats), len(kept)):
        return {}
    paths = stats if length == len(stats) else kept
    doubtful = {
        name: column
        for name, column in matrix.items()
        if isinstance(column, list) and column and (len(column) != length or 0 in column) and name != _INCOMPLETE
    }
    if not doubtful or (len(kept) < length and any(len(column) != length for column in doubtful.values())):
        doubtful = {name: column for name, column in doubtful.items() if len(column) == length}
    own = [_stats_of(path, top) for path in paths] if doubtful else []
    return {
        name: [run for run, names in enumerate(own) if (column[run] != 0 if names is None else name in names)]
        for name, column in sorted(doubtful.items())
    }


def _stats_of(path: Path, top: Path) -> dict[str, Any] | None:
    """Return the stats of a run; None if there are none, or an empty file, as a crash leaves it."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    content = _numbers_in(path, top)
    return content if isinstance(content, dict) else {}


class _Plain(yaml.BaseLoader):
    """A YAML loader for strings, lists and mappings only: no type guessing, no key twice with another value, and no
    aliases but for strings, and lists and mappings of these: Ruby writes them for what it shares.
    """

    _aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        is_alias = self.check_event(yaml.AliasEvent)
        self._aliases += is_alias
        if is_alias and (self._aliases > _MOST_ALIASES or not _is_flat(self.anchors.get(event.anchor))):
            problem = "an alias (*name), which is not supported"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        values: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key.value, str) or values.setdefault(key.value, value.value) == value.value:
                continue
            twice = key.value
            raise yaml.MarkedYAMLError(problem=f"duplicate key {twice[:80]!r}", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


_MOST_ALIASES = 100


def _is_flat(node: yaml.Node | None) -> bool:
    match node:
        case yaml.MappingNode():
            return all(isinstance(value, yaml.ScalarNode) for _, value in node.value)
        case yaml.SequenceNode():
            return all(isinstance(value, yaml.ScalarNode) for value in node.value)
    return node is not None


def read_yaml(text: str, where: str) -> Any:
    """Return the strings, lists and mappings of a YAML file. Raise RejectedInput with the line of a fault."""
    try:
        return yaml.load(text, _Plain)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise RejectedInput(f"{where}{line}", f"can't read YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise RejectedInput(where, f"can't read YAML: {(str(error) or 'nested too deeply').splitlines()[0]}") from None


def read_job(text: str, where: str) -> dict[str, Any]:
    """Parse a job.yaml into strings: its plain values, and one level of mappings below."""
    loaded = read_yaml(text, where)
    if not isinstance(loaded, dict):
        raise RejectedInput(where, f"expected a mapping, found {type(loaded).__name__}")
    return {
        key: {name: scalar for name, scalar in value.items() if isinstance(name, str) and isinstance(scalar, str)}
        if isinstance(value, dict)
        else value
        for key, value in loaded.items()
        if isinstance(key, str) and isinstance(value, str | dict)
    }
