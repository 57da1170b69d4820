"""A git repository built by a test, commit by commit: branches, merges, tags, and ways to rewrite them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.git import repository as git
from bot.mail.addresses import Address
from tests.world import DANA, START


class Linux:
    """A bare repository. Each commit changes its own file, so that a rebase keeps its patch-id. Each step advances the
    clock by an hour.
    """

    def __init__(self, path: Path, now: datetime = START) -> None:
        self.path, self.now = path, now
        path.mkdir(parents=True, exist_ok=True)
        self("init", "--quiet", "--bare", "--initial-branch=master")

    def __call__(self, *arguments: str, stdin: bytes = b"", **extra: str) -> str:
        done = subprocess.run(
            git.command(self.path, *arguments),
            input=stdin,
            capture_output=True,
            env={**git.ENVIRONMENT, "HOME": os.devnull, **self._who(), **extra},
            check=True,
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def _who(self) -> dict[str, str]:
        keeper = {"GIT_COMMITTER_NAME": "Keeper", "GIT_COMMITTER_EMAIL": "keeper@dev.example"}
        return {**keeper, "GIT_COMMITTER_DATE": f"{int(self.now.timestamp())} +0000"}

    def commit(
        self,
        title: str,
        body: str = "",
        *,
        on: str = "master",
        parents: Sequence[str] | None = None,
        author: Address = DANA,
        authored: datetime | None = None,
        change: str = "",
    ) -> str:
        """Add a commit to a branch, and return its sha. It changes the file `change`, or one named after the title."""
        self.now += timedelta(hours=1)
        above = [self.head(on)] if parents is None else list(parents)
        above = [each for each in above if each]
        files = self.files(above[0]) if above else {}
        for other in above[1:]:
            files = self.files(other) | files
        if len(above) < 2:
            files = {**files, change or _file(title): f"{title}\n".encode()}
        return self.write(f"{title}\n\n{body}".encode(), above, files, author=author, authored=authored, on=on)

    def write(
        self,
        message: bytes,
        parents: Sequence[str] = (),
        files: Mapping[str, bytes] | None = None,
        *,
        author: Address = DANA,
        authored: datetime | None = None,
        on: str = "master",
        raw_dates: tuple[int, int] | None = None,
        encoding: str = "",
    ) -> str:
        """Write any bytes as a commit, even what git would repair or reject, and return its sha."""
        written, committed = raw_dates or (int((authored or self.now).timestamp()), int(self.now.timestamp()))
        lines = [f"tree {self._tree(files or {})}", *(f"parent {each}" for each in parents)]
        lines += [f"author {author.name} <{author.email}> {written} +0000"]
        lines += [f"committer Keeper <keeper@dev.example> {committed} +0000"]
        lines += [f"encoding {encoding}"] if encoding else []
        content = "\n".join(lines).encode() + b"\n\n" + message
        sha = self("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=content)
        self("update-ref", f"refs/heads/{on}", sha)
        return sha

    def merge(self, title: str, *others: str, on: str = "master", body: str = "") -> str:
        """Merge branches or commits; two or more make an octopus merge."""
        return self.commit(title, body, on=on, parents=[self.head(on), *(self.head(each) or each for each in others)])

    def pick(self, sha: str, *, on: str, body: str = "") -> str:
        """Cherry-pick a commit to another branch: same patch, author and author date."""
        name, email, at, title = self("log", "-1", "--format=%an%x00%ae%x00%at%x00%s", sha).split("\0")
        own = self("log", "-1", "--format=%b", sha)
        written = datetime.fromtimestamp(int(at), tz=self.now.tzinfo)
        return self.commit(title, body or own, on=on, author=Address(name, email), authored=written)

    def tag(self, name: str, what: str = "master") -> None:
        self.now += timedelta(hours=1)
        self("tag", "-a", "-m", f"Linux {name}", name, self.head(what) or what)

    def untag(self, name: str) -> None:
        self("update-ref", "-d", f"refs/tags/{name}")

    def point(self, branch: str, sha: str) -> None:
        """Force a branch to another commit."""
        self("update-ref", f"refs/heads/{branch}", sha)

    def head(self, branch: str) -> str:
        return self("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def files(self, sha: str) -> dict[str, bytes]:
        lines = self("ls-tree", sha).splitlines()
        return {name: self._cat(entry.split()[2]) for entry, name in (line.split("\t") for line in lines)}

    def _cat(self, sha: str) -> bytes:
        return git.run(self.path, "cat-file", "blob", sha)

    def _tree(self, files: Mapping[str, bytes]) -> str:
        blobs = {name: self("hash-object", "-w", "--stdin", stdin=content) for name, content in files.items()}
        if any("/" in name for name in files):
            return self._deep_tree(blobs)
        entries = "".join(f"100644 blob {sha}\t{name}\0" for name, sha in sorted(blobs.items()))
        return self("mktree", "-z", stdin=entries.encode())

    def _deep_tree(self, blobs: Mapping[str, str]) -> str:
        """Write a tree with subdirectories, using a temporary index."""
        with TemporaryDirectory() as directory:
            index = {"GIT_INDEX_FILE": f"{directory}/index"}
            entries = "".join(f"100644 {sha}\t{name}\0" for name, sha in blobs.items())
            self("update-index", "-z", "--index-info", stdin=entries.encode(), **index)
            return self("write-tree", **index)

    def mirror(self, directory: Path) -> Path:
        """Clone a mirror of this repository into `directory`."""
        subprocess.run(["git", "clone", "--quiet", "--mirror", self.path, directory], check=True, env=git.ENVIRONMENT)
        return directory


def _file(title: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in title)[:60] + ".c"
