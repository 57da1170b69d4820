"""The invented threads of fixtures/replies/threads/ as mails, read as the tracker would read them.

They are here for everybody, so `make reading` needs nothing beside the checkout. No rule and no model was made with
them in view: what they say of a rule is what an unknown thread would say, as far as invented mail can.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from benchmarks.accuracy.replies import LKP, Reply, Thread, state_name
from bot.explain import explain

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "replies" / "threads" / "threads.jsonl"
ROBOT = "robot@lab7.example"
LAB = frozenset({ROBOT, "lena@lab7.example", "ravi@lab7.example"})
_POLICY = SMTP.clone(linesep="\n", max_line_length=998)
_REPORT = """\
Hello,

kernel test robot noticed a {change} of {metric} on:


commit: {sha} ("{title}")
https://git.kernel.org/cgit/linux/kernel/git/torvalds/linux.git master

testcase: {suite}
test machine: 64 threads 2 sockets Example CPU with 256G memory
parameters:

\tnr_task: 50%


Details are as below:
-------------------------------------------------------------------------------------------------->

=========================================================================================
nr_task/tbox_group/testcase:
  50%/lkp-icl-2sp2/{suite}

commit:
  aaaaaaaaaa ("the commit before")
  {sha10} ("{title}")

aaaaaaaaaaaaaaaa {sha27}
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
{old:10} ±  3%     {pct:>6}% {new:10}        {metric}
"""


def load() -> list[dict[str, Any]]:
    """Return the threads of the file; README.md in its folder has the keys."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip()]


def threads(off: Collection[str] = ()) -> list[Thread]:
    """Return the invented threads as read without the rules in `off`."""
    settings = replace(LKP, robots=frozenset({ROBOT}), operators=LAB, rules_off=frozenset(off))
    return [_read(thread, settings) for thread in load()]


def mails_of(thread: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the report and its replies as bytes, as an archive would have them."""
    change = float(thread["change_pct"])
    better = "improvement" if thread.get("improvement") else "regression"
    sha, metric = thread["sha"], thread["metric"]
    text = _REPORT.format(
        change=f"{change:.1f}% {better}",
        metric=metric,
        sha=sha,
        sha10=sha[:10],
        sha27=sha[:27],
        title=thread["title"],
        suite=metric.partition(".")[0],
        old=100_000,
        pct=f"{change:+.1f}",
        new=round(100_000 * (1 + change / 100)),
    )
    subject = f"[linus:master] [{thread['subsystem']}]  {sha[:10]}: {metric} {change:.1f}% {better}"
    yield _mail(thread, 0, f"kernel test robot <{ROBOT}>", thread["author"], subject, text)
    for number, reply in enumerate(thread["replies"], 1):
        yield _mail(thread, number, reply["from"], f"<{ROBOT}>", f"Re: {subject}", reply["text"], reply.get("to", 0))


def _mail(
    thread: Mapping[str, Any], number: int, sender: str, to: str, subject: str, text: str, answers: int | None = None
) -> bytes:
    mail = EmailMessage(policy=_POLICY)
    mail["From"], mail["To"], mail["Cc"] = sender, to, ", ".join(["linux-kernel@vger.kernel.org", *thread["cc"]])
    mail["Subject"], mail["Message-ID"] = subject, f"<{thread['id']}.{number}@threads.example>"
    mail["Date"] = format_datetime(datetime(2026, 3, 11, 12, tzinfo=UTC) + timedelta(hours=number))
    if answers is not None:
        mail["In-Reply-To"] = f"<{thread['id']}.{answers}@threads.example>"
        mail["References"] = f"<{thread['id']}.0@threads.example> <{thread['id']}.{answers}@threads.example>"
    mail.set_content(text)
    return mail.as_bytes()


def _read(thread: Mapping[str, Any], settings: Any) -> Thread:
    report, *replies = explain(mails_of(thread), settings)
    assert report["report"], f"{thread['id']}: its report is not read as one"
    return Thread(
        thread["id"],
        report["subject"],
        thread["state"],
        state_name(report["state"]),
        state_name(report["state_if_accepted"]),
        tuple(
            Reply(thread["id"], {**label, "status_effect": label["effect"]}, reading)
            for label, reading in zip(thread["replies"], replies, strict=True)
        ),
    )
