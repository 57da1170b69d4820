"""What a mail may cost: each limit just kept and just passed, and what nobody has thought of."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from bot.archives import sandbox
from bot.archives.sandbox import Limits, Sandbox, Unparsable
from bot.archives.sources import open_sources
from bot.mail import limits
from bot.mail.limits import OverLimit, bounded, cut, exceeded, exceeded_by_markup
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.replies.reading import Reading, check_limits, understand
from tests.support.databases import ROOT

HEAD = b"From: Dana <dana@dev.example>\nTo: perfbot@bot.example.org\nSubject: Re: x\nMessage-ID: <1@dev.example>\n"
SETTINGS = BotSettings(address="perfbot@bot.example.org")


def nested(depth: int) -> bytes:
    opened = b"".join(b"--b%d\nContent-Type: multipart/mixed; boundary=b%d\n\n" % (n, n + 1) for n in range(depth - 1))
    return HEAD + b"Content-Type: multipart/mixed; boundary=b0\n\n" + opened + b"--b%d\n\nwords\n" % (depth - 1)


def within(depth: int) -> bytes:
    return HEAD + b"".join(b"Content-Type: message/rfc822\n\nFrom: a@x\n" for _ in range(depth)) + b"\nwords\n"


def parts(number: int) -> bytes:
    part = b"--b\nContent-Type: text/plain\n\nwords\n"
    return HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n" + part * number + b"--b--\n"


def bare_parts(number: int) -> bytes:
    return HEAD + b'Content-Type: multipart/mixed;\n boundary="b"\n\n' + b"--b\n\nwords\n" * number + b"--b--\n"


def lines(number: int) -> bytes:
    return HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" + b"\n" * (number - 9) + b"\n--b--"


def headers(number: int) -> bytes:
    return HEAD + b"X-A: 1\n" * (number - 4) + b"\nwords\n"


def line(length: int) -> bytes:
    return HEAD + b"\n" + b"x" * length + b"\n" + b"y\n" * 10


@pytest.mark.parametrize(
    ("kept", "past", "reason"),
    [
        (nested(20), nested(21), "21 multiparts and messages; at most 20"),
        (within(20), within(21), "21 multiparts and messages; at most 20"),
        (parts(99), parts(101), "102 parts; at most 100"),
        (bare_parts(99), bare_parts(102), "parts; at most 100"),
        (lines(300_000), lines(300_001), "300,001 lines in parts; at most 300,000"),
        (
            lines(299_000).replace(b"y=b", b'y*0="b"').replace(b"\n" * 9, b"\r" * 9),
            lines(300_002).replace(b"y=b", b'y*0="b"').replace(b"\n" * 9, b"\r" * 9),
            "300,001 lines in parts; at most 300,000",
        ),
        (headers(1000), headers(1001), "1,001 headers; at most 1,000"),
        (line(2_000_000), line(2_000_001), "a line of 2,000,001 bytes; at most 2,000,000"),
        (HEAD + b"X: " + b"x" * 900_000 + b"\n\n", HEAD + b"X: " + b"x" * 1_000_000 + b"\n\n", "a header of 1,000,1"),
    ],
    ids=["nested", "within", "parts", "parts without a type", "lines", "lines of CR", "headers", "line", "header"],
)
def test_a_limit_is_kept_and_passed(kept: bytes, past: bytes, reason: str) -> None:
    assert exceeded(kept) == ""
    assert reason in exceeded(past)
    reading = understand(past, SETTINGS)
    with pytest.raises(OverLimit, match=reason[:20]):
        check_limits(reading)
    assert reading.own_text == ""
    check_limits(understand(kept, SETTINGS))


def test_report_addresses_are_counted() -> None:
    tags = [f"perfbot+{number:016x}@bot.example.org" for number in range(21)]
    for number, over in ((20, False), (21, True)):
        reading = understand(HEAD + b"Cc: " + ",\n ".join(tags[:number]).encode() + b"\n\nwords\n", SETTINGS)
        assert len(reading.tags) == 20
        if over:
            with pytest.raises(OverLimit, match="21 report addresses"):
                check_limits(reading)
        else:
            check_limits(reading)


@pytest.mark.parametrize(
    ("markup", "reason"),
    [
        ("<p>" * 20_000, ""),
        ("<p>" * 20_001, "more than 20,000 HTML tags"),
        ("<p " + " ".join(f"a{n}=1" for n in range(5_000)) + ">", ""),
        ("<p " + " ".join(f"a{n}=1" for n in range(8_000)) + ">", "HTML tags with 8,000 attributes"),
        ("<p " + "/".join(f"a{n}" for n in range(8_000)) + ">", "HTML tags with 8,000 attributes"),
        ("<p " + "".join(f"a{n}=''" for n in range(8_000)) + ">", "HTML tags with"),
        ('<img src="data:image/png;base64,' + "A" * 500_000 + '">', ""),
        ("a < b " * 10_000, ""),
    ],
)
def test_markup_is_counted_before_it_is_parsed(markup: str, reason: str) -> None:
    assert exceeded_by_markup(markup).startswith(reason)
    assert bool(exceeded_by_markup(markup)) is bool(reason)


EXPENSIVE = {
    "attributes": b"Content-Type: text/html\n\n<p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">",
    "three tags": b"Content-Type: text/html\n\n" + (b"<p " + b" ".join(b"a%d" % n for n in range(40_000)) + b">") * 3,
    "entities": b"Content-Type: text/html\n\n" + b"&amp;&#x41;&notin;" * 400_000,
    "flowed": b"Content-Type: text/plain; format=flowed\n\n" + b"a \n" * 2_600_000,
    "tabs": b"\n" + b"\t" * 5_000_000,
    "token": b"\n" + b"a" * 1_900_000 + b"\n" + b"@" * 1_900_000,
    "references": b"References: " + b" ".join(b"<%d@x>" % n for n in range(9_000)) + b"\n\nwords\n",
    "one id": b"References: <" + b"a" * 100_000 + b"@x>\n\nwords\n",
    "recipients": b"Cc: " + b", ".join(b"a%d@x.example" % n for n in range(50_000)) + b"\n\nwords\n",
    "quotes": b"\n" + b"> " * 900_000 + b"\n" + b">" * 900_000 + b"\nwords\n",
    "colons": b"\n" + b"On 1 wrote:\n\n" * 100_000,
    "commands": b"\n" + b"#lkp note: x\n" * 200_000,
    "base64": b"Content-Transfer-Encoding: base64\n\n" + b"QUFB\n" * 1_500_000,
    "quoted-printable": b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=41=\n" * 1_500_000,
    "encoded words": b"X: y\nSubject: " + b"=?utf-8?q?=41?= " * 10_000 + b"\n\nwords\n",
    "rules": b"\n" + b"-----\n" * 200_000,
    "diff": b"\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n" + b"@@ -1 +1 @@\n" * 200_000,
}


@pytest.mark.parametrize("name", EXPENSIVE)
def test_no_mail_takes_more_than_a_moment(name: str) -> None:
    head = HEAD.replace(b"Subject: Re: x\n", b"") if b"Subject:" in EXPENSIVE[name][:20] else HEAD
    before = time.process_time()
    understand(head + EXPENSIVE[name], SETTINGS)
    assert time.process_time() - before < 4.0, "a second on an idle machine; four leave room for a busy one"


def test_long_ids_are_bounded_and_stay_two() -> None:
    one, two = ("x" * 600 + end + "@dev.example" for end in ("1", "2"))
    assert bounded(b"short@x") == b"short@x"
    assert bounded(b"y" * 500) == b"y" * 500
    assert len({bounded(one.encode()), bounded(two.encode())}) == 2
    wide = "\u4e2d" * 876 + "@dev.example"
    mail = parse(f"From: a@x\nMessage-ID: <{wide}>\nIn-Reply-To: <{one}>\n\nx\n".encode())
    answer = parse(f"From: a@x\nIn-Reply-To: <{wide}>\n\nx\n".encode())
    assert len(mail.message_id.encode()) <= 500
    assert answer.in_reply_to == (mail.message_id,)
    assert mail.in_reply_to == (bounded(one.encode()).decode(),)


def test_the_end_of_a_long_text_is_cut_and_parts_are_not() -> None:
    text = HEAD + b"\n" + b"words of a line\n" * 400_000
    assert len(cut(text)) <= limits.MAX_BODY + len(HEAD) + 2
    assert text.startswith(cut(text))
    split = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n" + b"words of a line\n" * 400_000
    assert cut(split) == split


# --- The child process ---


def broken(kills: bytes, how: Any) -> Any:
    def reads(raw: bytes, settings: BotSettings) -> Reading:
        if kills in raw:
            how()
        return understand(raw, settings)

    return reads


def endless() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    "how",
    [
        endless,
        lambda: bytearray(2 << 30),
        lambda: __import__("os")._exit(3),
        lambda: __import__("os").kill(__import__("os").getpid(), 9),
    ],
    ids=["CPU", "memory", "exit", "kill"],
)
def test_the_one_mail_that_kills_the_reader_is_found(monkeypatch: pytest.MonkeyPatch, how: Any) -> None:
    raws = [HEAD + b"\nmail %d\n" % number for number in range(9)]
    monkeypatch.setattr(sandbox, "understand", broken(b"mail 6", how))
    reader = Sandbox(SETTINGS, Limits(cpu=0, memory=256 << 20))
    readings = [reader.understand(raw) for raw in raws]
    assert [isinstance(reading, Reading) for reading in readings] == [number != 6 for number in range(9)]
    assert "reading it took more than" in str(readings[6])
    assert [reading.own_text for reading in readings if isinstance(reading, Reading)][:2] == ["mail 0", "mail 1"]


def test_a_child_that_ends_by_itself_is_replaced_and_no_mail_blamed() -> None:
    raws = [HEAD + b"\nmail %d\n" % number for number in range(5)]
    before = children()
    reader = Sandbox(SETTINGS, Limits(calls=2))
    for raw in raws:
        reading = reader.understand(raw)
        assert isinstance(reading, Reading)
        for child in children() - before:
            os.kill(child, signal.SIGKILL)
    assert all(isinstance(reading, Reading) for reading in map(reader.understand, raws))
    assert len(children() - before) == 1
    del reader
    assert not children() - before


def children() -> set[int]:
    """The pids of this process's children."""
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_a_fresh_child_knows_what_was_learnt_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[str] = []
    monkeypatch.setattr(sandbox, "understand", lambda raw, settings: tuple(learnt))
    reader = Sandbox(SETTINGS)
    assert reader.understand(b"mail") == ()
    learnt.append("a key")
    reader.close()
    assert reader.understand(b"mail") == ("a key",)


def test_what_a_parser_raises_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise LookupError("no such charset")

    monkeypatch.setattr(sandbox, "understand", broken(b"mail", fails))
    error = Sandbox(SETTINGS).understand(HEAD + b"\nmail\n")
    assert isinstance(error, Unparsable)
    assert str(error) == "LookupError: no such charset"


def test_a_bomb_is_refused_and_what_is_before_it_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    from bot.archives import files
    from bot.git.repository import Unreadable

    monkeypatch.setattr(files, "_UNPACKED", 1 << 20)
    path = tmp_path / "bomb.mbox.gz"
    mail = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + HEAD + b"\nwords\n\n"
    path.write_bytes(gzip.compress(mail + mail + b"\0" * (64 << 20)))
    (source,) = open_sources(str(path))
    positions = []
    with pytest.raises(Unreadable, match="MB unpacked"):
        for mail_read in source.mails("", ""):
            positions.append(mail_read.position)  # it raises in the end
    assert len(positions) == 2
    (tmp_path / "large.mbox.gz").write_bytes(gzip.compress(mail * 3000))
    assert len(list(open_sources(str(tmp_path / "large.mbox.gz"))[0].mails("", ""))) == 3000


def test_the_page_has_the_limits() -> None:
    page = (ROOT / "docs/archives.md").read_text()
    for limit in (
        limits.MAX_HEAD, limits.MAX_HEADERS, limits.MAX_LINE, limits.MAX_PARTS, limits.MAX_NESTING, limits.MAX_TAGS,
        limits.MAX_REPORTS, limits.MAX_EFFECTS, limits.MAX_ID, limits.MAX_LINES_OF_PARTS,
    ):  # fmt: skip
        assert f"| {limit:,} " in page, limit
