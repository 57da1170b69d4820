"""The demo: its kernel tree, its list archive, its SMTP server, and its script.

The script says who wrote which commit, what the lab measured, and how people reply. The commits up to v9.1-rc2 have
fixed dates and so fixed shas, which fixtures/results/ refers to: equal commits always get equal shas.

`DemoTree` is a small git tree, built commit by commit. `DemoInbox` is a list archive in public-inbox v2 format,
written mail by mail like a list server does. `serve` starts an SMTP server on loopback that files received mail in
the list archive and relays nothing.
"""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.archives.public_inbox import read_epoch
from bot.git import repository
from bot.mail.addresses import Address
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


# --- Script ---

DANA = Address("Dana Brook", "dana@dev.example")
LEE = Address("Lee Park", "lee@dev.example")
MIRA = Address("Mira Novak", "mira@dev.example")
OTTO = Address("Otto Lind", "otto@dev.example")
KEEPER = Address("Tree Keeper", "keeper@dev.example")
LIST = Address("list", "list@lists.example")
ROBOT = Address("patchwork-bot", "patchwork-bot+relay@dev.example")

# The commits in order, as (title, author); a plain string is a tag.
MASTER: list[tuple[str, Address] | str] = [
    ("Linux 9.0", OTTO),
    "v9.0",
    ("mm/vmscan: walk cold folios first", DANA),
    ("fs/ledger: flush the journal in one go", LEE),
    ("block: merge plugged requests later", MIRA),
    ("Linux 9.1-rc1", OTTO),
    "v9.1-rc1",
    ("net/relay: batch small frames", LEE),
    ("sched/fair: wake on the idle sibling", MIRA),
    ("x86/entry: save one more register", OTTO),
    ("ext9: delay the inode table", DANA),
    ("locking/lane: spin a little longer", MIRA),
    ("Linux 9.1-rc2", OTTO),
    "v9.1-rc2",
]
NEXT: list[tuple[str, Address]] = [
    ("lib/sort: choose the middle pivot", MIRA),
    ("slab: align the per-CPU queue", LEE),
]
_FIRST = datetime(2026, 9, 6, 12, tzinfo=UTC)


# The sources that patches in the demo are for, by the title of the commit that changes them.
_VMSCAN = """\
static unsigned long shrink_cold(struct lruvec *lruvec)
{
	unsigned long seen = 0;

	while (!list_empty(&cold)) {
		seen += rescan(&cold);
		cond_resched();
	}
	return seen;
}
"""
_WAKE = """\
/* The price of a wakeup, in ns. */
#define WAKE_COST {price}

int wake_idle_sibling(struct task_struct *p)
{{
	return pick_idle(p, WAKE_COST);
}}
"""
FILES: dict[str, dict[str, str]] = {
    "Linux 9.0": {"mm/vmscan.c": _VMSCAN, "lib/sort.c": _VMSCAN, "sched/fair.c": _WAKE.format(price=40)},
    "sched/fair: wake on the idle sibling": {"sched/fair.c": _WAKE.format(price=56)},
}


def build_tree(tree: DemoTree) -> dict[str, str]:
    """Create the tree up to v9.1-rc2, with a `next` branch on top; return the shas by title."""
    shas: dict[str, str] = {}
    at = _FIRST
    for step in MASTER:
        at += timedelta(days=1)
        if isinstance(step, str):
            tree.tag(step, at)
        else:
            title, author = step
            shas[title] = tree.commit(title, author, at, _signed(author), files=FILES.get(title))
    for title, author in NEXT:
        at += timedelta(days=1)
        shas[title] = tree.commit(title, author, at, _signed(author), branch="next")
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


DIFF = """\
diff --git a/mm/vmscan.c b/mm/vmscan.c
index 2f4a1c7b9d03..81c0de55a2f9 100644
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -2211,6 +2211,7 @@ static unsigned long shrink_cold(struct lruvec *lruvec)
 	unsigned long seen = 0;

 	while (!list_empty(&cold)) {
-		seen += rescan(&cold);
+		if (!seen)
+			seen += rescan(&cold);
 		cond_resched();
 	}
"""


CHEAPER_WAKEUPS = """\
diff --git a/sched/fair.c b/sched/fair.c
--- a/sched/fair.c
+++ b/sched/fair.c
@@ -1,5 +1,5 @@
 /* The price of a wakeup, in ns. */
-#define WAKE_COST 56
+#define WAKE_COST 40

 int wake_idle_sibling(struct task_struct *p)
 {
"""
FOR_ANOTHER_TREE = """\
diff --git a/fs/ext9/inode.c b/fs/ext9/inode.c
--- a/fs/ext9/inode.c
+++ b/fs/ext9/inode.c
@@ -310,3 +310,3 @@ static int ext9_table(struct super_block *sb)
 	spin_lock(&sbi->lock);
-	delay_table(sb);
+	read_table(sb);
 	spin_unlock(&sbi->lock);
"""


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """A scripted reply: culprit of the report, author, and the text, with REPORT_ID for the report's Message-ID."""

    culprit: str
    author: Address
    text: str
    subject: str = ""  # "": a reply in the thread; else a new thread


ANSWERS: list[DemoAnswer] = [
    DemoAnswer(
        "mm/vmscan: walk cold folios first",
        DANA,
        "Thanks for the report. We scan the list twice. Does this help?\n\n" + DIFF,
    ),
    DemoAnswer(
        "fs/ledger: flush the journal in one go",
        LEE,
        "I can see it here as well, the journal lock is held across the flush now.\nI need to think about it.",
    ),
    DemoAnswer(
        "net/relay: batch small frames",
        LEE,
        "We trade latency for throughput here, as the changelog says.\n\n#lkp expected",
    ),
    DemoAnswer(
        "x86/entry: save one more register",
        OTTO,
        "The lab's microcode was older on one side.\n\n#lkp invalid",
    ),
    DemoAnswer(
        "lib/sort: choose the middle pivot",
        MIRA,
        (
            "The pivot is chosen from the wrong half.\n\n"
            "Closes: https://lore.kernel.org/r/REPORT_ID\n"
            f"Signed-off-by: {MIRA.name} <{MIRA.email}>\n---\n" + DIFF.replace("mm/vmscan.c", "lib/sort.c")
        ),
        subject="[PATCH] lib/sort: choose the pivot from the right half",
    ),
    DemoAnswer(
        "sched/fair: wake on the idle sibling",
        MIRA,
        "The sibling is dearer than I thought. Can you test this patch?\n\n" + CHEAPER_WAKEUPS,
    ),
    DemoAnswer(
        "ext9: delay the inode table",
        DANA,
        "Could you please test this patch?\n\n" + FOR_ANOTHER_TREE,
    ),
    DemoAnswer(
        "slab: align the per-CPU queue",
        ROBOT,
        (
            "Hello:\n\nThis patch was applied to slab/slab.git (for-next)\nby Otto Lind <otto@dev.example>:\n\n"
            "Here is the summary with links:\n  - slab: keep the queue in one line\n"
            "    https://git.example.org/slab/c/9f2c71d4e8ab\n"
        ),
    ),
]


PAT = Address("Pat Penguin", "pat@users.example")
RUTH = Address("Ruth Rossi", "ruth@users.example")
SLOW_BACKUP = """\
Hello,

since I upgraded from 9.0 to 9.1-rc2 my nightly backup takes much longer: the
sequential read throughput of fio dropped from 830 MB/s to 410 MB/s. It is an
AMD EPYC 7313 with two NVMe disks, and nothing else has changed.

#regzbot introduced: v9.0..v9.1-rc2
"""
SLOW_BUILD = """\
Hi all,

kernbench shows a performance regression of 12% on my Intel Xeon 6338 with
9.1-rc2. 9.1-rc1 is fine. Is this known?
"""
# What people report on the list: who writes, the subject, the text, and which of these mails it answers.
FROM_PEOPLE: list[tuple[Address, str, str, int | None]] = [
    (PAT, "[REGRESSION] 9.0 -> 9.1-rc2: sequential reads are half as fast", SLOW_BACKUP, None),
    (OTTO, "", "Can you bisect it? Which file system is this?", 0),
    (RUTH, "performance regression in 9.1-rc2: kernbench", SLOW_BUILD, None),
]


def from_people(at: datetime) -> Iterator[bytes]:
    """Yield the mails of FROM_PEOPLE as the list receives them, a second apart."""
    for number, (author, subject, text, answered) in enumerate(FROM_PEOPLE):
        message = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=998))
        message["From"], message["To"] = str(author), LIST.email
        message["Date"] = format_datetime(at + timedelta(seconds=number))
        message["Message-ID"] = f"<from-people-{number}@users.example>"
        if answered is None:
            message["Subject"] = subject
        else:
            first_author, first_subject, *_ = FROM_PEOPLE[answered]
            message.replace_header("To", str(first_author))
            message["Cc"], message["Subject"] = LIST.email, f"Re: {first_subject}"
            message["In-Reply-To"] = message["References"] = f"<from-people-{answered}@users.example>"
        message.set_content(text, charset="utf-8", cte="8bit")
        yield message.as_bytes(policy=SMTP_POLICY.clone(linesep="\n"))


def answer(reply: DemoAnswer, report: ParsedMail, at: datetime, number: int) -> bytes:
    """Return a reply as the mail that the list receives."""
    message = EmailMessage(policy=SMTP_POLICY.clone(max_line_length=998))
    message["From"] = str(reply.author)
    message["To"] = str(report.author)
    message["Subject"] = reply.subject or f"Re: {report.subject}"
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<answer-{number}.{report.message_id.partition('@')[0]}@dev.example>"
    if not reply.subject:
        message["In-Reply-To"] = message["References"] = f"<{report.message_id}>"
    quoted = "\n".join(f"> {line}" for line in report.text.splitlines()[:6])
    intro = "" if reply.subject else f"On {report.date:%a, %d %b %Y}, {report.author.name} wrote:\n{quoted}\n\n"
    message.set_content(intro + reply.text.replace("REPORT_ID", report.message_id), charset="utf-8", cte="8bit")
    return message.as_bytes(policy=SMTP_POLICY.clone(linesep="\n"))
