"""A git repository built by a test, commit by commit: branches, merges, tags, and ways to rewrite them."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import random
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bot.archives.batch import ReadTally
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.demo import DANA, DIFF, LEE, DemoInbox, DemoTree
from bot.git import repository
from bot.mail.addresses import Address
from bot.mail.settings import BotSettings
from bot.notifications.report import compose_due
from bot.results.intake import take_in
from bot.results.recognise import read_path
from bot.results.storage import Receipt
from bot.upstream.tracking import TrackTally, track
from tracker.domain.events import TreeRole
from tracker.models import OutgoingMail, Report, Tree
from tracker.services import mail_transitions

# --- A simulated environment for tests: a lab that measures, a list with an archive, a git tree ---

__all__ = ["DANA", "DIFF", "LEE", "START", "World", "message_id", "state", "status_text"]

START = datetime(2026, 9, 1, tzinfo=UTC)


class World:
    """A lab, a list and a git tree. Each step advances the clock by an hour, so that all events are ordered."""

    def __init__(self, directory: Path, settings: BotSettings) -> None:
        self.directory, self.settings = directory, settings
        self.inbox = DemoInbox(directory / "inbox")
        self.git = DemoTree(directory / "linux.git")
        self.now = START
        self._mails = 0

    def later(self, hours: float = 1) -> datetime:
        self.now += timedelta(hours=hours)
        return self.now

    # --- git ---
    def commit(self, title: str, body: str = "", author: Address = DANA, branch: str = "master") -> str:
        return self.git.commit(title, author, self.later(), body, branch=branch)

    def tag(self, name: str) -> None:
        self.git.tag(name, self.later())

    def track(self, role: TreeRole = TreeRole.MAINLINE, name: str = "linus") -> TrackTally:
        tree, _ = Tree.objects.update_or_create(name=name, defaults={"path": str(self.git.path), "role": role})
        return track(tree, self.settings, self.later())

    # --- the lab ---
    def result(self, sha: str, title: str, **changes: Any) -> dict[str, Any]:
        """Return a bisect result that reports a regression of 30 %."""
        return {
            "schema": "perf-bisect-result/1",
            "id": f"lab-{sha[:8]}",
            "producer": {"name": "lab"},
            "created_at": self.now.isoformat(),
            "outcome": "conclusive",
            "tree": {"name": "linus", "branch": "master"},
            "good": {"sha": "1" * 40, "describe": "v9.0"},
            "bad": {"sha": "2" * 40, "describe": "v9.1-rc1"},
            "parent": {"sha": "a" * 40, "subject": "mm: prepare"},
            "first_bad": {"sha": sha, "subject": title, "author": {"name": DANA.name, "email": DANA.email}},
            "test": {"suite": "vm-scan", "params": {"nr_task": "50%", "runtime": "30s"}},
            "machine": {"id": "lab7-m1", "cpus": 64},
            "measurements": [
                {
                    "metric": "vm-scan.ops_per_sec",
                    "unit": "1/s",
                    "direction": "higher",
                    "role": "headline",
                    "good": {"samples": [1000, 1010, 990]},
                    "bad": {"samples": [700, 705, 695]},
                }
            ],
            **changes,
        }

    def ingest(self, *results: dict[str, Any]) -> list[Receipt]:
        file = self.directory / "results.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in results))
        answers = list(take_in(read_path(file), [self.git.path], self.now))
        for answer in answers:
            if answer.rejection:
                raise answer.rejection
        return [answer.receipt for answer in answers if answer.receipt]

    def report(self, title: str = "mm/vmscan: walk cold folios first", sha: str = "", **changes: Any) -> Report:
        """Commit a culprit (or take `sha`), ingest its result, and put the report mail into the list's archive."""
        sha = sha or self.commit(title)
        self.ingest(self.result(sha, title, **changes))
        compose_due(self.settings, self.later(), approve_first=False)
        mail = OutgoingMail.objects.get(report__culprit__sha=sha, purpose="report")
        mail_transitions.mark_sent(mail.message_id, self.now, self.now)
        self.inbox.add(bytes(mail.raw))
        return Report.objects.select_related("culprit").get(culprit__sha=sha)

    # --- the list ---
    def mail(
        self,
        author: Address,
        text: str,
        *,
        to: str = "",
        subject: str = "Re: the report",
        message_id: str = "",
        **headers: str,
    ) -> bytes:
        """Return a mail to the list; `to` is the Message-ID that it replies to."""
        self._mails += 1
        mail = EmailMessage(policy=SMTP.clone(max_line_length=998))
        mail["From"] = str(author)
        mail["To"] = self.settings.address
        mail["Subject"] = subject
        mail["Date"] = format_datetime(self.later())
        mail["Message-ID"] = f"<{message_id or f'letter-{self._mails}@dev.example'}>"
        if to:
            mail["In-Reply-To"] = f"<{to}>"
        for name, value in headers.items():
            mail[name.replace("_", "-")] = value
        mail.set_content(text, charset="utf-8", cte="8bit")
        return mail.as_bytes(policy=SMTP.clone(linesep="\n"))

    def post(self, *arguments: Any, **more: Any) -> None:
        self.inbox.add(self.mail(*arguments, **more))

    def read(self, path: Path | None = None) -> ReadTally:
        tally = ReadTally()
        for source in open_sources(str(path or self.inbox.path)):
            tally += read_source(source, self.settings, self.later())
        return tally


def message_id(report: Report) -> str:
    """Return the Message-ID of a report's mail."""
    return OutgoingMail.objects.get(report=report, purpose="report").message_id


def status_text(report: Report) -> str:
    """Return the status text that the triage table shows."""
    return Report.objects.get(pk=report.pk).status


def state(report: Report) -> str:
    return Report.objects.get(pk=report.pk).state


# --- A git repository built by a test, commit by commit: branches, merges, tags, and ways to rewrite them ---


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


# --- A test kernel: one repository with the branches of all trees, each tracked as a tree of its own ---

TITLE = "mm/vmscan: walk cold folios first"
ROBOT = "lkp@robots.example"
ROLES = {"linus": TreeRole.MAINLINE, "next": TreeRole.NEXT, "stable": TreeRole.STABLE}


def closes(report: Report) -> str:
    """Return the trailer that closes a report."""
    return f"Closes: https://lore.kernel.org/r/{message_id(report)}"


class Kernel:
    """One repository with the branches of all trees, each tracked as a tree of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.git = Linux(world.directory / "kernel.git", world.now)
        self.git.commit("Linux 9.0")
        self.git.tag("v9.0")
        for branch in ("mm", "next"):
            self.git.point(branch, self.git.head("master"))

    def walk(self, *names: str) -> TrackTally:
        """Walk these trees, and return the tally of the last one."""
        self.world.now = max(self.world.now, self.git.now) + timedelta(hours=1)
        tally = TrackTally()
        for name in names:
            branch = {"linus": "", "stable": "linux-*"}.get(name, name)
            tree, _ = Tree.objects.update_or_create(
                name=name,
                defaults={
                    "role": ROLES.get(name, TreeRole.MAINTAINER),
                    "path": str(self.git.path),
                    "branches": branch,
                },
            )
            tally = track(tree, self.world.settings, self.world.now, [self.git.path])
        return tally

    def report(self, sha: str, title: str = TITLE, **changes: object) -> Report:
        return self.world.report(title, sha=sha, **changes)

    def merged(self, title: str = TITLE, body: str = "") -> Report:
        """Commit a culprit, tag it v9.1-rc1, and return the report about it."""
        sha = self.git.commit(title, body)
        self.git.tag("v9.1-rc1")
        report = self.report(sha, title)
        self.walk("linus")
        return report


# --- A made history of a kernel, as a stream for git fast-import: topics, merges, tags, clocks that go wrong ---


class History:
    """A stream for fast-import, cut at its tags: topics that start anywhere, merge back now and then, and are
    merged, some by octopuses; roots beside the first one; stable branches with tags off the main line; tags that name
    no version.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pieces: list[str] = []
        self.text: list[str] = []
        self.mark, self.at = 0, 1_600_000_000
        self.minor = self.candidate = 0
        self.main = [self.commit([])]
        self.stable: dict[str, list[int]] = {}  # the commits of each series' branch, its releases among them

    def commit(self, parents: list[int]) -> int:
        self.mark, self.at = self.mark + 1, self.at + self.rng.randint(-3000, 6000)  # clocks go wrong
        lines = [] if parents else ["reset refs/heads/made", ""]
        lines += ["commit refs/heads/made", f"mark :{self.mark}", f"committer K <k@x> {self.at} +0000"]
        lines += [f"data {len(str(self.mark))}", str(self.mark)]
        lines += [f"{'merge' if number else 'from'} :{each}" for number, each in enumerate(parents)]
        self.text.append("\n".join([*lines, "", ""]))
        return self.mark

    def tag(self, name: str, mark: int) -> None:
        """A tag, a day after the one before; what came until then is a piece."""
        when = 1_700_000_000 + len(self.pieces) * 86_400
        heads = [f"reset refs/heads/stable-{base}\nfrom :{line[-1]}\n\n" for base, line in self.stable.items()]
        heads.append(f"reset refs/heads/master\nfrom :{self.main[-1]}\n\n")
        self.text.append(f"tag {name}\nfrom :{mark}\ntagger K <k@x> {when} +0000\ndata 0\n\n")
        self.pieces.append("".join((*self.text, *heads)))
        self.text.clear()

    def topics(self) -> list[int]:
        tops = []
        for _ in range(self.rng.choice((0, 1, 1, 2, 4))):
            top = self.commit([] if self.rng.random() < 0.03 else [self.rng.choice(self.main[-40:])])
            for _ in range(self.rng.randint(0, 5)):
                back = [self.main[-1]] if self.rng.random() < 0.1 else []
                top = self.commit([top, *back])
            tops.append(top)
        return tops

    def advance(self) -> None:
        self.main.append(self.commit([self.main[-1], *self.topics()]))
        for base, line in self.stable.items():
            if self.rng.random() < 0.1:
                line.append(self.commit([line[-1]]))
                self.tag(f"v{base}.{len(line) - 1}", line[-1])
        if self.rng.random() < 0.15:
            self.release()
        elif self.rng.random() < 0.03:
            self.text.append(f"tag v9-odd-{self.mark}\nfrom :{self.mark}\ntagger K <k@x> 1600000000 +0000\ndata 0\n\n")

    def release(self) -> None:
        """Four candidates, then the release, from which a stable branch starts."""
        self.candidate += 1
        if self.candidate <= 4:
            self.tag(f"v9.{self.minor}-rc{self.candidate}", self.main[-1])
            return
        self.tag(f"v9.{self.minor}", self.main[-1])
        self.stable[f"9.{self.minor}"] = [self.main[-1]]
        self.minor, self.candidate = self.minor + 1, 0


def history(seed: int, commits: int) -> list[str]:
    """Pieces of so many commits; the last of them are in no version yet."""
    made = History(seed)
    while made.mark < commits:
        made.advance()
    made.tag(f"v9.{made.minor}-rc{made.candidate + 1}", made.main[-2])
    return made.pieces


def build(repository: Path, pieces: list[str]) -> None:
    """Import them all, or go on with those of before: marks are kept beside the repository."""
    if not repository.exists():
        subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=master", repository], check=True)
    marks = str(repository / "marks")
    known = (f"--import-marks-if-exists={marks}", f"--export-marks={marks}")
    stream = "".join((*pieces, "done\n"))
    command = ["git", "-C", str(repository), "fast-import", "--quiet", "--force", *known]
    subprocess.run(command, input=stream.encode(), check=True)
