"""The script of the demo: who wrote which commit, what the lab measured, and how people reply.

The commits up to v9.1-rc2 have fixed dates and so fixed shas, which fixtures/results/ refers to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from bot.demo.tree import DemoTree
from bot.mail.addresses import Address
from bot.mail.message import ParsedMail

DANA = Address("Dana Brook", "dana@dev.example")
LEE = Address("Lee Park", "lee@dev.example")
MIRA = Address("Mira Novak", "mira@dev.example")
OTTO = Address("Otto Lind", "otto@dev.example")
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
    """A scripted reply: culprit of the report, author, and a function from the report's Message-ID to the text."""

    culprit: str
    author: Address
    text: Callable[[str], str]
    subject: str = ""  # "": a reply in the thread; else a new thread


def _fixed_text(text: str) -> Callable[[str], str]:
    return lambda report_id: text


ANSWERS: list[DemoAnswer] = [
    DemoAnswer(
        "mm/vmscan: walk cold folios first",
        DANA,
        _fixed_text("Thanks for the report. We scan the list twice. Does this help?\n\n" + DIFF),
    ),
    DemoAnswer(
        "fs/ledger: flush the journal in one go",
        LEE,
        _fixed_text(
            "I can see it here as well, the journal lock is held across the flush now.\nI need to think about it."
        ),
    ),
    DemoAnswer(
        "net/relay: batch small frames",
        LEE,
        _fixed_text("We trade latency for throughput here, as the changelog says.\n\n#lkp expected"),
    ),
    DemoAnswer(
        "x86/entry: save one more register",
        OTTO,
        _fixed_text("The lab's microcode was older on one side.\n\n#lkp invalid"),
    ),
    DemoAnswer(
        "lib/sort: choose the middle pivot",
        MIRA,
        lambda report_id: (
            "The pivot is chosen from the wrong half.\n\n"
            f"Closes: https://lore.kernel.org/r/{report_id}\n"
            f"Signed-off-by: {MIRA.name} <{MIRA.email}>\n---\n" + DIFF.replace("mm/vmscan.c", "lib/sort.c")
        ),
        subject="[PATCH] lib/sort: choose the pivot from the right half",
    ),
    DemoAnswer(
        "sched/fair: wake on the idle sibling",
        MIRA,
        _fixed_text("The sibling is dearer than I thought. Can you test this patch?\n\n" + CHEAPER_WAKEUPS),
    ),
    DemoAnswer(
        "ext9: delay the inode table",
        DANA,
        _fixed_text("Could you please test this patch?\n\n" + FOR_ANOTHER_TREE),
    ),
    DemoAnswer(
        "slab: align the per-CPU queue",
        ROBOT,
        _fixed_text(
            "Hello:\n\nThis patch was applied to slab/slab.git (for-next)\nby Otto Lind <otto@dev.example>:\n\n"
            "Here is the summary with links:\n  - slab: keep the queue in one line\n"
            "    https://git.example.org/slab/c/9f2c71d4e8ab\n"
        ),
    ),
]


def answer(each: DemoAnswer, report: ParsedMail, at: datetime, number: int) -> bytes:
    """Return a reply as the mail that the list receives."""
    message = EmailMessage(policy=SMTP.clone(max_line_length=998))
    message["From"] = str(each.author)
    message["To"] = str(report.author)
    message["Subject"] = each.subject or f"Re: {report.subject}"
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<answer-{number}.{report.message_id.partition('@')[0]}@dev.example>"
    if not each.subject:
        message["In-Reply-To"] = message["References"] = f"<{report.message_id}>"
    quoted = "\n".join(f"> {line}" for line in report.text.splitlines()[:6])
    intro = "" if each.subject else f"On {report.date:%a, %d %b %Y}, {report.author.name} wrote:\n{quoted}\n\n"
    message.set_content(intro + each.text(report.message_id), charset="utf-8", cte="8bit")
    return message.as_bytes(policy=SMTP.clone(linesep="\n"))
