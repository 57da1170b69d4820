"""Benchmark files that somebody hands in, from the command line or over the network, with what is said of them.

Commits may be given as any abbreviation or tag that a followed tree knows; the culprit's parent, title and author
follow from the tree. Without a tree, full shas and a title are needed. Two versions make no report, since nobody
changed anything between them that could be named: each becomes a point on the curves of its tests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.errors import Unreadable
from bot.git import repository as git
from bot.git.inspection import inspect
from bot.results.formats import benchmark_files
from bot.results.formats.benchmark_files import FORMATS, MOST_BYTES, MOST_FILES, About, File, is_version
from bot.results.formats.checks import SHA, checked, checked_release
from bot.results.formats.files import read_text, reason_of
from bot.results.recognise import Input
from bot.results.values import RejectedInput, checked_parse

READS = ", ".join(reader.name for reader in FORMATS)
NO_CULPRIT = (
    "two versions make curves and a comparison, not a report: a report needs a culprit, which deploy/perf-bisect finds"
)
_NAME = re.compile(r"[0-9a-f]{7,40}|v?\d[\w.-]{0,80}")


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Files of a parent and a culprit, or of one kernel; `note`: what the submitter should know."""

    inputs: tuple[Input, ...]
    note: str = ""


TEXTS = ("commit", "base", "title", "author", "suite", "machine", "tree", "branch", "producer", "bisect_log")


def about_of(texts: Mapping[str, Any], params: Sequence[str]) -> About:
    """Return what is said of files: TEXTS and `cpus` by name, and parameters as NAME=VALUE. Raise RejectedInput."""
    known: dict[str, Any] = {name: str(texts.get(name) or "").strip() for name in TEXTS}
    pairs = [text.partition("=") for text in params]
    cpus = str(texts.get("cpus") or "1")
    faults = [("param", f"expected NAME=VALUE, found {text[:60]!r}") for text in params if text.find("=") < 1]
    if not (cpus.isdecimal() and cpus.isascii() and 0 < int(cpus[:9]) < 1_000_000):
        faults.append(("cpus", f"expected a number from 1 to 999999, found {cpus[:20]!r}"))
    if faults:
        raise RejectedInput(*faults[0], faults)
    known["cpus"] = int(cpus) if texts.get("cpus") else None
    return About(**known, params={name.strip(): value.strip() for name, _, value in pairs})


def read_files(paths: Sequence[Path]) -> list[File]:
    """Return the files at these paths, and those in the directories among them, in order of name.

    Raise RejectedInput with the faults of all paths.
    """
    files: list[File] = []
    faults: list[tuple[str, str]] = []
    room = MOST_BYTES
    for path in paths:
        try:
            parts = sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]
            if len(files) + len(parts) > MOST_FILES:
                raise RejectedInput(str(path), f"expected at most {MOST_FILES:,} files")
            for part in parts:
                if part.name.startswith(".") and part != path:
                    continue
                text = read_text(part, part.resolve().parent, room)
                room = max(room - len(text), 1)
                files.append(File(str(part), text))
            if not parts:
                faults.append((str(path), "expected files of a benchmark, found an empty directory"))
        except RejectedInput as rejection:
            faults.append((rejection.where, rejection.why))
        except (OSError, RuntimeError) as error:
            faults.append((str(path), reason_of(error)))
    if faults:
        raise RejectedInput(*faults[0], faults)
    return files


def of_culprit(
    about: About, parent: Sequence[File], culprit: Sequence[File], trees: Sequence[Path], now: datetime
) -> HandedIn:
    """Return a culprit's files against those of its parent as one input; those of two versions as one each."""
    where = "these files"
    if not about.commit and not any(map(benchmark_files.is_job, culprit)):
        fault = "expected the commit that is to blame, or the version of the kernel: --commit SHA"
        return _refused(where, RejectedInput("commit", fault, [("commit", fault)]))
    if is_version(about.commit) and is_version(about.base):
        inputs = [of_kernel(name, about, side, now) for name, side in ((about.base, parent), (about.commit, culprit))]
        return HandedIn(tuple(entry for one in inputs for entry in one.inputs), NO_CULPRIT)
    try:
        resolved = _resolve(about, trees)
        result = checked_parse(lambda: benchmark_files.compare(resolved, parent, culprit, where), where)
        return HandedIn((Input(where, checked(result, where)),))
    except RejectedInput as rejection:
        return _refused(where, rejection)


def of_kernel(name: str, about: About, files: Sequence[File], now: datetime) -> HandedIn:
    """Return one kernel's files as an input."""
    where = f"the files of {name}" if name else "these files"
    try:
        moment = now.isoformat()
        result = checked_parse(lambda: benchmark_files.of_kernel(name, about, files, moment, where), where)
        return HandedIn((Input(where, checked_release(result, where)),))
    except RejectedInput as rejection:
        return _refused(where, rejection)


def _refused(where: str, rejection: RejectedInput) -> HandedIn:
    return HandedIn((Input(where, None, rejection.at(where)),))


def _resolve(about: About, trees: Sequence[Path]) -> About:
    """Return what is said with full shas, the culprit's parent and its title. Raise RejectedInput with all faults."""
    names = [name.lower() if SHA.match(name.lower()) else name for name in (about.commit, about.base) if name]
    faults = [
        (field, f"expected a sha, a tag or a version, found {name[:60]!r}")
        for field, name in (("commit", about.commit), ("base", about.base))
        if name and not _NAME.fullmatch(name)
    ]
    if faults:
        raise RejectedInput(*faults[0], faults)
    shas = _full_shas(names, trees)
    commit, base = shas.get(about.commit.lower(), about.commit), shas.get(about.base.lower(), about.base)
    seen = inspect(trees, [commit]).get(commit) if SHA.match(commit) else None
    if seen is None and about.commit:
        why = (
            "is in none of the followed trees (PERFWORK_TREES)" if trees else "can't be looked up: no tree is followed"
        )
        if not SHA.match(commit):
            faults.append(("commit", f"{about.commit} {why}; expected its full sha, with --title and --author"))
        elif not about.title:
            faults.append(("title", f"{commit[:12]} {why}; expected the commit's title: --title and --author"))
        if not SHA.match(base):
            faults.append(("base", f"expected the full sha of the culprit's parent, found {about.base[:60] or 'none'}"))
    elif seen and not base:
        base = seen.parents[0] if seen.parents else ""
    elif seen and not SHA.match(base):
        faults.append(("base", f"{about.base} is in none of the followed trees; expected the culprit's parent"))
    if faults:
        raise RejectedInput(*faults[0], faults)
    title = about.title or (seen.title if seen else "")
    author = about.author or (f"{seen.author_name} <{seen.author_email}>" if seen and seen.author_email else "")
    return replace(about, commit=commit, base=base, title=title, author=author)


def _full_shas(names: Sequence[str], trees: Sequence[Path]) -> Mapping[str, str]:
    """Return the full sha of each abbreviation or tag, from the first tree that has it."""
    shas: dict[str, str] = {}
    for tree in trees:
        missing = [name for name in names if name.lower() not in shas]
        with suppress(Unreadable, OSError, ValueError):
            shas |= {name.lower(): sha for name, sha in git.resolve(tree, missing).items()} if missing else {}
    return shas


def more_faults(rejection: RejectedInput) -> Iterator[str]:
    """Yield the faults after the first, which the rejection names itself: where each is, and what was expected."""
    for place, why in rejection.faults[1:]:
        yield str(RejectedInput(place, why))
