"""An archive reading that is killed again and again leaves the same database as an undisturbed one.

`make crash` kills it 50 times; `make test` a few times.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OPERATORS, ROBOTS, ROOT
from tests.support.databases import migrated

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PERFWORK_KILLS", "4"))
# manage.py, but that what was read is saved many times a second: so that a short reading has many middles.
FREQUENT_SAVES = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tracker.settings"
import django
django.setup()
from bot.archives import reader
reader.EVERY = 0.02
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
# What must be the same, by names and not by numbers; when it was stored may differ.
TABLES = {
    "messages": "SELECT message_id, in_reply_to, author_email, subject, sent_at, kind, role, own_text, hex(tables),"
    " (SELECT tag FROM tracker_report r WHERE r.id = m.report_id) FROM tracker_message m",
    "raw": "SELECT digest, position, hex(compressed), error FROM tracker_rawmessage",
    "reports": "SELECT tag, verdict, title, subsystem, state, status, decided_by, awaited, authors, recipients, held"
    " FROM tracker_report",
    "events": "SELECT key, kind, occurred_at, role, message_id, quote FROM tracker_event",
    "suggestions": "SELECT key, quote, rule FROM tracker_suggestion",
    "findings": "SELECT headline, verdict, change_pct, old_mean, new_mean, base FROM tracker_finding",
    "waiting": "SELECT o.key, own, digest FROM tracker_pendingreference o"
    " JOIN tracker_rawmessage r ON r.id = o.source_id",
}  # fmt: skip


def start(var: Path, *arguments: str) -> subprocess.Popen[bytes]:
    lists = {"PERFWORK_ROBOTS": ",".join(sorted(ROBOTS)), "PERFWORK_OPERATORS": ",".join(sorted(OPERATORS))}
    environment = {**os.environ, **lists, "PERFWORK_VAR": str(var), "PERFWORK_TRUST": "open"}
    environment |= {"PERFWORK_ENV": "", "DATABASE_URL": f"sqlite:///{var}/perfwork.sqlite3"}
    command = [sys.executable, "-c", FREQUENT_SAVES, *arguments]
    no_output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env=environment, cwd=ROOT, **no_output)  # type: ignore[call-overload]


def stored(var: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(var / "perfwork.sqlite3") as database:
        return {name: sorted(map(repr, database.execute(query))) for name, query in TABLES.items()}


def cursor(var: Path) -> str:
    with sqlite3.connect(var / "perfwork.sqlite3") as database:
        found = database.execute("SELECT cursor FROM tracker_archive").fetchone() or ("",)
        return str(found[0]).partition(" ")[0].rpartition(":")[2]


def wait_for_a_save(reading: subprocess.Popen[bytes], var: Path) -> None:
    """Return once the reading has saved a position, however busy the machine is, or has ended."""
    before = cursor(var)
    while reading.poll() is None and cursor(var) == before:
        time.sleep(0.02)


def archive(shared: Path, folder: Path) -> Path:
    """A real list, with the real threads once more at its end, so that there is enough to be filed."""
    from bot.archives.files import read_mbox
    from bot.archives.public_inbox import read_epoch

    small = folder / "small.git"
    subprocess.run(["git", "clone", "-q", "--mirror", shared / "lore" / "linux-nfs.0.bundle", small], check=True)
    mails = [mail.raw for mail in read_epoch(small)]
    threads = [mail.raw for mail in read_mbox(shared / "threads-dev.mbox")]
    step = len(mails) // len(threads)
    for number, raw in enumerate(threads):  # all over the list, replies often before their reports
        mails.insert(number * step, raw)
    target = folder / "list.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", target], check=True)
    lines = []
    for number, raw in enumerate(mails):
        lines.append(b"commit refs/heads/master\ncommitter a <a@b> %d +0000\ndata 1\nm\n" % number)
        lines.append(b"M 100644 inline m\ndata %d\n%b\n" % (len(raw), raw))
    subprocess.run(["git", "-C", target, "fast-import", "--quiet"], input=b"".join(lines), check=True)
    return target


def dense(shared: Path, folder: Path) -> Path:
    """A real list where robots post."""
    epoch = folder / "dense.git"
    subprocess.run(["git", "clone", "-q", "--mirror", shared / "lore" / "cgroups.0.bundle", epoch], check=True)
    return epoch


@pytest.mark.long
@pytest.mark.parametrize(("make_archive", "fewest"), [(archive, 80), *([(dense, 70)] if KILLS >= 50 else [])])
def test_killed_at_any_moment(
    shared: Path, tmp_path: Path, make_archive: Callable[[Path, Path], Path], fewest: int
) -> None:
    epoch = make_archive(shared, tmp_path)
    undisturbed, killed = tmp_path / "calm", tmp_path / "stormy"
    for var in (undisturbed, killed):
        var.mkdir()
        migrated(var / "perfwork.sqlite3")
    started = time.monotonic()
    assert start(undisturbed, "read", str(epoch)).wait() == 0
    duration = time.monotonic() - started
    rng = random.Random(9)
    stops: set[str] = set()
    end = cursor(undisturbed)
    for number in range(KILLS * 4):  # on a busy machine a reading may begin late: until it was killed in its middle
        if number >= KILLS and stops - {"", end}:
            break
        reading = start(killed, "read", *(["--again"] if number % 3 == 2 else []), str(epoch))
        try:
            if number % 2:
                wait_for_a_save(reading, killed)
            reading.wait(timeout=rng.uniform(0.45, 1.0) * duration if number % 2 == 0 else rng.uniform(0, 0.2))
        except subprocess.TimeoutExpired:
            reading.send_signal(signal.SIGKILL)
            reading.wait()
            stops.add(cursor(killed))
    assert start(killed, "read", str(epoch)).wait() == 0
    one, other = stored(undisturbed), stored(killed)
    for name in TABLES:
        assert other[name] == one[name], name
    assert len(one["messages"]) > fewest
    assert cursor(killed) == end
    assert stops - {"", end}
