"""Run git as a subprocess: without user configuration or prompts, and with one-line errors."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from bot.errors import Unreadable
from bot.runtime.processes import start_child

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
    # The lab's proxies and its ssh agent.
    **{
        name: os.environ[name]
        for name in ("http_proxy", "https_proxy", "no_proxy", "SSH_AUTH_SOCK")
        if name in os.environ
    },
}


# What a repository's own configuration could make git run.
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "log.showSignature=false")
_REMOTE = ("fetch", "clone", "ls-remote")
_TERMINATE_TIMEOUT = 3.0  # seconds


def command(repository: Path, *arguments: str) -> list[str]:
    """Return a git command line for this repository, whoever owns it: whatever its configuration says, git runs none of
    its hooks and monitors, and trusts no other repository.

    The directory is explicit: for a broken repository, git would otherwise look for another in the folders above.
    """
    inner = repository / ".git"
    directory = inner if inner.exists() else repository
    # A partial clone would fetch what it lacks, by a command of its configuration.
    remote = () if _subcommand(arguments) in _REMOTE else ("protocol.allow=never",)
    settings = (f"safe.directory={directory.absolute()}", *_SETTINGS, *remote)
    return ["git", *(word for each in settings for word in ("-c", each)), f"--git-dir={directory}", *arguments]


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
    out = subprocess.PIPE
    try:
        return start_child(
            line, stdin=stdin, stdout=out, stderr=stderr, env=env, bufsize=bufsize, new_session=new_session
        )
    except FileNotFoundError as missing:
        raise Unreadable("git is not installed: install the package git") from missing


def run(
    repository: Path,
    *arguments: str,
    stdin: bytes = b"",
    timeout: float = 600,
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


def pipe(
    repository: Path, first: Sequence[str], second: Sequence[str], *, stdin: bytes = b"", timeout: float = 600
) -> bytes:
    """Return the output of a second git command that reads the first one's, without holding the latter in memory.

    Raises Unreadable. `timeout` is in seconds.
    """
    with (
        tempfile.TemporaryFile() as stdin_file,
        start(repository, *first, stdin=_filled(stdin_file, stdin), stderr=subprocess.DEVNULL) as producer,
        start(repository, *second, stdin=producer.stdout) as consumer,
    ):
        try:
            out, stderr = consumer.communicate(timeout=timeout)
            producer.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise Unreadable(f"{repository}: git {_subcommand(first)} took more than {timeout:.0f} s") from error
        finally:
            consumer.kill()
            producer.kill()
    if consumer.returncode or producer.returncode:
        raise Unreadable(f"{repository}: git {_subcommand(first)}: {error_line(stderr)}")
    return out


def _filled(file: IO[bytes], content: bytes) -> IO[bytes]:
    """Return the file with its content written, ready to be read from the beginning."""
    file.write(content)
    file.seek(0)
    return file


def _subcommand(arguments: Sequence[str]) -> str:
    """Return the git subcommand; arguments may begin with settings ("-c name=value")."""
    return next((each for each in arguments if not each.startswith("-") and "=" not in each), "")


def error_line(stderr: bytes) -> str:
    """Return the line of git's error output that says what is wrong."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "failed")


def is_repository(path: Path) -> bool:
    """Whether the directory is a git repository, bare or with a work tree."""
    return any((top / "HEAD").is_file() and (top / "objects").is_dir() for top in (path, path / ".git"))
