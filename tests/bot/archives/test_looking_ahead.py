"""The first look at an epoch in a process of its own: the same mails, errors that arrive, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import SimpleQueue
from pathlib import Path

import billiard
import pytest

from bot.archives import reader
from bot.archives.files import RawMail
from bot.archives.prefilter import Prefilter
from bot.archives.public_inbox import EpochSource
from bot.archives.reader import Prefiltered, read_ahead
from bot.errors import Unreadable
from bot.mail.settings import BotSettings

BOT = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}))
MAILS = 1200


@pytest.fixture
def epoch(tmp_path: Path) -> EpochSource:
    """An epoch in which every tenth mail is for us, and the others answer each other."""
    path = tmp_path / "0.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", path], check=True)
    commits = []
    for number in range(MAILS):
        to = "perfbot@bot.example.org" if number % 10 == 0 else "list@lists.example.org"
        mail = f"From: a@b.example\nTo: {to}\nMessage-ID: <{number}@b.example>\nSubject: mail {number}\n"
        mail += f"In-Reply-To: <{number - 1}@b.example>\n\nwords, {'x' * (number % 700)}\n"
        commits.append("commit refs/heads/master\ncommitter a <a@b> 0 +0000\ndata 1\nm\n")
        commits.append(f"M 100644 inline m\ndata {len(mail)}\n{mail}\n")
    subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input="".join(commits).encode(), check=True)
    return EpochSource(path, str(path))


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FEW", 100)
    monkeypatch.setattr(reader, "_AT_ONCE", 30)


def read(epoch: EpochSource) -> list[Prefiltered]:
    return [each for each in read_ahead(epoch, "", epoch.goal(), Prefilter((), BOT)) if each]


def children() -> list[int]:
    """The processes that this one has started, without a tool that a bare machine may lack."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parent = place.read_text().rpartition(")")[2].split()[1]
            found += [int(place.parent.name)] if int(parent) == os.getpid() else []
    return found


@pytest.mark.usefixtures("small_slices")
def test_the_mails_are_those_of_one_process(epoch: EpochSource, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = read(epoch)
    monkeypatch.setattr(reader, "FEW", MAILS + 1)
    alone = read(epoch)
    assert [(each.position, each.read_to, each.size, each.look) for each in ahead] == [
        (each.position, each.read_to, each.size, each.look) for each in alone
    ]
    assert len(ahead) == MAILS
    raw = {each.position: each.raw for each in alone}
    sent = [each for each in ahead[100:] if each.raw is not None]
    assert all(each.raw == raw[each.position] for each in sent)
    assert all(each.raw is not None for each in ahead if each.look.ours), "what concerns us is sent"
    assert ahead[-1].raw is not None, "the last mail is sent: its date is shown"


@pytest.mark.usefixtures("small_slices")
def test_what_answers_a_mail_for_us_is_sent_too_and_the_rest_is_not(epoch: EpochSource) -> None:
    # Each mail answers the one before it, so that all are tracked once one is.
    assert all(each.raw is not None for each in read(epoch)[100:])
    quiet = BotSettings(address="nobody@other.example")
    looks = [each for each in read_ahead(epoch, "", epoch.goal(), Prefilter((), quiet)) if each]
    unsent = [each for each in looks[100:] if each.raw is None]
    assert len(unsent) > 1000
    found = list(epoch.at([each.position for each in unsent[:40]]))
    assert [len(mail.raw) for mail in found] == [each.size for each in unsent[:40]]


@pytest.mark.usefixtures("small_slices")
def test_it_says_when_it_waits_and_ends_when_the_reader_stops(epoch: EpochSource) -> None:
    before = children()
    looks = read_ahead(epoch, "", epoch.goal(), Prefilter((), BOT))
    assert [next(looks) for _ in range(101)].count(None) == 1, "the process has just been started"
    assert len(children()) > len(before)
    looks.close()  # type: ignore[attr-defined]
    assert children() == before


@pytest.mark.usefixtures("small_slices")
def test_a_killed_process_is_an_error_and_loses_nothing_that_it_sent(
    epoch: EpochSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails = EpochSource.mails_after

    def slow(self: EpochSource, position: str, goal: str) -> Iterator[RawMail]:
        for number, mail in enumerate(mails(self, position, goal)):
            if number == 300 and position:
                time.sleep(60)  # else it may be done before it is killed
            yield mail

    monkeypatch.setattr(EpochSource, "mails_after", slow)
    before = children()
    looks = read_ahead(epoch, "", epoch.goal(), Prefilter((), BOT))
    for _ in range(101):
        next(looks)
    [pid] = [each for each in children() if each not in before]
    os.kill(pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(Unreadable, match="was killed; the next run resumes"):
        list(looks)
    assert time.monotonic() - start < 20


@pytest.mark.usefixtures("small_slices")
def test_what_was_read_before_a_fault_of_git_arrives_before_its_error(
    epoch: EpochSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails = EpochSource.mails_after

    def broken(self: EpochSource, position: str, goal: str):  # type: ignore[no-untyped-def]
        for number, mail in enumerate(mails(self, position, goal)):
            if number == 45 and position:
                raise Unreadable("0.git: the disk is gone")
            yield mail

    monkeypatch.setattr(EpochSource, "mails_after", broken)
    seen = []
    with pytest.raises(Unreadable, match="the disk is gone"):
        for each in read_ahead(epoch, "", epoch.goal(), Prefilter((), BOT)):
            seen += [each] if each else []
    assert len(seen) == 145
    assert seen[-1].raw is not None


@pytest.mark.usefixtures("small_slices")
def test_it_works_in_a_worker_of_celery(epoch: EpochSource) -> None:
    """Celery's workers are daemons to multiprocessing, which lets those have no children."""
    found: SimpleQueue[object] = SimpleQueue()

    def work() -> None:
        try:
            found.put(len(read(epoch)))
        except BaseException as error:
            found.put(repr(error))

    worker = billiard.Process(target=work, daemon=True)
    worker.start()
    assert found.get() == MAILS
    worker.join(20)
