"""A git repository built by a test, commit by commit: branches, merges, tags, and ways to rewrite them."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from bot.git import repository
from bot.mail.addresses import Address
from tests.world import DANA, START


class Linux:
    """A bare repository. Each commit changes its own file, so that a rebase keeps its patch-id. Each step advances the
    clock by an hour.
    """

    def __init__(self, path: Path, now: datetime = START) -> None:
        self.path, self.now = path, now
        self._trees: dict[str, dict[str, bytes]] = {}  # commit → its files
        self._written: set[str] = set()
        shutil.copytree(_empty_repository(), path, dirs_exist_ok=True)

    def __call__(self, *arguments: str, stdin: bytes = b"", **extra: str) -> str:
        done = subprocess.run(
            repository.command(self.path, *arguments),
            input=stdin,
            capture_output=True,
            env={**repository.ENVIRONMENT, "HOME": os.devnull, **self._who(), **extra},
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
        sha = self._object("commit", content)
        self._trees[sha] = dict(files or {})
        self.point(on, sha)
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
        at = f"Keeper <keeper@dev.example> {int(self.now.timestamp())} +0000"
        target = self.head(what) or what
        content = f"object {target}\ntype commit\ntag {name}\ntagger {at}\n\nLinux {name}\n"
        self._ref(f"tags/{name}", self._object("tag", content.encode()))

    def untag(self, name: str) -> None:
        self("update-ref", "-d", f"refs/tags/{name}")

    def point(self, branch: str, sha: str) -> None:
        """Force a branch to another commit."""
        self._ref(f"heads/{branch}", sha)

    def head(self, branch: str) -> str:
        ref = self.path / "refs" / "heads" / branch
        return ref.read_text().strip() if branch and ref.is_file() else ""

    def files(self, commit: str) -> dict[str, bytes]:
        if commit not in self._trees:  # a tag, or a commit that a test wrote by itself
            entries = (line.split("\t") for line in self("ls-tree", "-r", commit).splitlines())
            blobs = {name: repository.run(self.path, "cat-file", "blob", entry.split()[2]) for entry, name in entries}
            self._trees[commit] = blobs
        return self._trees[commit]

    def _ref(self, name: str, sha: str) -> None:
        path = self.path / "refs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{sha}\n")

    def _tree(self, files: Mapping[str, bytes]) -> str:
        entries: list[tuple[str, bytes, str]] = []  # what git sorts by, mode and name, sha
        folders: dict[str, dict[str, bytes]] = {}
        for name, content in files.items():
            folder, slash, rest = name.partition("/")
            if slash:
                folders.setdefault(folder, {})[rest] = content
            else:
                entries.append((name, b"100644 " + name.encode(), self._object("blob", content)))
        entries += [(f"{name}/", b"40000 " + name.encode(), self._tree(inside)) for name, inside in folders.items()]
        content = b"".join(name + b"\0" + bytes.fromhex(sha) for _, name, sha in sorted(entries))
        return self._object("tree", content)

    def _object(self, kind: str, content: bytes) -> str:
        """Write a loose object (gitformat-loose(5)), and return its sha: a process for each would take most of the
        time of the tests.
        """
        raw = f"{kind} {len(content)}\0".encode() + content
        sha = hashlib.sha1(raw).hexdigest()
        if sha not in self._written:
            self._written.add(sha)
            path = self.path / "objects" / sha[:2] / sha[2:]
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(raw, 1))
        return sha

    def mirror(self, directory: Path) -> Path:
        """Clone a mirror of this repository into `directory`."""
        subprocess.run(
            ["git", "clone", "--quiet", "--mirror", self.path, directory], check=True, env=repository.ENVIRONMENT
        )
        return directory


@cache
def _empty_repository() -> Path:
    """An empty bare repository, made once in each process, to be copied."""
    path = Path(mkdtemp(prefix="perfwork-empty-")) / "empty.git"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    command = ["git", "init", "--quiet", "--bare", "--template=", "--initial-branch=master", path]
    subprocess.run(command, check=True, env=repository.ENVIRONMENT)
    return path


def _file(title: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in title)[:60] + ".c"
