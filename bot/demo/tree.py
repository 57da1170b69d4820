"""A small git tree, built commit by commit; equal commits always get equal shas."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bot.git import repository as git
from bot.mail.addresses import Address


class DemoTree:
    """A bare repository with `master` and other branches, created on first use; each commit has one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not git.is_repository(path):
            path.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare", "--initial-branch=master")

    def commit(self, title: str, author: Address, at: datetime, body: str = "", branch: str = "master") -> str:
        """Add a commit to a branch and return its sha; a new branch starts at master."""
        parent = self._head(branch) or self._head("master")
        blob = self._git("hash-object", "-w", "--stdin", stdin=f"{title}\n".encode())
        tree = self._git("mktree", stdin=f"100644 blob {blob}\tlast-change\n".encode())
        who = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_COMMITTER_NAME": "Tree Keeper",
            "GIT_COMMITTER_EMAIL": "keeper@dev.example",
            "GIT_AUTHOR_DATE": f"{int(at.timestamp())} +0000",
            "GIT_COMMITTER_DATE": f"{int(at.timestamp())} +0000",
        }
        message = f"{title}\n\n{body}".rstrip() + "\n"
        parents = ("-p", parent) if parent else ()
        sha = self._git("commit-tree", tree, *parents, stdin=message.encode(), extra=who)
        self._git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def tag(self, name: str, at: datetime | None = None, branch: str = "master") -> None:
        """Create an annotated tag on the head of a branch."""
        at = at or datetime.now(UTC)
        who = {
            "GIT_COMMITTER_NAME": "Tree Keeper",
            "GIT_COMMITTER_EMAIL": "keeper@dev.example",
            "GIT_COMMITTER_DATE": f"{int(at.timestamp())} +0000",
        }
        self._git("tag", "-a", "-m", f"Linux {name}", name, branch, extra=who)

    def _head(self, branch: str) -> str:
        return self._git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def _git(self, *arguments: str, stdin: bytes = b"", extra: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            git.command(self.path, *arguments),
            input=stdin,
            capture_output=True,
            env={**git.ENVIRONMENT, "HOME": os.devnull, **(extra or {})},
            check=True,
        )
        return done.stdout.decode().strip()
