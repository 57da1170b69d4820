"""Mail that is made to be expensive: none takes more than a second and a half of CPU and 120 MB above a small one.

`make fuzz` makes 2,000 of them, PERFWORK_COSTS another number. Each is read in a process of its own, whose CPU and
memory the kernel counts; a second is one of a machine that does YARDSTICK in a quarter of a second.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from unittest.mock import patch

import pytest

import bot.explain
from bot.mail.limits import OverLimit
from bot.mail.settings import BotSettings
from bot.replies.reading import check_limits, understand
from bot.replies.which_report import KnownReport
from tests.bot.mail.test_authentication import DKIM, RECORD, signed
from tests.bot.robot_reports.test_report import INVENTED

MOST_SECONDS, MOST_MB = 1.5, 120
HEAD = (
    "From: Mal <mal@evil.example>", "To: perfbot@bot.example.org", "Date: Wed, 11 Mar 2026 10:15:00 +0100",
    "Message-ID: <a@evil.example>", "Subject: Re: the report",
    "In-Reply-To: <report@bot.example.org>",
)  # fmt: skip
# What parsers look for, alone and beside each other.
PIECES = (
    *(
        "fix ",
        "regression",
        "fix-",
        "%-",
        "0",
        "0,",
        "...\n",
        "…\n",
        "6.1 ",
        "100 MB/s with 6.1, ",
        "slower ",
        "bisected ",
    ),
    *('"', '\\"', '"\\', "(", ")", "<", "<a@b", "a@", "@", "a", "é", "　", " ", "\t", ".", ",", ";", ":", "=", "?"),
    *("=?a?q?x", "=?utf-8?b?YQ==?= ", "[", "]", "1", "0123456789: ", "2026", "10:15", "-", "_", "=", "*", "--b", ">"),
    *("> ", ">>", "|", "re: ", "[PATCH ", "word ", "thanks ", "a. ", "#lkp fix: x", "#lkp ", "On 1 ", " wrote:"),
    *("From: a", "Date: b", "Subject: c", "From " + "0" * 40, "---", "diff --git a b", "--- a", "+++ b", "@@ -1 +1 @@"),
    *(
        "\x0b",
        "https://lore.kernel.org/r/a@b ",
        'Fixes: ("',
        "Closes: ",
        "```",
        "- 8<",
        "->8",
        "- >8 ",
        "±",
        "%",
        "+1.0%",
        "&amp;",
        "<!--",
    ),
    *("<b id=1>", "<p>", "<table>", "<tr>x", "<blockquote>", "<a href=x>", "<a b=c ", "</b>", "<style>", "=\n", "=20"),
)
FIELDS = (
    "From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "List-Id", "Received",
    "Authentication-Results", "DKIM-Signature", "Content-Type", "Content-Disposition", "Delivered-To", "Sender",
)  # fmt: skip
# A report that is tracked, a link to it, and a patch: what is around them is searched for what it says of the report
KNOWN = KnownReport("7d3e91c0a45b", "7d3e91c0a45b" + "0" * 28, "mm: a", ("report@bot.example.org",))
LINK = """https://lore.kernel.org/r/report@bot.example.org

--- a/mm/x.c
+++ b/mm/x.c
@@ -1 +1 @@
-a
+b

"""
BODIES = ("text/plain", "text/plain; format=flowed; delsp=yes", "text/html", "multipart/mixed; boundary=b")


def expensive(seed: int) -> bytes:
    """Return a mail of one or two pieces, again and again: in a header, in the text, in parts."""
    draw = random.Random(seed)
    piece = "".join(draw.choices(PIECES, k=draw.choice((1, 1, 2, 3))))
    size = draw.choice((20_000, 100_000, 900_000, 1_900_000))
    width = draw.choice((60, 300, 5_000, 19_000, size))
    line = (piece * (width // len(piece) + 1))[:width].replace("\n", "=\n")
    if draw.random() < 0.4:
        name = draw.choice(FIELDS)
        field = draw.choice(("", "a; ", "x <a@b>, ", "<", '"')) + (line * (size // width + 1))[: min(size, 900_000)]
        lines = [f"{name}: {field}", *(head for head in HEAD if not head.startswith(f"{name}:"))]
        return "\n".join([*lines, "", "hello"]).encode("utf-8", "replace")
    text = "\n".join([line] * (size // width + 1))
    text = draw.choice(("", "", LINK, "fixes ", "regression ", f"{LINK}Possible fix\n")) + text
    kind = draw.choice(BODIES)
    coding = draw.choice(("8bit", "8bit", "base64", "quoted-printable"))
    if kind.startswith("multipart"):
        inner, number = draw.choice(BODIES), draw.choice((2, 20, 95))
        part = f"--b\nContent-Type: {inner}; name=x.{draw.choice(('txt', 'diff'))}\n\n{text[: 9_000_000 // number]}\n"
        text, coding = part * number + "--b--\n", "8bit"
    body = (
        base64.encodebytes(text.encode("utf-8", "replace")) if coding == "base64" else text.encode("utf-8", "replace")
    )
    heads = [*HEAD, f"Content-Type: {kind}; charset=utf-8", f"Content-Transfer-Encoding: {coding}"]
    raw = "\n".join(heads).encode() + b"\n\n" + body[:9_000_000]  # of more than 10 MB the rest is not parsed
    return signed(raw) if draw.random() < 0.3 else raw


def known() -> dict[str, bytes]:
    """Return mails that a review found expensive."""
    head = "\n".join(HEAD).encode()
    first = "\n".join(HEAD[:-1]).replace("Re: the report", "slower").encode()  # answers nothing
    key = b"DKIM-Signature: v=1; a=ed25519-sha256; d=dev.example; s=s1; c=relaxed/relaxed; h=from:date; bh=AAAA; b="
    return {
        "rules with a letter": head + b"\n\n" + (b"-" * 299 + b"x\n") * 3_000,
        "vertical tabs": head + b"\n\n" + (b"\x0b" * 990 + b"ab\n") * 1_000,
        "blanks in a signature": key + b"AAAA" + b"\n " * 20_000 + b"!\n" + head + b"\n\nhello\n",
        "blanks in a body": signed(head + b"\n\n" + (b"x" + b" " * 999) * 9_000 + b"\n"),
        "runs of blanks in a body": signed(head + b"\n\n" + (b"x" + b" " * 29) * 300_000 + b"\n"),
        "dashes below a fix": first + f"\n\n{LINK}Possible fix\n{'-' * 40}\n".encode(),
        "figures": first + b"\n\n" + (b"0" * 19_900 + b"\n") * 40,
        "quotes below empty lines": head + b"\n" * 20_000 + b"word\n> q\n" * 9_000,
        "ellipses": head + b"\n\n" + b"...\n" * 19_000,
        "blanks behind addresses that bounce": (
            head.replace(b"mal@evil", b"mailer-daemon@evil") + b"\n\n" + (b"a@b.c" + b" " * 980 + b"\n") * 60
        ),
        "addresses that bounce": head.replace(b"mal@evil", b"mailer-daemon@evil") + b"\n\n" + b"a@b.c\n" * 10_000,
        "a long address that bounces": (
            head.replace(b"mal@evil", b"mailer-daemon@evil")
            + b"\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n"
            + b"Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64\n\n"
            + base64.encodebytes(b"Reporting-MTA: dns; x\n\nAction: failed\nFinal-Recipient: rfc822; " + b"a" * 40_000)
            + b"--b--\n"
        ),
        "figures in a robot's table": INVENTED.encode("latin-1") + (b"0" * 399 + b"\n") * 15_000,
        "attached diff": head + b"\nContent-Type: text/x-diff\n\n" + b"--- a/" + b"\n--- a/".join([b"a" * 900] * 9_500),
    }


def cost_of(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of CPU and the MB that some work takes in a child process."""
    child = os.fork()
    if not child:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (20, 25))
            work()
            status = 0
        finally:
            os._exit(status)
    _, status, usage = os.wait4(child, 0)
    assert status == 0 or os.WIFSIGNALED(status), "it raised"
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    return (99.0 if killed else usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024


def yardstick() -> float:
    """Return how many times slower than expected this machine is now, at least 1."""
    began = time.process_time()
    for _ in range(110):
        hashlib.sha256(b"x" * 1_000_000).digest()
    return max(1.0, (time.process_time() - began) / 0.25)


@pytest.mark.fuzz
def test_no_mail_is_expensive(bot_settings: BotSettings) -> None:
    settings = replace(
        bot_settings,
        robots=frozenset({"lkp@intel.com"}),
        trust_anchors=replace(DKIM, key=lambda name: RECORD, signs=lambda domain: False),
    )

    def read(raw: bytes) -> None:
        with suppress(OverLimit):
            reading = understand(raw, settings)
            check_limits(reading)
            # What it means, and whether a person reports something in it; in this process, which is a fork
            with patch.object(bot.explain, "understand", lambda raw, settings: reading):
                list(bot.explain.explain([raw], settings, [KNOWN]))

    small = "\n".join([*HEAD, "", "hello"]).encode()
    dear = []
    number = int(os.environ.get("PERFWORK_COSTS", "20"))
    made = ((f"expensive({seed})", expensive(seed)) for seed in range(number))  # one at a time: they are large
    for name, raw in chain(known().items(), made):
        small_seconds, small_memory = cost_of(lambda: read(small))  # beside each: a fork has what its parent has
        seconds, memory = cost_of(lambda raw=raw: read(raw))  # type: ignore[misc]
        if seconds - small_seconds > MOST_SECONDS * yardstick() or memory - small_memory > MOST_MB:
            dear.append(f"{name}: {seconds - small_seconds:.2f} s, {memory - small_memory:.0f} MB")
    assert not dear, "\n".join(dear)
