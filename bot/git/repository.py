"""Run git as a subprocess, fetch mirrors, and read the refs of a tree.

Every git process of Perfwork is started here: without prompts, whoever owns the repository, and without the hooks and
monitors that its configuration names. Only those that talk to a server read the configuration of the user and of the
machine, for its proxies and certificates. An error is one line with the repository and what git said, raised as
Unreadable.

A mirror is fetched before it is walked, if a remote is set. The refs of a tree are its followed branches, and its
tags in order: kernel versions, and the days of linux-next. A shallow clone is refused, since it lacks the history.
"""

import os
import pwd
import re
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from bot.processes import start_child
from tracker.domain import versions


class Unreadable(Exception):
    """An archive or a git repository can't be read, or only in part."""


class Busy(Unreadable):
    """Another worker is reading it: not a fault; try again later."""


# --- Values of git ---


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that names a kernel version or a day of linux-next, its commit, and when it was made."""

    name: str
    commit: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LogCommit:
    """A commit of the log. `at` is the commit time; `title` is on one line, `message` is complete."""

    sha: str
    parents: tuple[str, ...]
    at: datetime
    authored_at: datetime
    author_email: str
    author_name: str
    title: str
    message: str = ""

    @property
    def authored(self) -> tuple[int, str]:
        """What a rebase keeps: the author time in seconds, and the author's address."""
        return int(self.authored_at.timestamp()), self.author_email


def parse_timestamp(seconds: str | bytes | int) -> datetime:
    """Return a time from git; the epoch if it is out of range."""
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def clamped_seconds(seconds: bytes) -> int:
    """Return a time from git, limited to 41 bits for an array of integers; 0 if it is not a number."""
    try:
        return max(0, min(int(seconds), 1 << 40))
    except ValueError:
        return 0


# --- Running git ---

_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "SSH_AUTH_SOCK")  # the lab's proxies and its ssh agent
_WITHOUT_CONFIGURATION = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    **_WITHOUT_CONFIGURATION,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
    **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
}


# What a repository's own configuration could make git run.
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "log.showSignature=false")
_REMOTE = ("fetch", "clone", "ls-remote")  # what talks to a server
_TIMEOUT, _TERMINATE_TIMEOUT = 600.0, 3.0  # seconds


def command(repository: Path, *arguments: str) -> list[str]:
    """Return a git command line for this repository, whoever owns it: whatever its configuration says, git runs none of
    its hooks and monitors, and trusts no other repository.

    The directory is explicit: for a broken repository, git would otherwise look for another in the folders above.
    """
    inner = repository / ".git"
    directory = inner if os.access(inner, os.F_OK) else repository
    # A partial clone would fetch what it lacks, by a command of its configuration.
    remote = () if _subcommand(arguments) in _REMOTE else ("protocol.allow=never",)
    settings = (f"safe.directory={directory.absolute()}", *_SETTINGS, *remote)
    return ["git", *(word for setting in settings for word in ("-c", setting)), f"--git-dir={directory}", *arguments]


def start(
    repository: Path,
    *arguments: str,
    stdin: int | IO[bytes] | None = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.PIPE,
    env: Mapping[str, str] = ENVIRONMENT,
    bufsize: int = -1,
    new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start git, its output in a pipe; every git process of Perfwork is started here. Raises Unreadable without git."""
    line = command(repository, *arguments)
    if _subcommand(arguments) in _REMOTE:
        env = {name: value for name, value in env.items() if name not in _WITHOUT_CONFIGURATION}
        env["HOME"] = os.environ.get("HOME", "/")
    try:
        streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": stderr}
        return start_child(line, **streams, env=env, bufsize=bufsize, start_new_session=new_session)
    except FileNotFoundError as missing:
        raise Unreadable("git is not installed: install the package git") from missing


def run(
    repository: Path,
    *arguments: str,
    stdin: bytes = b"",
    timeout: float = _TIMEOUT,
    env: Mapping[str, str] = ENVIRONMENT,
) -> bytes:
    """Return the output of a git command. Raises Unreadable with the repository and git's error message.

    `timeout` is in seconds.
    """
    # A process group of its own: helpers of a fetch would otherwise survive git, and keep its pipes open.
    with start(repository, *arguments, env=env, new_session=True) as running:
        try:
            out, stderr = running.communicate(stdin, timeout)
        except subprocess.TimeoutExpired as error:
            _end(running)
            raise Unreadable(f"{repository}: git {_subcommand(arguments)} took more than {timeout:.0f} s") from error
        except BaseException:
            _end(running)
            raise
    if running.returncode:
        raise Unreadable(f"{repository}: git {_subcommand(arguments)}: {error_line(stderr)}")
    return out


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a git process and all that it started; it gets a moment to remove its locks."""
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            running.wait(_TERMINATE_TIMEOUT)
        os.killpg(running.pid, signal.SIGKILL)


def pipe(repository: Path, first: Sequence[str], second: Sequence[str], *, stdin: bytes) -> bytes:
    """Return the output of a second git command that reads the first one's, without holding the latter in memory.

    Raises Unreadable.
    """
    with tempfile.TemporaryFile() as stdin_file:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        with (
            start(repository, *first, stdin=stdin_file, stderr=subprocess.DEVNULL) as producer,
            start(repository, *second, stdin=producer.stdout) as consumer,
        ):
            try:
                out, stderr = consumer.communicate(timeout=_TIMEOUT)
                producer.wait(_TIMEOUT)
            except subprocess.TimeoutExpired as error:
                raise Unreadable(f"{repository}: git {_subcommand(first)} took more than {_TIMEOUT:.0f} s") from error
            finally:
                consumer.kill()
                producer.kill()
    if consumer.returncode or producer.returncode:
        raise Unreadable(f"{repository}: git {_subcommand(first)}: {error_line(stderr)}")
    return out


def _subcommand(arguments: Sequence[str]) -> str:
    """Return the git subcommand; arguments may begin with settings ("-c name=value")."""
    return next((argument for argument in arguments if not argument.startswith("-") and "=" not in argument), "")


def error_line(stderr: bytes) -> str:
    """Return the line of git's error output that says what is wrong."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "failed")


def is_repository(path: Path) -> bool:
    """Whether the directory is a git repository, bare or with a work tree, that this user may read."""
    try:
        return any((top / "HEAD").is_file() and (top / "objects").is_dir() for top in (path, path / ".git"))
    except PermissionError:
        return False


def complaint(path: Path) -> str:
    """Return why a repository can't be read, and what to do."""
    if not may_read(path):
        return f"the user {_own_name()} may not read it: correct its owner or its mode"
    return "not a git repository: clone it again" if path.exists() else "there is no such directory: clone it again"


def may_read(path: Path) -> bool:
    """Whether this user may read a file or directory, or see that it is not there. Path's own tests raise instead."""
    if os.access(path, os.F_OK):
        return os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))
    return os.access(path.parent, os.X_OK) if os.access(path.parent, os.F_OK) else may_read(path.parent)


def hidden_part(mirror: Path) -> Path | None:
    """Return the part of a mirror that this user may not read, itself or an epoch of it, if there is one."""
    if not may_read(mirror):
        return mirror
    parts = (mirror / "git", *mirror.glob("git/*.git")) if mirror.is_dir() else ()
    return next((part for part in parts if not may_read(part)), None)


def _own_name() -> str:
    """Return the name of the user as whom this runs, or its number; the environment may still name another."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


# --- Fetch ---

# To talk to another repository: give up on a silent server before our own timeout, never ask for a password, and run
# no command that a URL names.
REMOTE_SETTINGS = (
    "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "core.sshCommand=ssh -o BatchMode=yes",
    "-c", "protocol.ext.allow=never",
)  # fmt: skip
# The commit-graph file makes every later walk faster.
_FETCH_SETTINGS = (*REMOTE_SETTINGS, "-c", "fetch.writeCommitGraph=true", "-c", "gc.autoDetach=false")
_FETCH_REMOTE = re.compile(r"remote\..+\.url")
_MIRROR_REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


def fetch(repository: Path, timeout: float) -> bool:
    """Fetch from `origin`, or from the only remote, including forced pushes and deletions. Return False if there is no
    such remote. Takes at most `timeout` seconds.

    In a clone with a work tree only remote-tracking branches move, and no local tag is deleted.
    """
    config: dict[str, str] = {}
    with suppress(Unreadable):
        listed = run(repository, "config", "--local", "--null", "--list").decode("utf-8", "replace")
        pairs = (entry.partition("\n") for entry in listed.split("\0") if entry)
        config = {name: value for name, _, value in pairs}
    remotes = [name.split(".", 1)[1].removesuffix(".url") for name in config if _FETCH_REMOTE.fullmatch(name)]
    remote = "origin" if "origin" in remotes else (remotes[0] if len(remotes) == 1 else "")
    if not remote:
        return False
    options = ("fetch", "--quiet", "--upload-pack=git-upload-pack", "--no-recurse-submodules", "--no-write-fetch-head")
    bare = config.get("core.bare") == "true"
    refspecs = _MIRROR_REFSPECS if bare and f"remote.{remote}.fetch" not in config else ()
    tags = () if bare else ("--tags",)
    run(repository, *_FETCH_SETTINGS, *options, "--prune", "--force", *tags, "--", remote, *refspecs, timeout=timeout)
    return True


# --- Refs ---

_FIELDS = (
    "%(refname)", "%(objectname)", "%(objecttype)", "%(*objectname)", "%(*objecttype)",
    "%(creatordate:unix)", "%(HEAD)", "%(symref)",
)  # fmt: skip
_NEXT = re.compile(r"next-(\d{8})\Z")  # the day tags of linux-next
_LIKE_A_VERSION = re.compile(r"v\d")
_MAIN = ("master", "main")


@dataclass(frozen=True, slots=True)
class Refs:
    """The branches by name, the one that HEAD or the remote's HEAD points to ("" for none), and the tags in order."""

    branches: Mapping[str, str]
    main: str
    versions: tuple[Tag, ...]
    days: tuple[Tag, ...]
    odd: tuple[str, ...] = ()  # tags that look like versions but aren't

    def followed(self, pattern: str, *, every: bool) -> dict[str, str]:
        """Return the branches that match a pattern like `linux-6.*`; without one, all of them or only the main one."""
        if pattern:
            return {name: sha for name, sha in self.branches.items() if fnmatchcase(_short(name), pattern)}
        if every:
            return dict(self.branches)
        return {self.main: self.branches[self.main]} if self.main else {}


def _short(ref: str) -> str:
    """Return the name of a branch without its ref prefix: for-next of refs/remotes/origin/for-next."""
    kind, _, rest = ref.removeprefix("refs/").partition("/")
    return rest.partition("/")[2] if kind == "remotes" else rest


def read_refs(repository: Path) -> Refs:
    """Read all refs with one git call. In a clone with a remote only the remote's branches count, since local work is
    not published.

    Raise Unreadable if the repository is shallow or broken.
    """
    if (repository / "shallow").exists() or (repository / ".git" / "shallow").exists():
        raise Unreadable(f"{repository}: a shallow clone lacks the history: run `git fetch --unshallow` in it")
    out = run(repository, "for-each-ref", f"--format={'%01'.join(_FIELDS)}", "refs/heads", "refs/remotes", "refs/tags")
    local: dict[str, str] = {}
    remote: dict[str, str] = {}
    marked = {"local": "", "remote": ""}
    tags: list[Tag] = []
    odd: list[str] = []
    for line in out.decode("utf-8", "replace").splitlines():
        name, own, kind, peeled, peeled_kind, at, head, symref = line.split("\x01")
        if name.startswith("refs/tags/"):
            name = name.removeprefix("refs/tags/")
            tag = _tag(repository, name, (own, kind), (peeled, peeled_kind), at)
            tags += [tag] if tag else []
            odd += [name] if not tag and _LIKE_A_VERSION.match(name) else []
        elif symref:
            marked["remote"] = symref if name == "refs/remotes/origin/HEAD" else marked["remote"]
        elif name.startswith("refs/heads/"):
            local[name] = own
            marked["local"] = name if head == "*" else marked["local"]
        else:
            remote[name] = own
    branches, main = (remote, marked["remote"]) if remote else (local, marked["local"])
    if main not in branches:  # HEAD points nowhere
        ends = [name for usual in _MAIN for name in branches if name.rpartition("/")[2] == usual]
        main = (ends or sorted(branches) or [""])[0]
    pairs = [(version, tag) for tag in tags if (version := versions.parse(tag.name))]
    in_order = tuple(tag for _, tag in sorted(pairs, key=lambda pair: pair[0]))
    days = sorted((tag for tag in tags if _NEXT.match(tag.name)), key=lambda tag: tag.name)
    return Refs(branches, main, in_order, tuple(days), tuple(odd))


def _tag(repository: Path, name: str, own: tuple[str, str], peeled: tuple[str, str], at: str) -> Tag | None:
    """Return a tag that points to a commit and names a version or a day; None for any other."""
    if not (versions.parse(name) or _NEXT.match(name)):
        return None
    commit, kind = peeled if peeled[0] else own
    if kind == "tag":  # a tag of a tag: git peels only one
        commit, kind = resolve(repository, [own[0]]).get(own[0], ""), "commit"
    return Tag(name, commit, parse_timestamp(at)) if commit and kind == "commit" else None


def revisions(shas: Iterable[str], without: Iterable[str] = ()) -> bytes:
    """Return commits for git's --stdin, a line each, and those whose history is left out."""
    return "".join((*(f"{sha}\n" for sha in shas), *(f"^{sha}\n" for sha in without))).encode("ascii")


def resolve(repository: Path, shas: Collection[str]) -> dict[str, str]:
    """Return the full sha for each sha or abbreviation that the repository holds as a commit."""
    requested = sorted(shas)
    names = revisions(f"{sha}^{{commit}}" for sha in requested)
    out = run(repository, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=names)
    lines = [line.partition(" ") for line in out.decode("ascii", "replace").splitlines()]
    return {sha: name for sha, (name, _, kind) in zip(requested, lines, strict=True) if kind == "commit"}
