"""`read` and `export` on real and on broken archives, as an operator runs them."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from multiprocessing import SimpleQueue
from pathlib import Path
from typing import Any

import billiard
import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bot.archives import batch, filing, known_reports, reader
from bot.archives.batch import Passed, replay_quarantine
from bot.archives.files import RawMail
from bot.archives.filing import MailFiler
from bot.archives.known_reports import NameIndex
from bot.archives.prefilter import Passes, Prefilter
from bot.archives.public_inbox import EpochSource
from bot.archives.reader import Prefiltered, has_names_to_search, read_ahead, read_source
from bot.archives.sandbox import Sandbox
from bot.archives.sources import open_sources
from bot.demo import DemoInbox
from bot.git.repository import Unreadable
from bot.mail.settings import BotSettings
from bot.replies.effects import effects_of
from bot.replies.reading import Reading
from bot.replies.rules.notation import Effect
from tests.bot.archives.test_public_inbox import LKP
from tests.bot.robot_reports.test_report import INVENTED
from tests.conftest import OPERATORS, ROBOTS, ROOT
from tests.support.databases import migrated
from tests.support.world import DANA, World, message_id
from tracker.domain import text as formats
from tracker.domain.events import Verdict
from tracker.models import Archive, ArchiveNames, ArchivePositions, Finding, Message, RawMessage, Report
from tracker.services import catalog

# --- `read` and `export` on real and on broken archives, as an operator runs them ---


@pytest.fixture
def lkp_settings(settings: Any) -> None:
    settings.PERFWORK_ROBOTS = sorted(ROBOTS)
    settings.PERFWORK_OPERATORS = sorted(OPERATORS)
    settings.PERFWORK_TRUST = "open"


def run(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def exported(table: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("export", table).splitlines()]


def snapshot() -> list[list[dict[str, Any]]]:
    return [exported(table) for table in ("reports", "findings", "messages", "events")]


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.usefixtures("lkp_settings")
def test_the_real_threads_are_reports_with_all_their_replies(shared: Path) -> None:
    threads = json.loads((shared / "threads-dev.json").read_text())
    assert "82 mails; new: 18 reports, 1 of them about a culprit reported before, 64 replies" in run(
        "read", str(shared / "threads-dev.mbox")
    )
    reports = {each["message_id"]: each for each in exported("reports")}
    assert reports.keys() == threads.keys()
    messages = {each["message_id"]: each for each in exported("messages")}
    for report_id, thread in threads.items():
        assert reports[report_id]["culprit"] == thread["culprit_sha"]
        for reply in thread["replies"]:
            assert messages[reply["msgid"]]["report"] == thread["culprit_sha"], reply["msgid"]
    # One culprit was reported from two trees: one report, with both mails.
    assert Report.objects.count() == len({thread["culprit_sha"] for thread in threads.values()}) == 17
    before = snapshot()
    assert "0 mails; new: 0 reports, 0 replies" in run("read", str(shared / "threads-dev.mbox"))  # it has not changed
    again = run("read", "--again", str(shared / "threads-dev.mbox"))
    assert "82 mails; new: 0 reports, 0 replies, 82 already known" in again
    assert snapshot() == before


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.usefixtures("lkp_settings")
def test_a_real_public_inbox(shared: Path, tmp_path: Path, client: Client) -> None:
    epoch = tmp_path / "linux-nfs" / "git" / "0.git"
    subprocess.run(["git", "clone", "-q", "--mirror", shared / "lore" / "linux-nfs.0.bundle", epoch], check=True)
    output = run("read", str(tmp_path / "linux-nfs"))
    # Every one of the 6,014 mails decoded and searched holds four reports and no more.
    assert "6014 mails; new: 4 reports, 11 replies" in output
    titles = sorted(each["title"] for each in exported("reports"))
    assert len(titles) == 4
    assert all("%" in title and ("regression" in title or "improvement" in title) for title in titles)
    releases = re.findall(r'href="(/v[^"]+/)"', client.get("/").content.decode())
    tables = "".join(client.get(release).content.decode() for release in releases)
    for finding in Finding.objects.filter(headline=True).select_related("report__culprit", "metric"):
        assert finding.old_mean is not None
        assert f'/report/{finding.report.culprit.sha}/"' in tables
        page = client.get(f"/report/{finding.report.culprit.sha}/").content.decode()
        assert finding.metric.name in page
        assert formats.number(finding.old_mean) in page
    before = snapshot()
    assert ": 0 mails; new: 0 reports, 0 replies" in run("read", str(tmp_path / "linux-nfs"))
    run("read", "--again", str(tmp_path / "linux-nfs"))
    assert snapshot() == before


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.usefixtures("lkp_settings")
def test_explain_says_what_the_tracker_folds(shared: Path) -> None:
    run("read", str(shared / "threads-dev.mbox"))
    tracked = {each["message_id"]: each["state"] for each in exported("reports")}
    lines = [json.loads(line) for line in run("explain", str(shared / "threads-dev.mbox")).splitlines()]
    assert len(lines) == 82
    assert {each["message_id"]: each["state"] for each in lines if each["report"]} == tracked


@pytest.mark.django_db
def test_one_bad_archive_does_not_keep_the_others_from_being_read(world: World, tmp_path: Path) -> None:
    report = world.report()
    world.post(DANA, "It is the lock.", to=message_id(report))
    (tmp_path / "nothing").mkdir()
    errors = io.StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        run("read", str(tmp_path / "nothing"), str(world.inbox.path), stderr=errors)
    assert "not a mail archive" in errors.getvalue()
    assert errors.getvalue().count("\n") == 1
    assert Message.objects.filter(report=report).count() == 2


@pytest.mark.django_db
def test_an_mbox_with_binary_junk_between_its_mails(world: World, tmp_path: Path) -> None:
    report = world.report()
    line = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
    good = world.mail(DANA, "It is the lock.", to=message_id(report))
    junk = bytes(range(256)) * 40
    related = b"In-Reply-To: <" + message_id(report).encode() + b">\nFrom: \xff\xfe\n\n" + junk
    (tmp_path / "junk.mbox").write_bytes(b"\n".join([line + junk, line + related, line + good]))
    output = run("read", str(tmp_path / "junk.mbox"))
    assert "3 mails; new: 0 reports, 1 reply, 1 quarantined" in output
    assert RawMessage.objects.exclude(error="").count() == 1


@pytest.mark.django_db
def test_a_mail_that_breaks_the_reader_is_quarantined_and_the_next_one_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = world.report()
    world.post(DANA, "This one.", to=message_id(report))
    world.post(DANA, "It is the lock.", to=message_id(report))
    from bot.archives import sandbox

    real = sandbox.understand

    def fragile(raw: bytes, settings: Any) -> Any:
        if b"This one" in raw:
            raise RuntimeError("a bug of ours")
        return real(raw, settings)

    monkeypatch.setattr(sandbox, "understand", fragile)
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    kept = RawMessage.objects.exclude(error="").get()
    assert kept.error == "RuntimeError: a bug of ours"
    assert b"This one." in kept.raw


@pytest.mark.django_db
def test_a_mail_that_takes_long_to_be_filed_is_quarantined_and_the_next_one_filed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = world.report()
    world.post(DANA, "This one.", to=message_id(report))
    world.post(DANA, "It is the lock.", to=message_id(report))
    real = MailFiler.file

    def slow(self: MailFiler, reading: Any, *arguments: Any) -> Any:
        if "This one" in reading.own_text:
            with suppress(ValueError):  # as code of ours might: it is stopped again a second later
                re.match(r"(?:a+)+$", "a" * 40 + "b")
            re.match(r"(?:a+)+$", "a" * 40 + "b")
        return real(self, reading, *arguments)

    monkeypatch.setattr(MailFiler, "file", slow)
    monkeypatch.setattr(batch, "FILING_CPU", 1.0)
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    assert RawMessage.objects.exclude(error="").get().error == "filing it took more than 1 s of CPU"


def takes_long(reading: Reading, *context: Any, **standing: Any) -> tuple[Effect, ...]:
    if "This one" in reading.own_text:
        re.match(r"(?:a+)+$", "a" * 40 + "b")
    return effects_of(reading, *context, **standing)


@pytest.mark.django_db
def test_what_takes_long_to_understand_is_quarantined_where_filing_cannot_be_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a worker that runs its tasks in threads."""
    report = world.report()
    world.post(DANA, "This one.", to=message_id(report))
    world.post(DANA, "It is the lock.", to=message_id(report))
    monkeypatch.setattr(filing, "effects_of", takes_long)
    monkeypatch.setattr(batch, "limited_cpu", lambda seconds: nullcontext())
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    assert RawMessage.objects.exclude(error="").get().error.startswith("reading it took more than 3 seconds of CPU")


def takes_a_while(reading: Reading, *context: Any, **standing: Any) -> tuple[Effect, ...]:
    until = time.process_time() + 0.3
    while time.process_time() < until and "These" in reading.own_text:
        pass
    return effects_of(reading, *context, **standing)


@pytest.mark.django_db
def test_a_mail_about_many_reports_may_take_no_longer_than_one_about_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed in the child counts, too: together for one mail."""
    reports = [world.report(f"mm: change number {number}") for number in range(5)]
    links = "\n".join(f"https://lore.kernel.org/r/{message_id(report)}" for report in reports)
    world.post(DANA, f"These are noise.\n\n{links}\n", to=message_id(reports[0]))
    world.post(DANA, "It is the lock.", to=message_id(reports[0]))
    monkeypatch.setattr(filing, "effects_of", takes_a_while)
    monkeypatch.setattr(batch, "FILING_CPU", 0.5)
    monkeypatch.setattr(batch, "limited_cpu", lambda seconds: nullcontext())
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    kept = RawMessage.objects.exclude(error="").get()
    assert kept.error == "reading it took more CPU than one mail may take"


@pytest.mark.django_db
def test_mails_that_take_long_to_parse_are_saved_one_by_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long all of them take, the next attempt begins where the last one ended."""
    report = world.report()
    world.post(DANA, "Zero.", to=message_id(report))
    world.read()  # what is filed later by the names in it is not read before its turn
    for text in ("One.", "Two.", "Three.", "Four."):
        world.post(DANA, text, to=message_id(report))
    real = Sandbox.understand

    def interrupted(self: Sandbox, raw: bytes) -> Any:
        if b"Three." in raw:
            raise SoftTimeLimitExceeded
        return real(self, raw)

    monkeypatch.setattr(batch, "PARSING", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "understand", interrupted)
        for _ in range(2):
            with pytest.raises(SoftTimeLimitExceeded):
                world.read()
    assert Message.objects.filter(author_email=DANA.email).count() == 3
    tally = world.read()
    assert (tally.seen, tally.replies) == (2, 2)


@pytest.mark.django_db
def test_mails_of_a_thread_that_take_too_long_together_are_kept_for_a_replay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a report releases are parsed in its transaction, which must end."""
    report = world.report()
    raws = [world.mail(DANA, text, to=message_id(report)) for text in ("One.", "Two.", "Three.")]
    found = [Passed(RawMail(raw, str(number)), Passes.NAMED) for number, raw in enumerate(raws)]
    prefilter = Prefilter(known_reports.tracked_keys(), world.settings, known_reports.awaited_keys())
    monkeypatch.setattr(batch, "PARSING_FOUND", 0.0)
    with transaction.atomic():
        tally = batch.take(found, None, MailFiler(world.settings, world.later()), prefilter)
    assert tally.quarantined == 3
    [error] = set(RawMessage.objects.exclude(error="").values_list("error", flat=True))
    assert error == "not read: those of its thread took too long together; `replay` reads it"
    monkeypatch.undo()
    replay_quarantine(world.settings, world.later())
    assert not RawMessage.objects.exclude(error="").exists()
    assert Message.objects.filter(author_email=DANA.email).count() == 3


@pytest.mark.django_db
def test_csv_is_safe_in_a_spreadsheet(world: World) -> None:
    report = world.report()
    Report.objects.filter(pk=report.pk).update(title="=cmd|' /C calc'!A0")
    assert "'=cmd" in run("export", "reports", "--format", "csv")


# --- as a mail server runs it ---


def piped(tmp_path: Path, raw: bytes, *arguments: str, migrate: bool = True) -> subprocess.CompletedProcess[bytes]:
    """`read` as a process of its own, in a database of its own."""
    environment = {**os.environ, "PERFWORK_VAR": str(tmp_path), "PERFWORK_ROBOTS": "lkp@intel.com", "PERFWORK_ENV": ""}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/perfwork.sqlite3"
    command = [sys.executable, str(ROOT / "manage.py")]
    if migrate:
        migrated(tmp_path / "perfwork.sqlite3")
    return subprocess.run([*command, "read", *arguments], env=environment, input=raw, capture_output=True)


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.slow
def test_a_mail_from_a_pipe_and_the_exit_codes_of_sysexits(tmp_path: Path) -> None:
    done = piped(tmp_path, INVENTED.encode("latin-1"), "-")
    assert (done.returncode, done.stderr) == (os.EX_OK, b"")
    assert b"1 mail; new: 1 report" in done.stdout
    assert piped(tmp_path, b"\xff\xfe junk", "-").returncode == os.EX_OK  # no mail of ours, and no reason to bounce it
    gone = piped(tmp_path, b"", str(tmp_path / "nowhere"))
    assert (gone.returncode, gone.stderr.count(b"\n")) == (os.EX_NOINPUT, 2)
    assert piped(tmp_path, b"").returncode == os.EX_USAGE
    with sqlite3.connect(tmp_path / "perfwork.sqlite3") as database:
        database.execute("ALTER TABLE tracker_message RENAME TO away")
    broken = piped(tmp_path, INVENTED.encode("latin-1"), "-", migrate=False)
    assert broken.returncode == os.EX_TEMPFAIL
    assert b"Traceback" not in broken.stderr


@pytest.mark.long
@pytest.mark.django_db
@pytest.mark.slow
def test_several_archives_at_once(tmp_path: Path) -> None:
    lists = []
    for which in range(3):
        inbox = DemoInbox(tmp_path / f"list{which}")
        inbox.add(INVENTED.replace("3b1f0c9d", f"{which}b1f0c9d").encode("latin-1"))
        inbox.add(f"Message-ID: <{which}@x>\nFrom: a@b\nSubject: lunch\n\nnoon?\n".encode())
        lists.append(str(inbox.path))
    done = piped(tmp_path, b"", "--jobs", "3", *lists, str(tmp_path / "nowhere"))
    assert done.stdout.count(b"2 mails; new: 1 report") == 3
    assert b"1 of 4 could not be read" in done.stderr
    assert done.returncode == os.EX_NOINPUT
    with sqlite3.connect(tmp_path / "perfwork.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM tracker_report").fetchone() == (3,)


@pytest.mark.django_db
@pytest.mark.usefixtures("lkp_settings")
@pytest.mark.parametrize(("verdict", "kinds"), [("regression", {"reported", "landed"}), ("improvement", {"reported"})])
def test_a_regression_in_the_mainline_landed_there_and_of_an_improvement_git_says_it(
    tmp_path: Path, verdict: str, kinds: set[str]
) -> None:
    change = f"12.4% {verdict}"
    report = INVENTED.replace("-12.4% regression", change).replace("     -12.4%", "     +12.4%")
    path = tmp_path / "report.eml"
    path.write_text(report, encoding="latin-1")
    run("read", str(path))
    assert {each["kind"] for each in exported("events")} == kinds


# --- The first look at an epoch in a process of its own: the same mails, errors that arrive, no process left behind
# ---

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


# --- Reports that are committed while an archive is read, or after one with a higher key, are searched all the same
# ---

PATCH = b"""From: Dana <dana@dev.example>
Message-ID: <fix@dev.example>
Subject: [PATCH] mm: mend the walk

It is slow since then, as a regression of vm-scan shows.

Fixes: 3b1f0c9d2e44 ("mm: walk cold folios first")
---
--- a/mm/vmscan.c
+++ b/mm/vmscan.c
@@ -1,2 +1,2 @@
-a
+b
"""
MENDED = "3b1f0c9d2e440000000000000000000000000000"


@pytest.fixture
def inbox(tmp_path: Path) -> DemoInbox:
    found = DemoInbox(tmp_path / "list")
    found.add(PATCH)
    return found


def report(sha: str, pk: int) -> None:
    """A report from a lab, which gets its key before it is committed."""
    made = catalog.report_for(catalog.commit_for(sha, title=f"title of {sha}"), Verdict.REGRESSION)
    Report.objects.filter(pk=made.pk).update(id=pk)


def read_late(inbox: DemoInbox, now: datetime, settings: BotSettings = LKP) -> list[str]:
    for source in open_sources(str(inbox.path)):
        read_source(source, settings, now)
    return list(Message.objects.values_list("message_id", flat=True))


@pytest.mark.django_db
def test_a_report_with_a_lower_key_than_one_that_was_searched(inbox: DemoInbox, now: datetime) -> None:
    report("a" * 40, pk=900)
    assert read_late(inbox, now) == []
    report(MENDED, pk=300)
    assert read_late(inbox, now) == ["fix@dev.example"]
    assert read_late(inbox, now) == ["fix@dev.example"]
    (source,) = open_sources(str(inbox.path))
    assert not has_names_to_search(source, Archive.objects.get())


@pytest.mark.django_db
def test_reports_that_are_committed_while_mail_is_being_filed(
    inbox: DemoInbox, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*arguments: Any, take: Callable[..., Any] = batch.take) -> Any:
        if not Report.objects.exists():
            report(MENDED, pk=100)
            for number in range(50):  # many, as a batch of results makes them
                report(f"{number:040x}", pk=200 + number)
        return take(*arguments)

    monkeypatch.setattr(reader, "take", meanwhile)
    assert read_late(inbox, now) == []
    assert read_late(inbox, now) == ["fix@dev.example"]


@pytest.mark.django_db
def test_an_archive_that_an_earlier_release_has_read(inbox: DemoInbox, now: datetime) -> None:
    report("a" * 40, pk=900)
    read_late(inbox, now)
    Archive.objects.update(searched={"message": 0, "report": 880, "sent": 0})
    report(MENDED, pk=850)
    assert read_late(inbox, now) == ["fix@dev.example"]
    call_command("read", "--again", str(inbox.path))
    assert Message.objects.count() == 1


# --- The index of an archive finds every mail that names a key, as a search through all mails would ---

NAMES = st.sampled_from([b"%d@x" % number for number in range(30)])
INDEXED = st.lists(st.lists(NAMES, max_size=4), max_size=40)


def filled(mails: list[list[bytes]], batch: int) -> NameIndex:
    """Index mails, saving after every `batch`, each time with a new object as a restarted worker has."""
    archive, _ = Archive.objects.get_or_create(path="/an/archive")
    for start in range(0, len(mails), batch):
        index = NameIndex(archive)
        for number, names in enumerate(mails[start : start + batch], start):
            index.add(f"{number:040x}", names)
        index.save()
    return NameIndex(archive)


def searched(mails: list[list[bytes]], keys: list[bytes]) -> list[str]:
    return [f"{number:040x}" for number, names in enumerate(mails) if set(keys) & set(names)]


class TestSearch(TestCase):
    @settings(deadline=None, max_examples=40)
    @given(INDEXED, st.integers(1, 9), st.lists(NAMES, max_size=4), st.integers(0, 40))
    def test_a_search_finds_what_reading_everything_finds(
        self, mails: list[list[bytes]], batch: int, keys: list[bytes], count: int
    ) -> None:
        Archive.objects.all().delete()
        index = filled(mails, batch)
        assert index.count == len(mails)
        assert index.find(keys) == searched(mails, keys)
        index.truncate(count)
        assert index.count == min(count, len(mails))
        assert NameIndex(index.archive).count == index.count
        assert index.find(keys) == searched(mails[:count], keys)


@pytest.mark.django_db
def test_rows_are_merged_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_reports, "_LONGEST_ROW", 200)
    mails = [[b"parent@x", b"%d@x" % number] for number in range(100)]
    index = filled(mails, 1)
    assert index.find([b"parent@x"]) == searched(mails, [b"parent@x"])
    assert index.find([b"7@x", b"93@x", b"unknown@x"]) == [f"{7:040x}", f"{93:040x}"]
    rows = ArchiveNames.objects.values_list("slice", flat=True)
    assert max(list(rows).count(number) for number in set(rows)) < 16
    assert 10 < ArchivePositions.objects.count() < 30


@pytest.mark.django_db
def test_archives_are_searched_apart() -> None:
    index = filled([[b"a@x"]], 1)
    assert NameIndex(Archive.objects.create(path="/another")).find([b"a@x"]) == []
    assert index.find([b"a@x"]) == [f"{0:040x}"]
