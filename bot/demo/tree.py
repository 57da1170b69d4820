"""A small git tree, built commit by commit; equal commits always get equal shas."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.git import repository as git
from bot.mail.addresses import Address


class DemoTree:
    """A bare repository with `master` and other branches, created on first use; each commit changes `last-change`, and
    the files that it is given.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not git.is_repository(path):
            path.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare", "--initial-branch=master")

    def commit(
        self,
        title: str,
        author: Address,
        at: datetime,
        body: str = "",
        branch: str = "master",
        files: Mapping[str, str] | None = None,
    ) -> str:
        """Add a commit to a branch and return its sha; a new branch starts at master. `files`: their new texts."""
        parent = self._head(branch) or self._head("master")
        tree = self._tree(parent, {"last-change": f"{title}\n", **(files or {})})
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

    def _tree(self, parent: str, files: Mapping[str, str]) -> str:
        """Return the sha of a tree: that of the parent with some files changed."""
        with TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            if parent:
                self._git("read-tree", parent, extra=index)
            for path, text in files.items():
                blob = self._git("hash-object", "-w", "--stdin", stdin=text.encode())
                self._git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", extra=index)
            return self._git("write-tree", extra=index)

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
