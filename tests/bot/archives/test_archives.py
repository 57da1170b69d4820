"""Archive formats: each yields its mails completely, in order and once; broken ones give a one-line error."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.files import read_mbox
from bot.archives.prefilter import Passes, Prefilter
from bot.archives.public_inbox import read_epoch
from bot.archives.sources import open_sources
from bot.demo import DemoInbox
from bot.errors import Unreadable
from bot.mail.settings import BotSettings

MAILS = [b"Message-ID: <%d@x>\nSubject: %d\n\nbody %d\n" % (n, n, n) for n in range(5)]
LINE = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"


def as_mbox(mails: list[bytes]) -> bytes:
    return b"".join(LINE + mail + b"\n" for mail in mails)


def raws(path: Path) -> list[bytes]:
    return [mail.raw for source in open_sources(str(path)) for mail in source.mails("", source.goal())]


def test_an_mbox_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_bytes(as_mbox(MAILS))
    (tmp_path / "a.mbox.gz").write_bytes(gzip.compress(as_mbox(MAILS)))
    (tmp_path / "a.mbox.xz").write_bytes(lzma.compress(as_mbox(MAILS)))
    assert raws(tmp_path / "a.mbox") == raws(tmp_path / "a.mbox.gz") == raws(tmp_path / "a.mbox.xz") == MAILS


def test_from_lines_in_a_body_are_given_back_as_sent(tmp_path: Path) -> None:
    body = b"Message-ID: <1@x>\n\n>From here\n>>From there\n\nFrom now on, nothing is split.\n"
    (tmp_path / "a.mbox").write_bytes(LINE + body + b"\n" + LINE + MAILS[0])
    assert raws(tmp_path / "a.mbox") == [body.replace(b">From", b"From"), MAILS[0]]


def test_a_single_mail(tmp_path: Path) -> None:
    (tmp_path / "one.eml").write_bytes(MAILS[0])
    assert raws(tmp_path / "one.eml") == [MAILS[0]]


def test_a_line_that_begins_with_from_in_a_body_with_crlf(tmp_path: Path) -> None:
    body = b"Message-ID: <1@x>\r\n\r\nhello\r\nFrom the numbers of the year 2019\r\nbye\r\n"
    (tmp_path / "a.mbox").write_bytes(b"From a@b Thu Jan  1 00:00:00 1970\r\n" + body)
    assert raws(tmp_path / "a.mbox") == [body]


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.mbox")
    (tmp_path / name).write_bytes(as_mbox(MAILS))
    (source,) = open_sources(str(tmp_path / name))
    assert source.name.endswith("\\xff.mbox")
    assert len(list(source.mails("", ""))) == 5


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert raws(tmp_path / "empty") == []


def test_a_maildir(tmp_path: Path) -> None:
    for folder in ("cur", "new", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "cur" / "1:2,S").write_bytes(MAILS[0])
    (tmp_path / "new" / "2").write_bytes(MAILS[1])
    (tmp_path / "tmp" / "3").write_bytes(MAILS[2])
    (tmp_path / "new" / "4").symlink_to("/etc/passwd")
    assert raws(tmp_path) == MAILS[:2]


def test_a_public_inbox_is_read_from_where_it_stopped(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    for mail in MAILS[:3]:
        inbox.add(mail)
    first = list(read_epoch(inbox.epoch))
    assert [mail.raw for mail in first] == MAILS[:3]
    assert list(read_epoch(inbox.epoch, first[-1].position)) == []
    inbox.add(MAILS[3])
    assert [mail.raw for mail in read_epoch(inbox.epoch, first[-1].position)] == [MAILS[3]]
    assert raws(tmp_path) == raws(inbox.epoch) == MAILS[:4]


def test_a_rewritten_history_is_read_again(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    inbox.add(MAILS[0])
    (source,) = open_sources(str(inbox.epoch))
    assert [mail.raw for mail in source.mails(source.resume(f"7:{'0' * 40}"), source.goal())] == [MAILS[0]]


def test_a_commit_without_a_mail_is_passed_over(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    inbox.add(MAILS[0])
    inbox._commit(MAILS[0], "removed", "d")
    inbox.add(MAILS[1])
    assert raws(tmp_path) == MAILS[:2]


def test_the_same_mail_is_filed_once(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    assert (inbox.add(MAILS[0]), inbox.add(MAILS[0])) == (True, False)
    assert DemoInbox(tmp_path).add(MAILS[0]) is False


def test_a_broken_repository_names_itself_and_what_is_lost(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    for mail in MAILS:
        inbox.add(mail)
    blob = subprocess.check_output(["git", "-C", inbox.epoch, "rev-parse", "HEAD~2:m"], text=True).strip()
    (inbox.epoch / "objects" / blob[:2] / blob[2:]).chmod(0o644)
    (inbox.epoch / "objects" / blob[:2] / blob[2:]).write_bytes(b"junk")
    read: list[bytes] = []
    with pytest.raises(Unreadable, match="1 mail can't be read from git") as error:
        for mail in read_epoch(inbox.epoch):
            read.append(mail.raw)
    assert read == [*MAILS[:2], *MAILS[3:]]  # the others are read all the same
    assert str(inbox.epoch) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda directory: None, "not a mail archive"),
        (lambda directory: (directory / "git" / "0.git").mkdir(parents=True), "not a git repository"),
        (lambda directory: directory.rmdir(), "no such file"),
    ],
    ids=["an empty directory", "an empty epoch", "nothing"],
)
def test_what_is_no_archive_is_said_in_a_line(tmp_path: Path, make: object, expected: str) -> None:
    directory = tmp_path / "place"
    directory.mkdir()
    make(directory)  # type: ignore[operator]
    with pytest.raises(Unreadable, match=expected):
        open_sources(str(directory))


def test_a_gzip_that_is_cut_off_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(as_mbox([bytes(300) + mail * 200 for mail in MAILS]), compresslevel=0)
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    read: list[bytes] = []
    with pytest.raises(Unreadable, match="fetch the file again"):
        for mail in read_mbox(tmp_path / "a.gz"):
            read.append(mail.raw)
    assert len(read) >= 2


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_any_bytes_in_an_mbox_are_split_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    file = tmp_path_factory.mktemp("junk") / "a.mbox"
    file.write_bytes(as_mbox(parts))
    mails = list(read_mbox(file))
    # Junk may hold separators of its own, and never more than one a "From " in it.
    assert len(parts) <= len(mails) <= len(parts) + b"".join(parts).count(b"From ")


# --- the prefilter ---

BOT = BotSettings(
    address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), base_url="https://perf.example.org"
)


@pytest.mark.parametrize(
    ("raw", "passes"),
    [
        (b"From: a@b\nMessage-ID: <x@y>\n\nhello", False),
        (b"From: a@b\nIn-Reply-To: <known@x>\n\nhello", True),
        (b"From: a@b\nReferences: <other@x>\n <known@x>\n\nhello", True),
        (b"From: a@b\r\nReferences: <known@x>\r\n\r\nhello", True),
        (b"From: a@b\nTo: PerfBot+7d3e91c0a45b28f6@bot.example.org\n\nhello", True),
        (b"From: a@b\nTo: perfbot+7d3e91c0a45b28f6@evil.example\n\nhello", False),
        (b"From: kernel test robot\n <LKP@intel.com>\n\nhello", False),
        (b"From: kernel test robot\n <LKP@intel.com>\n\nwe noticed a -1.0% regression of x.y on:", True),
        (b"From: robot <LKP@intel.com>\nContent-Transfer-Encoding: quoted-printable\n\nnoti=\nced a", True),
        (b"From: a@b\nCc: lkp@intel.com\n\nhello", False),
        (b"From: a@b\n\nCloses: https://lore.kernel.org/oe-lkp/known@x/", True),
        (b"From: a@b\n\nLink: https://lkml.kernel.org/r/known%40x.", True),
        (b"From: a@b\n\nLink: https://lore.kernel.org/r/with%2Fslash@x/T/#u", True),
        (b"From: a@b\n\nLink: https://lore.kernel.org/r/other@x", False),
        (b"From: a@b\n\nIn-Reply-To: <known@x>", False),
        (b"From: a@b\n\nsee https://perf.example.org/report/3b1f0c9d2e/", True),
        (b"Content-Transfer-Encoding: Quoted-Printable\n\nCloses: https://lore.kernel.org/oe-lkp/kno=\nwn@x", True),
        (b"Content-Transfer-Encoding: quoted-printable\n\nCloses: https://lore.kernel.org/oe-lkp/kno=\nne@x", False),
        (b"From: a@b\nContent-Transfer-Encoding: base64\n\nQ2xvc2VzOg==", False),
        (
            b"Content-Transfer-Encoding: base64\n\nQ2xvc2VzOiBodHRwczovL2xvcmUua2VybmVsLm9yZy9vZS1sa3Ava25vd25AeC8K",
            True,
        ),
        (b"", False),
    ],
)
def test_the_prefilter(raw: bytes, passes: bool) -> None:
    assert (Prefilter({b"known@x", b"with/slash@x"}, BOT).passes(raw) is not Passes.NOT) is passes


def test_the_prefilter_learns() -> None:
    prefilter = Prefilter(set(), BOT)
    prefilter.tracked.add(b"new@x")
    assert prefilter.passes(b"In-Reply-To: <new@x>\n\n") is Passes.TRACKED
