"""public-inbox v2 epochs: a git repository where each commit's file `m` is one mail.

public-inbox-v2-format(5). One `git rev-list` names the commits, one `git cat-file --batch` prints the mails.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bot import git
from bot.archive.raw import RawMail
from bot.english import counted
from bot.errors import Unreadable


def epochs(path: Path) -> list[Path]:
    """The epochs of an inbox directory (git/0.git, git/1.git, …) in order, or the one that `path` is."""
    if git.is_repository(path):
        return [path]
    numbered = [each for each in (path / "git").glob("*.git") if each.stem.isdigit()]
    return sorted(numbered, key=lambda each: int(each.stem))


def read_epoch(epoch: Path, cursor: str = "") -> Iterator[RawMail]:
    """The mails that were added after the commit `cursor`, oldest first; positions are commits.

    Where `cursor` is no longer part of the history, all of it is read again. A commit without a mail
    (a deletion) is passed over.
    """
    since = [f"^{cursor}"] if cursor and _holds(epoch, cursor) else []
    commits = git.run(epoch, "rev-list", "--reverse", "HEAD", *since).decode("ascii").split()
    if not commits:
        return
    reader = subprocess.Popen(
        git.command(epoch, "cat-file", "--batch", "--buffer"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=git.ENVIRONMENT,
    )
    assert reader.stdin
    assert reader.stdout
    assert reader.stderr
    feeder = threading.Thread(target=_feed, args=(reader.stdin, commits), daemon=True)
    feeder.start()
    try:
        yield from _mails(epoch, reader.stdout, commits)
        if reader.wait() != 0:
            raise Unreadable(f"{epoch}: git cat-file: {git.last_words(reader.stderr.read())}")
    finally:
        reader.kill()
        reader.wait()
        feeder.join(timeout=5)


def _holds(epoch: Path, commit: str) -> bool:
    try:
        git.run(epoch, "merge-base", "--is-ancestor", commit, "HEAD")
    except Unreadable:
        return False
    return True


def _feed(pipe: IO[bytes], commits: list[str]) -> None:
    try:
        with pipe:
            for commit in commits:
                pipe.write(f"{commit}:m\n".encode("ascii"))
    except (BrokenPipeError, ValueError):
        pass  # the reader ended early, and says why itself


def _mails(epoch: Path, pipe: IO[bytes], commits: list[str]) -> Iterator[RawMail]:
    lost: list[str] = []
    for commit in commits:
        head = pipe.readline().split()
        if not head:
            raise Unreadable(f"{epoch}: git ended at commit {commit}; `git fsck` there says what is broken")
        if head[-1] == b"missing":
            if git.run(epoch, "ls-tree", commit, "m"):  # no deletion: the mail is named, but can't be had
                lost.append(commit)
            continue
        size = int(head[-1])
        raw = pipe.read(size)
        pipe.read(1)  # the line end that cat-file adds
        if len(raw) < size:
            raise Unreadable(f"{epoch}: the mail of commit {commit} is cut off; `git fsck` there says what is broken")
        if head[1] == b"blob":
            yield RawMail(raw, commit)
    if lost:
        raise Unreadable(
            f"{epoch}: {counted(len(lost), 'mail')} can't be had from git, the first is that of commit {lost[0]};"
            " mend the repository (`git fsck`), then `read --again`"
        )
