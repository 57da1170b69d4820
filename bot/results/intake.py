"""The single entry point for results, from the command, the drop directory or the network: whole bisections, and the
files of benchmarks with what is said of them.

Inputs are imported in batches, which bound memory and transactions. Before the database is locked, git trees are
asked for the author, parents and changes of the commits; sides of which the order was only guessed are swapped if a
tree says so.

What is put into the drop directory is imported once it has settled and nobody writes to it any more, then moved to
done/, or to refused/ with the reason beside it. A git bisect log and its samples are imported and moved together. A
crash before the move only repeats the import.
"""

import errno
import fcntl
import logging
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from bot.git import repository
from bot.git.inspection import CommitInspection, inspect
from bot.git.repository import Unreadable
from bot.results import recognise
from bot.results.formats import benchmark_files, bisect_log
from bot.results.formats.benchmark_files import FORMATS, MOST_BYTES, MOST_FILES, File, RunContext, is_version
from bot.results.formats.checks import SHA, checked, checked_release, head_of, read_text, reason_of
from bot.results.recognise import Input, partner_of, read_path
from bot.results.storage import Receipt, ReleaseReceipt, files_taken, take_all, take_kernel_result
from bot.results.values import BUGS, KernelResult, RejectedInput, Result, bug, checked_parse

log = logging.getLogger(__name__)

# --- Batches ---

_BATCH = 200  # results per transaction
_BATCH_BYTES = 4 << 20  # of payload per transaction, roughly, to bound memory


@dataclass(frozen=True, slots=True)
class IntakeAnswer:
    """The outcome of one input: a receipt, or the error, with the bytes if there is no other copy."""

    where: str
    result: Result | KernelResult | None
    receipt: Receipt | ReleaseReceipt | None
    rejection: RejectedInput | None
    raw: bytes = b""


def take_in(inputs: Iterable[Input], trees: Sequence[Path], now: datetime) -> Iterator[IntakeAnswer]:
    """Import every input, in batches; yield the answers in the order of the inputs.

    `trees`: git repositories that are asked for a culprit's author and changes before the database is locked.
    """
    waiting: list[Input] = []
    size = 0
    for submission in inputs:
        waiting.append(submission)
        size += len(submission.result.payload) if submission.result else len(submission.raw)
        if len(waiting) >= _BATCH or size >= _BATCH_BYTES:
            yield from _take(waiting, trees, now)
            waiting, size = [], 0
    if waiting:
        yield from _take(waiting, trees, now)


def _take(inputs: Sequence[Input], trees: Sequence[Path], now: datetime) -> Iterator[IntakeAnswer]:
    results = [submission.result for submission in inputs if isinstance(submission.result, Result)]
    commits = (commit for result in results for commit in (result.culprit, result.parent, result.bad) if commit)
    seen = inspect(trees, list(dict.fromkeys(commit.sha for commit in commits))) if trees else {}
    results = [result.reversed() if _is_reversed(result, seen) else result for result in results]
    taken = iter(zip(results, take_all(results, now, seen), strict=True)) if results else iter(())
    for submission in inputs:
        where, result = submission.where, submission.result
        answer: Receipt | ReleaseReceipt | RejectedInput
        if result is None:
            reason = submission.rejection or RejectedInput(where, "no result found")
            yield IntakeAnswer(where, None, None, reason, submission.raw)
            continue
        if isinstance(result, KernelResult):
            answer = take_kernel_result(result, now)
        else:
            result, answer = next(taken)
        if isinstance(answer, RejectedInput):
            yield IntakeAnswer(where, result, None, answer.at(where), result.payload.encode())
        else:
            yield IntakeAnswer(where, result, answer, None)


def _is_reversed(result: Result, seen: Mapping[str, CommitInspection]) -> bool:
    """Whether the parent of a result was only guessed, and a git tree has it the other way round."""
    if not result.may_be_reversed or result.culprit is None or result.parent is None:
        return False
    parent = seen.get(result.parent.sha)
    return parent is not None and result.culprit.sha in parent.parents


# --- The drop directory ---

_SETTLED = 1.0  # seconds without a change: until then the file may still be written to
_WRITER_WAIT = 60.0  # seconds without a change for which a file is left to whoever has it open
_PARTNER_WAIT = 60.0  # seconds that may pass between a log and its samples
_OWN_FOLDERS = ("done", "refused", "dismissed")


def take_dropped(drop: Path, trees: Sequence[Path], now: datetime) -> int:
    """Import settled files and directories in order of name; return the number of results. Names with a leading dot
    are unfinished and skipped.
    """
    if not drop.is_dir():
        return 0
    taken = 0
    for entry in sorted(path for path in drop.iterdir() if path.name[0] != "." and path.name not in _OWN_FOLDERS):
        try:
            if _is_settled(entry) and not _waits_for_partner(entry):
                taken += _take_entry(entry, trees, now)
        except FileNotFoundError:  # another worker took it
            continue
        except RejectedInput as rejection:
            if entry.exists():  # else another worker took it
                log.error("%s: %s", entry.name, rejection)
        except OSError as error:  # logged; the other entries are still imported
            log.error("%s: %s", entry.name, error)
    return taken


def _is_settled(entry: Path) -> bool:
    youngest = entry.lstat().st_mtime
    if entry.is_dir() and not entry.is_symlink():
        youngest = max([youngest, *(path.lstat().st_mtime for path in entry.rglob("*"))])
    age = time.time() - youngest
    return age >= _SETTLED and (age >= _WRITER_WAIT or not _is_open_for_writing(entry))


def _is_open_for_writing(entry: Path) -> bool:
    """Whether a process of this host still writes to a file: then Linux grants no lease to read it (fcntl(2))."""
    try:
        file = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # a link, or gone: whoever takes it will say so
    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # what tells of a new writer is ignored; SIGIO would kill us
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN  # else a folder, or a file of somebody else
    finally:
        os.close(file)  # which gives the lease back
    return False


def _waits_for_partner(entry: Path) -> bool:
    """Whether a file must wait for its partner: a log and its samples are imported together."""
    if entry.is_symlink() or not entry.is_file():
        return False
    head = head_of(entry, entry.parent)
    if not bisect_log.is_log(head) and not bisect_log.is_samples(head):
        return False
    if partner := partner_of(entry):
        return entry.suffix == ".csv" or not _is_settled(partner)
    return time.time() - entry.lstat().st_ctime < _PARTNER_WAIT  # ctime: when it was renamed, not written


def _take_entry(entry: Path, trees: Sequence[Path], now: datetime) -> int:
    """Import the results of one entry, then move it. A crash before the move only repeats the import."""
    taken = 0
    rejections: list[RejectedInput] = []
    partner = None  # the samples that are imported and moved together with a log
    if entry.is_file() and not entry.is_symlink() and bisect_log.is_log(head_of(entry, entry.parent)):
        partner = partner_of(entry)
    if entry.is_symlink():
        rejections.append(RejectedInput(entry.name, "a symbolic link: put the file itself here"))
    else:
        try:
            for answer in take_in(read_path(entry), trees, now):
                taken += answer.rejection is None
                if answer.rejection:
                    rejections.append(answer.rejection)
                    log.warning("rejected: %s", answer.rejection)
        except BUGS as error:
            log.exception("%s", entry.name)  # a bug: move it out of the way
            rejections.append(bug(entry.name, error))
    with recognise.own_folder(entry.parent, "refused" if rejections else "done") as (folder, handle):
        for path in (entry, partner) if partner else (entry,):
            target = recognise.free_name(folder, path.name, now)
            os.rename(path, target.name, dst_dir_fd=handle)  # first: another worker may have moved it meanwhile
            if rejections and path is entry:
                recognise.write_reasons(target.name, rejections, handle)
    return taken


# --- Benchmark files that somebody hands in, from the command line or over the network, with what is said of them ---
# Commits may be given as any abbreviation or tag that a followed tree knows; the culprit's parent, title and author
# follow from the tree. Without a tree, full shas and a title are needed. Two versions make no report, since nobody
# changed anything between them that could be named: each becomes a point on the curves of its tests.

TOOLS = ", ".join(reader.name for reader in FORMATS)
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


def about_of(texts: Mapping[str, Any], params: Sequence[str]) -> RunContext:
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
    return RunContext(**known, params={name.strip(): value.strip() for name, _, value in pairs})


def read_files(paths: Sequence[Path]) -> list[File]:
    """Return the files at these paths, and those in the directories among them, in order of name.

    Raise RejectedInput with the faults of all paths.
    """
    files: list[File] = []
    faults: list[tuple[str, str]] = []
    room = MOST_BYTES
    for path in paths:
        try:
            top = path if path.is_dir() else path.resolve().parent
            parts = sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]
            if len(files) + len(parts) > MOST_FILES:
                raise RejectedInput(str(path), f"expected at most {MOST_FILES:,} files")
            for part in parts:
                if part.name.startswith(".") and part != path:
                    continue
                text = read_text(part, top, room)
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
    about: RunContext, parent: Sequence[File], culprit: Sequence[File], trees: Sequence[Path], now: datetime
) -> HandedIn:
    """Return a culprit's files against those of its parent as one input; those of two versions as one each."""
    where = "these files"
    if not about.commit and not any(map(benchmark_files.is_job, culprit)):
        fault = "expected the commit that is to blame, or the version of the kernel: --commit SHA"
        return _refused(where, RejectedInput("commit", fault, [("commit", fault)]))
    if about.commit and about.commit == about.base:
        fault = f"expected two kernels, found {about.commit[:60]} twice"
        return _refused(where, RejectedInput("base", fault, [("base", fault)]))
    if is_version(about.commit) and is_version(about.base):
        inputs = [of_kernel(name, about, side, now) for name, side in ((about.base, parent), (about.commit, culprit))]
        return HandedIn(tuple(entry for one in inputs for entry in one.inputs), NO_CULPRIT)
    try:
        resolved = _resolve(about, trees)
        result = checked_parse(lambda: benchmark_files.compare(resolved, parent, culprit, where), where)
        return HandedIn((Input(where, checked(result, where)),))
    except RejectedInput as rejection:
        return _refused(where, rejection)


def of_kernel(name: str, about: RunContext, files: Sequence[File], now: datetime) -> HandedIn:
    """Return one kernel's files as an input."""
    where = f"the files of {name}" if name else "these files"
    try:
        moment = now.isoformat()
        taken = partial(files_taken, about.producer or benchmark_files.PRODUCER)
        result = checked_parse(lambda: benchmark_files.of_kernel(name, about, files, moment, where, taken), where)
        return HandedIn((Input(where, checked_release(result, where)),))
    except RejectedInput as rejection:
        return _refused(where, rejection)


def _refused(where: str, rejection: RejectedInput) -> HandedIn:
    return HandedIn((Input(where, None, rejection.at(where)),))


def _resolve(about: RunContext, trees: Sequence[Path]) -> RunContext:
    """Return what is said with full shas, the culprit's parent and its title. Raise RejectedInput with all faults."""
    commit, base = (name.lower() if SHA.match(name.lower()) else name for name in (about.commit, about.base))
    about = replace(about, commit=commit, base=base)
    faults = [
        (field, f"expected a sha, a tag or a version, found {name[:60]!r}")
        for field, name in (("commit", about.commit), ("base", about.base))
        if name and not _NAME.fullmatch(name)
    ]
    if faults:
        raise RejectedInput(*faults[0], faults)
    shas = _full_shas([name for name in (commit, base) if name], trees)
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
            shas |= {name.lower(): sha for name, sha in repository.resolve(tree, missing).items()} if missing else {}
    return shas


def more_faults(rejection: RejectedInput) -> Iterator[str]:
    """Yield the faults after the first, which the rejection names itself: where each is, and what was expected."""
    for place, why in rejection.faults[1:]:
        yield str(RejectedInput(place, why))
