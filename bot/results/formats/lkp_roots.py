"""LKP result roots on disk, as lkp-tests leaves them: found, and collected into a value for lkp.py.

`<testcase>/<path_params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>/<run>/`, with a job.yaml in each run, and
a matrix.json beside the runs or a stats.json in each. (A matrix.json inside a run is a time series and is not read.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bot.results.bisect_result import Result
from bot.results.errors import RejectedInput
from bot.results.files import check_inside, read_json, read_text
from bot.results.formats import lkp

MAX_JOB = 256 * 1024  # bytes of a job.yaml; real ones have about 20,000
MAX_RUNS = 1000
_SHA = re.compile(r"[0-9a-f]{40}\Z")


def roots_below(top: Path) -> Iterator[list[Path]]:
    """Yield the result roots at or below `top`, grouped by test, in order of name."""
    groups: dict[Path, list[Path]] = {}
    candidates = [top, *(each for each in top.rglob("*") if each.is_dir() and not each.is_symlink())]
    for directory in candidates:
        if is_root(directory):
            groups.setdefault(directory.parent, []).append(directory)
    for parent in sorted(groups):
        yield sorted(groups[parent])


def is_root(directory: Path) -> bool:
    """Whether a directory holds the runs of one commit."""
    return _SHA.match(directory.name) is not None and (
        (directory / "matrix.json").is_file() or any((run / "stats.json").is_file() for run in _runs(directory))
    )


def _runs(root: Path) -> list[Path]:
    named = (each for each in root.iterdir() if each.name.isascii() and each.name.isdigit())
    return sorted((each for each in named if each.is_dir()), key=lambda each: int(each.name))


def read_pair(roots: Sequence[Path], top: Path, *, in_order: bool) -> Result:
    """Return the result of two roots. `in_order`: the user named the parent first."""
    if len(roots) != 2:
        names = ", ".join(each.name[:10] for each in roots[:5])
        raise RejectedInput(
            str(roots[0].parent), f"expected the result roots of a parent and a culprit, found {len(roots)}: {names}"
        )
    sides = {name: _gather(root, top) for name, root in zip(("parent", "culprit"), roots, strict=True)}
    return lkp.parse(sides, str(roots[0].parent), in_order=in_order)


def _gather(root: Path, top: Path) -> dict[str, Any]:
    """Return the contents of a root as a value that can be stored: commit, job, and the matrix or the runs' stats."""
    check_inside(root, top)
    runs = _runs(root)
    if len(runs) > MAX_RUNS:
        raise RejectedInput(str(root), f"expected at most {MAX_RUNS} runs, found {len(runs)}")
    jobs = [run / "job.yaml" for run in runs if (run / "job.yaml").exists()] or [root / "job.yaml"]
    data: dict[str, Any] = {"commit": root.name, "path": "/".join(root.parts[-7:-1])}
    data["job"] = _job(read_text(jobs[0], top, MAX_JOB), str(jobs[0]))
    if (root / "matrix.json").exists():
        data["matrix"] = read_json(root / "matrix.json", top)
    else:
        data["runs"] = [read_json(run / "stats.json", top) for run in runs if (run / "stats.json").exists()]
    return data


class _Plain(yaml.BaseLoader):
    """A YAML loader for strings, lists and mappings only: no type guessing, aliases or duplicate keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            problem = "an alias (*name), which is not supported"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(set(keys)) != len(keys):
            twice = next(key for key, count in Counter(keys).items() if count > 1)
            raise yaml.MarkedYAMLError(problem=f"duplicate key {twice[:80]!r}", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def _job(text: str, where: str) -> dict[str, Any]:
    """Parse a job.yaml into strings: its plain values, and one level of mappings below."""
    try:
        loaded = yaml.load(text, _Plain)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise RejectedInput(f"{where}{line}", f"can't read YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise RejectedInput(where, f"can't read YAML: {(str(error) or 'nested too deeply').splitlines()[0]}") from None
    if not isinstance(loaded, dict):
        raise RejectedInput(where, f"expected a mapping, found {type(loaded).__name__}")
    return {
        key: {name: each for name, each in value.items() if isinstance(name, str) and isinstance(each, str)}
        if isinstance(value, dict)
        else value
        for key, value in loaded.items()
        if isinstance(key, str) and isinstance(value, str | dict)
    }
