"""`read` and `export` on real and on broken archives, as an operator runs them."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from bot.demo import DemoInbox
from tests.bot.robot_reports.test_robot_reports import INVENTED
from tests.conftest import OPERATORS, ROBOTS, ROOT
from tests.databases import migrated
from tests.world import DANA, World, message_id
from tracker.models import Finding, Message, RawMessage, Report
from tracker.templatetags.words import number


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
        assert number(finding.old_mean) in page
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
    from bot.archives import batch

    real = batch.understand

    def fragile(raw: bytes, settings: Any) -> Any:
        if b"This one" in raw:
            raise RuntimeError("a bug of ours")
        return real(raw, settings)

    monkeypatch.setattr(batch, "understand", fragile)
    tally = world.read()
    assert (tally.quarantined, tally.replies) == (1, 1)
    kept = RawMessage.objects.exclude(error="").get()
    assert kept.error == "RuntimeError: a bug of ours"
    assert b"This one." in kept.raw


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
