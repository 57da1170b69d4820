"""public-inbox epochs over time: they grow, and are purged, edited, repacked, truncated and moved."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from bot.archives import public_inbox, reader
from bot.archives.files import LIMIT, read_mbox
from bot.archives.public_inbox import EpochSource, ReadCheckpoint, head, read_epoch
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.demo import DemoInbox
from bot.git.repository import Busy, Unreadable
from bot.mail.message import parse
from bot.mail.settings import BotSettings
from bot.processes import process_name
from tests.bot.robot_reports.test_report import INVENTED
from tracker.models import Archive, Message

LKP = BotSettings(address="perfbot@bot.example.org", robots=frozenset({"lkp@intel.com"}), trust_policy="open")
REPORT = INVENTED.encode("latin-1")
REPORT_ID = "202603110412.3b1f0c9d-lkp@intel.com"


def mail(number: int, body: str = "hello") -> bytes:
    return f"From: Dana <dana@dev.example>\nMessage-ID: <{number}@x>\nSubject: {number}\n\n{body}\n".encode()


def reply(number: int) -> bytes:
    return mail(number, "It is the lock.").replace(b"Subject", b"In-Reply-To: <" + REPORT_ID.encode() + b">\nSubject")


def bodies(epoch: Path, cursor: str = "") -> list[str]:
    """The subjects of what is new since a cursor."""
    source = EpochSource(epoch, str(epoch))
    return [parse(each.raw).subject for each in source.mails(source.resume(cursor), source.goal())]


def rewritten(inbox: DemoInbox, replacements: dict[int, bytes | None], count: int) -> None:
    """A new history of the same mails, as public-inbox-purge and -edit make one: others, or none, in some places."""
    commits = inbox._git("rev-list", "--reverse", "HEAD").split()
    raws = {each.position: each.raw for each in read_epoch(inbox.epoch)}
    inbox._git("update-ref", "-d", "refs/heads/master")
    for number, commit in enumerate(commits[:count]):
        new = replacements.get(number, raws[commit])
        if new is not None:
            inbox._commit(new, str(number), "m")


@pytest.fixture
def inbox(tmp_path: Path) -> DemoInbox:
    found = DemoInbox(tmp_path / "list")
    for number in range(10):
        found.add(mail(number))
    return found


def read(path: Path, now: datetime) -> list[str]:
    """Read an archive; the errors of all archives."""
    for source in open_sources(str(path)):
        try:
            read_source(source, LKP, now)
        except Unreadable:
            pass
    return list(Archive.objects.exclude(error="").values_list("error", flat=True))


# --- the reader ---


def test_a_purged_history_is_read_again_from_where_it_was_rewritten(inbox: DemoInbox) -> None:
    cursor = ""
    source = EpochSource(inbox.epoch, "list")
    for commit in inbox._git("rev-list", "--reverse", "HEAD").split():
        cursor = source.after(cursor, commit, 1)
    rewritten(inbox, {7: None}, 10)
    inbox._git("reflog", "expire", "--expire=now", "--all")
    inbox._git("gc", "--prune=now", "--quiet")
    again = bodies(inbox.epoch, cursor)
    assert "7" not in again
    assert set(again) >= {"8", "9"}
    assert "0" not in again  # the checkpoint leads back to a mark before the purge, not to the beginning


def test_an_edited_mail_is_read_and_the_others_once(inbox: DemoInbox) -> None:
    rewritten(inbox, {9: mail(9, "edited")}, 10)
    assert bodies(inbox.epoch) == [str(number) for number in range(10)]


def test_a_deletion_is_no_mail(inbox: DemoInbox) -> None:
    inbox._commit(mail(3), "rm", "d")
    inbox.add(mail(11))
    assert bodies(inbox.epoch)[-2:] == ["9", "11"]


def test_a_commit_with_other_files_only_is_passed_over(inbox: DemoInbox) -> None:
    inbox._commit(b"hello", "notes", "README")
    inbox.add(mail(11))
    assert len(bodies(inbox.epoch)) == 11


def test_packs_may_be_replaced_while_we_read(inbox: DemoInbox) -> None:
    inbox._git("repack", "-adq")
    mails = read_epoch(inbox.epoch)
    first = next(mails)
    inbox.add(mail(11))
    inbox._git("repack", "-adfq")
    inbox._git("prune-packed", "-q")
    assert len([first, *mails]) == 10


def test_a_mail_that_its_unpacker_misses_is_asked_for_again(inbox: DemoInbox, monkeypatch: pytest.MonkeyPatch) -> None:
    real = public_inbox._EpochReading._unpacked
    missed: list[str] = []

    def unlucky(self: public_inbox._EpochReading, commit: str) -> bytes | None:
        raw = real(self, commit)
        if not missed:
            missed.append(commit)
            return None
        return raw

    monkeypatch.setattr(public_inbox._EpochReading, "_unpacked", unlucky)
    assert len(list(read_epoch(inbox.epoch))) == 10
    assert missed


def test_the_first_format_of_public_inbox(tmp_path: Path) -> None:
    repository = tmp_path / "v1.git"
    inbox = DemoInbox(tmp_path / "scratch")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", repository], check=True)
    inbox.epoch = repository
    inner = inbox._git("mktree", stdin=f"100644 blob {_blob(inbox, mail(1))}\t{'0' * 38}\n".encode())
    both = inbox._git("mktree", stdin=f"040000 tree {inner}\tab\n".encode())
    commit = inbox._git("commit-tree", both, stdin=b"one")
    inbox._git("update-ref", "refs/heads/master", commit)
    assert [each.raw for each in read_epoch(repository)] == [mail(1)]


def _blob(inbox: DemoInbox, raw: bytes) -> str:
    return inbox._git("hash-object", "-w", "--stdin", stdin=raw)


def test_of_a_huge_mail_the_beginning_is_read(inbox: DemoInbox) -> None:
    inbox.add(mail(11, "x" * 50_000_000))
    inbox.add(mail(12))
    big, after = list(read_epoch(inbox.epoch))[-2:]
    assert len(big.raw) == LIMIT
    assert "too_large" in parse(big.raw).problems
    assert after.raw == mail(12)


def test_an_mbox_with_a_huge_mail(tmp_path: Path) -> None:
    line = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
    (tmp_path / "a").write_bytes(line + mail(1, "x" * 50_000_000) + b"\n" + line + mail(2))
    big, after = list(read_mbox(tmp_path / "a"))
    assert (len(big.raw), after.raw) == (LIMIT, mail(2))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to somebody else")
def test_a_repository_of_somebody_else(inbox: DemoInbox) -> None:
    for path in (inbox.epoch, *inbox.epoch.rglob("*")):
        os.chown(path, 65534, 65534)
    assert len(bodies(inbox.epoch)) == 10


def test_an_epoch_without_a_mail(tmp_path: Path) -> None:
    inbox = DemoInbox(tmp_path)
    assert (head(inbox.epoch), bodies(inbox.epoch)) == ("", [])


# --- reading into the database ---


@pytest.mark.django_db
def test_what_was_rewritten_is_filed_once(inbox: DemoInbox, now: datetime) -> None:
    inbox.add(REPORT)
    inbox.add(reply(20))
    assert read(inbox.path, now) == []
    assert Message.objects.count() == 2
    rewritten(inbox, {4: None}, 12)
    inbox.add(reply(21))
    assert read(inbox.path, now) == []
    assert sorted(Message.objects.values_list("message_id", flat=True)) == sorted([REPORT_ID, "20@x", "21@x"])
    cursor = Archive.objects.get().cursor
    assert ReadCheckpoint.parse(cursor).newest == head(inbox.epoch)


@pytest.mark.django_db
def test_an_epoch_that_shrank(inbox: DemoInbox, now: datetime) -> None:
    read(inbox.path, now)
    rewritten(inbox, {}, 3)
    assert read(inbox.path, now) == []
    inbox.add(REPORT)
    read(inbox.path, now)
    assert Message.objects.count() == 1


@pytest.mark.django_db
def test_a_new_epoch_is_found_by_itself(inbox: DemoInbox, now: datetime) -> None:
    read(inbox.path, now)
    shutil.copytree(inbox.epoch, inbox.path / "git" / "1.git")
    second = DemoInbox(inbox.path)
    second.epoch = inbox.path / "git" / "1.git"
    second.add(REPORT)
    read(inbox.path, now)
    assert Archive.objects.count() == 2
    assert Message.objects.get().message_id == REPORT_ID


@pytest.mark.django_db
def test_a_truncated_pack_is_said_and_the_cursor_stays_right(inbox: DemoInbox, now: datetime) -> None:
    read(inbox.path, now)
    before = Archive.objects.get().cursor
    inbox.add(REPORT)
    inbox._git("repack", "-adq")
    (pack,) = (inbox.epoch / "objects" / "pack").glob("*.pack")
    content = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(content[: len(content) // 2])
    (error,) = read(inbox.path, now)
    assert str(inbox.epoch) in error
    assert "\n" not in error
    assert Archive.objects.get().cursor == before
    pack.write_bytes(content)
    assert read(inbox.path, now) == []
    assert Message.objects.count() == 1


@pytest.mark.django_db
def test_an_archive_that_vanishes_keeps_none_from_being_read(inbox: DemoInbox, tmp_path: Path, now: datetime) -> None:
    other = DemoInbox(tmp_path / "other")
    other.add(REPORT)
    read(inbox.path, now)
    (source,) = open_sources(str(inbox.path))
    shutil.rmtree(inbox.epoch)
    with pytest.raises(Unreadable):
        read_source(source, LKP, now)
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("read", str(inbox.path), str(other.path), stderr=io.StringIO())
    assert Archive.objects.get(path=source.name).error


@pytest.mark.django_db
def test_two_workers_never_read_the_same_epoch(inbox: DemoInbox, now: datetime) -> None:
    (source,) = open_sources(str(inbox.path))
    row = Archive.objects.create(path=source.name)
    row.lease_until = timezone.now() + timedelta(minutes=5)
    row.save()
    with pytest.raises(Busy, match="another worker"):
        read_source(source, LKP, now)
    Archive.objects.update(holder="elsewhere 1 2")  # of another machine nothing is known
    with pytest.raises(Busy):
        read_source(source, LKP, now)
    gone = subprocess.Popen(["true"])
    gone.wait()
    Archive.objects.update(holder=f"{process_name(os.getpid()).rsplit(' ', 2)[0]} {gone.pid} 1")
    assert read_source(source, LKP, now).seen == 10
    assert Archive.objects.get().lease_until is None


@pytest.mark.django_db
def test_who_lost_the_lease_saves_nothing(inbox: DemoInbox, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.add(REPORT)
    (source,) = open_sources(str(inbox.path))
    real = EpochSource.mails

    def slow(self: EpochSource, cursor: str, goal: str) -> Iterator[object]:
        yield from real(self, cursor, goal)
        until = timezone.now() + timedelta(hours=1)
        Archive.objects.update(lease_until=until, holder="elsewhere 1 2")  # who thought us dead

    monkeypatch.setattr(EpochSource, "mails", slow)
    with pytest.raises(Busy, match="took over"):
        read_source(source, LKP, now)
    assert (Message.objects.count(), Archive.objects.get().cursor) == (0, "")


# --- mirrors ---


@pytest.mark.django_db
def test_a_mirror_is_fetched_and_its_next_epoch_cloned(tmp_path: Path, now: datetime) -> None:
    far = tmp_path / "far" / "list"
    origin = DemoInbox(tmp_path / "scratch")
    origin.add(mail(1))
    shutil.copytree(origin.epoch, far / "0")
    mirrored = tmp_path / "mirror"
    subprocess.run(["git", "clone", "-q", "--mirror", far / "0", mirrored / "git" / "0.git"], check=True)
    origin.epoch = far / "0"
    origin.add(REPORT)
    shutil.copytree(far / "0", far / "1")
    public_inbox.refresh(mirrored)
    assert len(list(read_epoch(mirrored / "git" / "0.git"))) == 2
    assert (mirrored / "git" / "1.git").is_dir()
    assert not (mirrored / "git" / "2.git").exists()
    public_inbox.refresh(mirrored)
    read(mirrored, now)
    assert Message.objects.count() == 1


def test_a_mirror_that_can_not_be_fetched_names_itself(tmp_path: Path) -> None:
    origin = DemoInbox(tmp_path / "scratch")
    origin.add(mail(1))
    subprocess.run(["git", "clone", "-q", "--mirror", origin.epoch, tmp_path / "m" / "git" / "0.git"], check=True)
    shutil.rmtree(origin.path)
    with pytest.raises(Unreadable, match=r"0\.git: git fetch"):
        public_inbox.refresh(tmp_path / "m")


# --- the checkpoint ---


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60))
def test_a_trail_is_short_and_leads_back_by_doubling_steps(steps: list[int]) -> None:
    checkpoint = ReadCheckpoint()
    for number, step in enumerate(steps):
        checkpoint = checkpoint.to(f"c{number}", step)
        assert ReadCheckpoint.parse(str(checkpoint)) == checkpoint
    assert checkpoint.newest == f"c{len(steps) - 1}"
    assert checkpoint.count == sum(steps)
    assert len(checkpoint.marks) <= 2 + sum(steps).bit_length()
    counts = [count for count, _ in checkpoint.marks]
    assert counts == sorted(counts, reverse=True)
    assert checkpoint.marks[-1][1] == "c0"  # the way back never ends before its beginning


@given(st.text(max_size=80))
def test_any_text_is_a_trail_or_none(text: str) -> None:
    assert ReadCheckpoint.parse(text).count >= 0


# --- what nobody may wait for, and nobody forget ---


@pytest.mark.django_db
def test_a_mail_that_is_lost_is_asked_for_again_and_the_error_stays(inbox: DemoInbox, now: datetime) -> None:
    inbox.add(REPORT)
    blob = _blob(inbox, reply(20))
    inbox.add(reply(20))
    inbox.add(reply(21))
    loose = inbox.epoch / "objects" / blob[:2] / blob[2:]
    kept = loose.read_bytes()
    loose.unlink()
    for _ in range(2):
        (error,) = read(inbox.path, now)
        assert "1 mail can't be read" in error
        assert Message.objects.count() == 2
    loose.write_bytes(kept)
    assert read(inbox.path, now) == []
    assert Message.objects.filter(message_id="20@x").exists()


@pytest.mark.long
@pytest.mark.django_db
def test_git_complains_more_than_a_pipe_holds(tmp_path: Path, now: datetime) -> None:
    inbox = DemoInbox(tmp_path / "list")
    for number in range(400):
        inbox.add(mail(number))
    for object_ in (inbox.epoch / "objects").glob("??/*"):
        if inbox._git("cat-file", "-t", object_.parent.name + object_.name) == "blob":
            object_.chmod(0o644)
            object_.write_bytes(b"")
    started = time.monotonic()
    (error,) = read(inbox.path, now)
    assert "can't be read" in error or "git" in error
    assert time.monotonic() - started < 120


def test_an_mbox_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    line = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
    file = tmp_path / "a"
    file.write_bytes(b"".join(line + mail(number, "x" * 10_000) + b"\n" for number in range(50)))
    mails = read_mbox(file)
    next(mails)
    os.truncate(file, 100)
    assert len(list(mails)) == 49


@pytest.mark.django_db
def test_after_a_reading_that_failed_the_next_one_may_begin(
    inbox: DemoInbox, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.add(REPORT)
    (source,) = open_sources(str(inbox.path))
    with monkeypatch.context() as broken:

        def breaks(*arguments: object) -> object:
            raise OperationalError("the disk is full")

        broken.setattr(reader, "take", breaks)
        with pytest.raises(OperationalError):
            read_source(source, LKP, now)
    assert read_source(source, LKP, now).reports == 1
