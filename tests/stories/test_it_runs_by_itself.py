"""`up`: results are mailed and replies change the table without any command; a killed worker loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from bot.demo import Catcher, DemoInbox, DemoTree
from bot.mail.settings import BotSettings
from tests.bot.mail.test_authentication import RECORD, signed
from tests.conftest import ROOT
from tests.support.servers import free_port
from tests.support.world import DANA, START, World

pytestmark = pytest.mark.slow

PATIENCE = 60.0


class Slow(Catcher):
    """A catcher that can be told to keep a worker waiting before it takes anything."""

    stall = 0.0
    rcpt_count = 0

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.rcpt_count += 1
        await asyncio.sleep(self.stall)
        envelope.rcpt_tos.append(address)
        return "250 fine"


class Running:
    """`up` as a process, with everything it talks to."""

    def __init__(self, directory: Path, workers: int = 1, **settings: str) -> None:
        self.directory, self.settings = directory, settings
        self.inbox = DemoInbox(directory / "inbox")
        # An archive that can't be read is tried less and less often, and one without a mail has no branch.
        self.inbox.add(b"From: Lee <lee@dev.example>\nMessage-ID: <first@dev.example>\nSubject: hello\n\nhi\n")
        self.tree = DemoTree(directory / "linux.git")
        self.mail = Slow(self.inbox)
        self.smtp = Controller(self.mail, hostname="127.0.0.1", port=free_port())
        self.smtp.start()
        self.port = free_port()
        self.log = directory / "up.log"
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--bind", f"127.0.0.1:{self.port}", "--workers", str(workers)],
            cwd=ROOT,
            env={**os.environ, **self._environment()},
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )

    def _environment(self) -> dict[str, str]:
        return {
            "PERFWORK_VAR": str(self.directory / "var"),
            "DATABASE_URL": f"sqlite:///{self.directory}/db.sqlite3",
            "EMAIL_URL": f"smtp://127.0.0.1:{self.smtp.port}",
            "PERFWORK_BOT_ADDRESS": "perfbot@bot.example.org",
            "PERFWORK_APPROVE_FIRST": "off",
            "PERFWORK_TRUST": "open",
            "PERFWORK_PERIOD": "1",
            "PERFWORK_LEASE": "5",
            "PERFWORK_ARCHIVES": str(self.inbox.path),
            "PERFWORK_TREES": f"linus={self.tree.path}",
            **self.settings,
        }

    def page(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.read().decode()  # type: ignore[no-any-return]
        except OSError:
            return ""

    def drop(self, name: str, result: dict[str, object]) -> None:
        folder = self.directory / "var" / "drop"
        (folder / f".{name}").write_text(json.dumps(result))
        (folder / f".{name}").rename(folder / name)

    def sql(self, statement: str, *values: str) -> list[Any]:
        """Run one statement, with %s for its values, in the database; return its rows."""
        url = self._environment()["DATABASE_URL"]
        if url.startswith("sqlite:///"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as lite, lite:
                return lite.execute(statement.replace("%s", "?"), values).fetchall()
        with psycopg.connect(url) as server:
            cursor = server.execute(statement, values)  # type: ignore[arg-type]  # our own text
            return cursor.fetchall() if cursor.description else []

    def outbox(self) -> list[tuple[str, str]]:
        return self.sql("select state, message_id from tracker_outgoingmail order by id")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a further part of it."""
        command = [sys.executable, "manage.py", *arguments]
        log = (self.directory / "more.log").open("ab")
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **self._environment()}, stdout=log, stderr=log)

    def worker(self) -> int:
        """The process of the worker that runs now."""
        return int(re.findall(r"worker runs as process (\d+)", self.log.read_text())[-1])

    def wait(self, for_what: str, condition: Callable[[], object], patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"{for_what} did not happen:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.2)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.smtp.stop()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    process = Running(tmp_path)
    yield process
    process.end()


def whole_circle(running: Running, settings: BotSettings) -> None:
    """A result goes in, the mail leaves, a signed reply comes back, git has the fix, and the table says fixed."""
    world = World(running.directory / "pen", settings)
    world.git, world.now = running.tree, START
    culprit = world.commit("mm/vmscan: walk cold folios first")
    world.tag("v9.1-rc1")
    running.wait("the front page", lambda: "Perfwork" in running.page("/"))
    key = ("s1._domainkey.dev.example", RECORD, START.isoformat())
    running.sql("INSERT INTO tracker_signingkey (name, record, fetched_at) VALUES (%s, %s, %s)", *key)
    running.drop("1.json", world.result(culprit, "mm/vmscan: walk cold folios first"))
    running.wait("the mail", lambda: running.mail.received)
    running.wait("its delivery", lambda: [state for state, _ in running.outbox()] == ["sent"])
    ((_, message_id),) = running.outbox()
    reply = world.mail(DANA, "It is the lock.\n\n#lkp fix: mm/vmscan: take the lock later\n", to=message_id)
    running.inbox.add(signed(reply))
    running.wait("the fix", lambda: "a fix is proposed" in running.page("/v9.1/"))
    closes = f"Closes: https://lore.kernel.org/r/{message_id}\n"
    world.commit("mm/vmscan: take the lock later", f'Fixes: {culprit[:12]} ("mm/vmscan: walk")\n{closes}')
    world.tag("v9.1-rc2")
    running.wait("the end", lambda: "fixed in v9.1-rc2" in running.page("/v9.1/"))
    page = running.page(f"/report/{culprit}/")
    assert "verified by dkim dev.example" in page
    assert "recorded by" not in page  # nobody clicked
    assert len(running.mail.received) == 1


@pytest.mark.long
def test_a_whole_report_without_a_click(tmp_path: Path, bot_settings: BotSettings) -> None:
    running = Running(tmp_path, PERFWORK_TRUST="verified")
    try:
        whole_circle(running, bot_settings)
    finally:
        running.end()


@pytest.mark.long
def test_a_whole_report_without_a_click_over_postgresql_and_rabbitmq_with_three_workers(
    tmp_path: Path, bot_settings: BotSettings, postgres: str, rabbitmq: str
) -> None:
    running = Running(tmp_path, 2, PERFWORK_TRUST="verified", DATABASE_URL=postgres, CELERY_BROKER_URL=rabbitmq)
    third = None
    try:
        running.wait("the front page", lambda: "Perfwork" in running.page("/"))
        third = running.start("up", "--only", "worker", "--queues", "mail,results,archives,git,web")
        whole_circle(running, bot_settings)
        assert third.poll() is None
    finally:
        if third:
            third.terminate()
            third.wait(30)
        running.end()


@pytest.mark.long
def test_from_a_dropped_result_to_the_table_and_through_a_kill(running: Running, bot_settings: BotSettings) -> None:
    world = World(running.directory / "pen", bot_settings)  # only to write results and letters with
    world.git, world.now = running.tree, START
    first, second = world.commit("mm/vmscan: walk cold folios first"), world.commit("net/relay: batch")
    world.tag("v9.1-rc1")
    running.wait("the front page", lambda: "Perfwork" in running.page("/"))

    running.drop("1.json", world.result(first, "mm/vmscan: walk cold folios first"))
    running.wait("the mail", lambda: running.mail.received)
    running.wait("the landing", lambda: "merged at v9.1-rc1, no response from author yet" in running.page("/v9.1/"))
    running.wait("the mail marked as sent", lambda: running.outbox()[0][0] == "sent")
    ((_, message_id),) = running.outbox()

    assert "nr_task " in running.page("/v9.1/report.txt")  # the lab's texts were there from the first day

    running.inbox.add(world.mail(DANA, "It is the lock.", to=message_id))
    running.wait("the answer", lambda: "the author has responded" in running.page("/v9.1/"))

    running.mail.stall = 3600.0  # the worker is in the middle of sending the next mail …
    before, victim = running.mail.rcpt_count, running.worker()
    running.drop("2.json", world.result(second, "net/relay: batch"))
    running.wait("the second mail on its way", lambda: running.mail.rcpt_count > before)
    assert [state for state, _ in running.outbox()] == ["sent", "sending"]
    os.killpg(victim, signal.SIGKILL)  # … and is killed with all its children
    running.mail.stall = 0.0
    running.wait("a new worker", lambda: running.worker() != victim)
    running.wait("the second mail", lambda: [state for state, _ in running.outbox()] == ["sent", "sent"])
    assert len(running.mail.received) == 2  # nothing lost, nothing twice
    assert sorted(each.name for each in (running.directory / "var" / "drop" / "done").iterdir()) == ["1.json", "2.json"]


@pytest.mark.long
def test_the_demo_serves_and_ends_with_all_that_it_started(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "demo.log"
    command = [sys.executable, "manage.py", "demo", "--bind", f"127.0.0.1:{port}"]
    with log.open("wb") as out:
        env = {**os.environ, "PERFWORK_VAR": str(tmp_path / "var")}
        demo = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 3 * PATIENCE  # it tells its whole story first
        while log.read_text().count("runs as process") < 4:  # up, and its three
            assert demo.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        time.sleep(2)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
    for pid in re.findall(r"runs as process (\d+)", log.read_text()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.long
def test_it_ends_together(running: Running) -> None:
    running.wait("all three", lambda: running.log.read_text().count("runs as process") == 3)
    children = [int(pid) for pid in re.findall(r"runs as process (\d+)", running.log.read_text())]
    running.wait("the front page", lambda: "Perfwork" in running.page("/"))
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(30) == 0
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
