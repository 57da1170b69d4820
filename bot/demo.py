"""The demo: its kernel tree, its list archive, its SMTP server, and its story.

The story (demo.toml) says who wrote which commit, and what people write to the list. The commits up to
v9.1-rc2 have fixed dates and so fixed shas, which fixtures/results/ refers to: equal commits always get equal shas.

`DemoTree` is a small git tree, built commit by commit. `DemoInbox` is a list archive in public-inbox v2 format,
written mail by mail like a list server does. `serve` starts an SMTP server on loopback that files received mail in
the list archive and relays nothing.
"""

import os
import subprocess
import threading
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.archives.public_inbox import read_epoch
from bot.git import repository
from bot.mail.addresses import Address, parse_addresses
from bot.mail.message import ParsedMail, parse

# --- Kernel tree ---


class DemoTree:
    """A bare repository with `master` and other branches, created on first use; each commit changes `last-change`, and
    the files that it is given.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not repository.is_repository(path):
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
        who = _identity("AUTHOR", author, at) | _identity("COMMITTER", KEEPER, at)
        message = f"{title}\n\n{body}".rstrip() + "\n"
        parents = ("-p", parent) if parent else ()
        sha = self._git("commit-tree", tree, *parents, stdin=message.encode(), extra=who)
        self._git("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def tag(self, name: str, at: datetime | None = None, branch: str = "master") -> None:
        """Create an annotated tag on the head of a branch."""
        who = _identity("COMMITTER", KEEPER, at or datetime.now(UTC))
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

    def _git(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> str:
        return _git(self.path, *arguments, stdin=stdin, environment={"HOME": os.devnull, **(extra or {})})


def _git(path: Path, *arguments: str, stdin: bytes, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        repository.command(path, *arguments),
        input=stdin,
        capture_output=True,
        env={**repository.ENVIRONMENT, **environment},
        check=True,
    )
    return done.stdout.decode().strip()


def _identity(role: str, person: Address, at: datetime) -> dict[str, str]:
    return {
        f"GIT_{role}_NAME": person.name,
        f"GIT_{role}_EMAIL": person.email,
        f"GIT_{role}_DATE": f"{int(at.timestamp())} +0000",
    }


# --- List archive ---


class DemoInbox:
    """Files mail in `path`/git/0.git; like public-inbox, it files each Message-ID once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.epoch = path / "git" / "0.git"
        self._lock = threading.Lock()
        if not repository.is_repository(self.epoch):
            self.epoch.mkdir(parents=True)
            self._git("init", "--quiet", "--bare", "--initial-branch=master")
        mails = read_epoch(self.epoch) if self._head() else ()
        self._known = {parse(mail.raw).message_id for mail in mails}

    def add(self, raw: bytes) -> bool:
        """File one mail; return False if its Message-ID is already there."""
        mail = parse(raw)
        with self._lock:
            if mail.message_id and mail.message_id in self._known:
                return False
            self._known.add(mail.message_id)
            self._commit(raw, mail.subject or "(no subject)", "m")
        return True

    def _commit(self, raw: bytes, subject: str, name: str) -> None:
        blob = self._git("hash-object", "-w", "--stdin", stdin=raw)
        tree = self._git("mktree", stdin=f"100644 blob {blob}\t{name}\n".encode())
        parents = ("-p", head) if (head := self._head()) else ()
        commit = self._git("commit-tree", tree, *parents, stdin=subject.encode())
        self._git("update-ref", "refs/heads/master", commit)

    def _head(self) -> str:
        return self._git("for-each-ref", "--format=%(objectname)", "refs/heads/master")

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        at = datetime.fromtimestamp(1_600_000_000, UTC)  # the same in every run
        who = _identity("AUTHOR", LIST, at) | _identity("COMMITTER", LIST, at)
        return _git(self.epoch, *arguments, stdin=stdin, environment=who)


# --- SMTP server ---


class Catcher:
    """The aiosmtpd handler."""

    def __init__(self, inbox: DemoInbox) -> None:
        self.inbox = inbox
        self.received: list[bytes] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        raw = envelope.original_content or b""
        self.received.append(raw)
        self.inbox.add(raw.replace(b"\r\n", b"\n"))
        return "250 filed"


def serve(inbox: DemoInbox, port: int) -> Controller:
    """Start a server on 127.0.0.1 and return it; `stop()` ends it. Port 0: any free port."""
    controller = Controller(Catcher(inbox), hostname="127.0.0.1", port=port)
    controller.start()
    return controller


# --- Story ---

STORY: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PEOPLE = {name: parse_addresses(address)[0] for name, address in STORY["people"].items()}
DANA, LEE, OTTO = PEOPLE["dana"], PEOPLE["lee"], PEOPLE["otto"]
KEEPER = Address("Tree Keeper", "keeper@dev.example")
LIST = Address("list", "list@lists.example")
DIFF: str = STORY["diff"]
_FIRST = datetime(2026, 9, 6, 12, tzinfo=UTC)


def build_tree(tree: DemoTree) -> dict[str, str]:
    """Create the tree up to v9.1-rc2, with a `next` branch on top; return the shas by title."""
    shas: dict[str, str] = {}
    at = _FIRST
    for step in STORY["master"]:
        at += timedelta(days=1)
        if isinstance(step, str):
            tree.tag(step, at)
        else:
            title, author = step[0], PEOPLE[step[1]]
            shas[title] = tree.commit(title, author, at, _signed(author), files=STORY["files"].get(title))
    for title, name in STORY["next"]:
        at += timedelta(days=1)
        shas[title] = tree.commit(title, PEOPLE[name], at, _signed(PEOPLE[name]), branch="next")
    tree.tag(f"next-{at:%Y%m%d}", at, branch="next")
    return shas


def _signed(author: Address) -> str:
    return f"Signed-off-by: {author.name} <{author.email}>\nReviewed-by: {OTTO.name} <{OTTO.email}>"


def finish_tree(tree: DemoTree, report_ids: dict[str, str], culprits: dict[str, str], now: datetime) -> None:
    """Commit what the authors do about the reports: a fix that closes one, a revert, and v9.1-rc3."""
    closes = report_ids["mm/vmscan: walk cold folios first"]
    tree.commit(
        "mm/vmscan: stop rescanning cold folios twice",
        DANA,
        now,
        f"Closes: https://lore.kernel.org/r/{closes}\nSigned-off-by: {DANA.name} <{DANA.email}>",
    )
    culprit = culprits["ext9: delay the inode table"]
    tree.commit('Revert "ext9: delay the inode table"', DANA, now, f"This reverts commit {culprit}.")
    tree.commit("Linux 9.1-rc3", OTTO, now)
    tree.tag("v9.1-rc3", now)


def from_people(at: datetime) -> Iterator[bytes]:
    """Yield the mails in which people report to the list, as it receives them, a second apart."""
    for number, said in enumerate(STORY["from_people"]):
        message = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=998))
        message["From"], message["To"] = str(PEOPLE[said["author"]]), LIST.email
        message["Date"] = format_datetime(at + timedelta(seconds=number))
        message["Message-ID"] = f"<from-people-{number}@users.example>"
        if "answers" not in said:
            message["Subject"] = said["subject"]
        else:
            first = STORY["from_people"][said["answers"]]
            message.replace_header("To", str(PEOPLE[first["author"]]))
            message["Cc"], message["Subject"] = LIST.email, f"Re: {first['subject']}"
            message["In-Reply-To"] = message["References"] = f"<from-people-{said['answers']}@users.example>"
        message.set_content(said["text"], charset="utf-8", cte="8bit")
        yield message.as_bytes(policy=SMTP_POLICY.clone(linesep="\n"))


def answer(said: Mapping[str, str], report: ParsedMail, at: datetime, number: int) -> bytes:
    """Return a scripted reply as the mail that the list receives; with a subject of its own it begins a new thread."""
    text = said["text"].replace("DIFF", DIFF).replace("REPORT_ID", report.message_id)
    message = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=998))
    message["From"] = str(PEOPLE[said["author"]])
    message["To"] = str(report.author)
    message["Subject"] = said.get("subject", f"Re: {report.subject}")
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<answer-{number}.{report.message_id.partition('@')[0]}@dev.example>"
    if "subject" not in said:
        message["In-Reply-To"] = message["References"] = f"<{report.message_id}>"
    quoted = "\n".join(f"> {line}" for line in report.text.splitlines()[:6])
    intro = "" if "subject" in said else f"On {report.date:%a, %d %b %Y}, {report.author.name} wrote:\n{quoted}\n\n"
    message.set_content(intro + text, charset="utf-8", cte="8bit")
    return message.as_bytes(policy=SMTP_POLICY.clone(linesep="\n"))
