"""`demo`: the whole workflow on loopback, in var/demo, from results to the triage table.

Results in, mail out, replies in, git walked, triage table: the real commands run on the story of bot/demo.py, one
after the other, then the pages are served and input is processed as it comes. A runner tests patches over the
network, as a lab's own would.

Its commands get none of this installation's settings, which would override the demo's, and have it write to a real
database and mail real people. Trust is open and nothing needs approval: no mail leaves this machine.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from bot import demo as story
from bot.archives.public_inbox import read_epoch
from bot.demo import DemoInbox, DemoTree, serve
from bot.mail.message import parse
from bot.management import no_input, unavailable
from bot.management.commands.up import host_and_port
from bot.processes import Supervisor

# Variables that any process needs from its environment; all others may be settings.
_KEPT = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "TMPDIR"})
_KEPT_PREFIXES = ("LC_", "PYTHON", "COVERAGE_", "COV_CORE_", "SSL_CERT_")


class Command(BaseCommand):
    help = "Run the demo in var/demo with the real commands, then serve its pages and keep processing input."
    requires_system_checks = ["perfwork"]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-serve", action="store_true", help="exit after the triage table")
        parser.add_argument("--again", action="store_true", help="serve the existing demo without running it again")
        parser.add_argument("--database", default="", metavar="URL", help="an empty database, by default a SQLite file")
        parser.add_argument("--bind", type=host_and_port, default="127.0.0.1:8000", metavar="HOST:PORT")

    def handle(self, *, no_serve: bool, again: bool, bind: str, database: str, **options: Any) -> None:
        directory = settings.VAR / "demo"
        if again and not (directory / "env").exists():
            raise no_input("no demo yet: run `make demo` first")
        if not again:
            shutil.rmtree(directory, ignore_errors=True)
        demo = Demo(directory, bind, database or f"sqlite:///{directory / 'perfwork.sqlite3'}", self)
        catcher = serve(demo.inbox, demo.port)
        try:
            if not again:
                demo.play()
            if not no_serve:
                demo.say(
                    "", f"Put results into {directory / 'drop'} and mail into {directory / 'inbox'}: the pages update."
                )
                demo.serve(bind)
        except subprocess.CalledProcessError as error:
            raise unavailable(f"a step of the demo failed with exit code {error.returncode}") from None
        finally:
            catcher.stop()


class Demo:
    """A directory with all files of the demo, and the real commands run on it."""

    def __init__(self, directory: Path, bind: str, database: str, command: BaseCommand) -> None:
        self.directory, self.command = directory, command
        self.env_file = directory / "env"
        self.inbox = DemoInbox(directory / "inbox")
        self.tree = DemoTree(directory / "linux.git")
        self.port = free_port()
        if self.env_file.exists():  # the SMTP server's port of an earlier run
            line = next(line for line in self.env_file.read_text().splitlines() if line.startswith("EMAIL_URL="))
            self.port = int(line.rpartition(":")[2])
        (directory / "drop").mkdir(exist_ok=True)
        (directory / "policy.toml").write_text("# No limit: some demo authors get many mails.\nper_author_a_day = 0\n")
        if not self.env_file.exists():
            self.env_file.write_text(self._environment(bind, database))

    def play(self) -> None:
        """Run the story, step by step."""
        self.say("1. Create a database, with the lab's v5.6 report as history")
        self.manage("migrate", "--verbosity", "0")
        self.manage("loaddata", "v5_6")
        self.manage("refold")
        culprits = story.build_tree(self.tree)
        self.say("2. The lab submits bisect results; a mail is composed for each conclusive one")
        self.manage("ingest", "fixtures/results", "fixtures/measurements")
        self.say("3. The bot sends its mail; a local SMTP server files it in a list archive, like lore")
        self.manage("outbox", "send")
        mails = [parse(raw.raw) for raw in read_epoch(self.inbox.epoch)]
        reports = {title: mail for mail in mails for title, sha in culprits.items() if f"commit: {sha} " in mail.text}
        self.say("4. Authors reply by mail, and one posts a patch in another thread")
        for number, reply in enumerate(story.STORY["answers"], start=1):
            self.inbox.add(story.answer(reply, reports[reply["culprit"]], datetime.now(UTC), number))
            self.command.stdout.write(f"  {story.PEOPLE[reply['author']].name} replies about {reply['culprit']}")
        for raw in story.from_people(datetime.now(UTC)):
            self.inbox.add(raw)
        self.command.stdout.write("  Pat Penguin and Ruth Rossi report regressions themselves")
        self.manage("read", str(self.directory / "inbox"))
        self.say("5. Find where the culprits landed")
        self.manage("track")
        self.say("6. A runner of the lab tests the patches that people asked it to test, and the bot answers them")
        self._test_patches()
        self.manage("outbox", "send")
        self.say("7. A fix and a revert are committed, and v9.1-rc3 is tagged")
        ids = {title: report.message_id for title, report in reports.items()}
        story.finish_tree(self.tree, ids, culprits, datetime.now(UTC))
        self.manage("track")
        self.say("8. The triage table")
        self.manage("triage", "v9.1")

    def _test_patches(self) -> None:
        """Open the jobs, and let the example runner take them over the network, as a lab's own would."""
        self.manage("lab")
        env = self._own_environment()
        create = [sys.executable, "manage.py", "apikey", "create", "runner", "--scope", "jobs"]
        made = subprocess.run(create, cwd=settings.BASE_DIR, env=env, check=True, capture_output=True, text=True)
        port = free_port()
        runner = ["fixtures/runner.py", "--url", f"http://127.0.0.1:{port}", "--tree", str(self.tree.path)]
        runner += ["--machine", "lab7-m2", "--machine", "lab7-d1", "--only-from", "@dev.example"]
        self.command.stdout.write(f"$ {' '.join(runner)}".replace(f"{settings.BASE_DIR}/", ""))
        self.command.stdout.flush()
        server = [sys.executable, "-m", "bot.web.server", f"127.0.0.1:{port}"]
        with subprocess.Popen(server, cwd=settings.BASE_DIR, env=env) as web:
            try:
                wait_for(port)
                env["PERFWORK_KEY"] = made.stdout.strip()
                subprocess.run([sys.executable, *runner], cwd=settings.BASE_DIR, env=env, check=True)
            finally:
                web.terminate()

    def say(self, *lines: str) -> None:
        for line in lines:
            self.command.stdout.write(self.command.style.MIGRATE_HEADING(line))
        self.command.stdout.flush()

    def manage(self, *arguments: str) -> None:
        """Print a command and run it on the demo's data."""
        shown = " ".join(arguments).replace(f"{settings.BASE_DIR}/", "")
        self.command.stdout.write(f"$ ./manage.py {shown}")
        self.command.stdout.flush()
        env = self._own_environment()
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=settings.BASE_DIR, env=env, check=True)

    def serve(self, bind: str) -> None:
        """Run `up` on the demo's data until Ctrl-C or SIGTERM, which also stops it."""
        command = [sys.executable, "manage.py", "up", "--bind", bind]
        start = partial(os.execve, sys.executable, command, self._own_environment())
        Supervisor({"up": start}, patience=30.0).run()

    def _own_environment(self) -> dict[str, str]:
        """Return the environment of the demo's commands, without this installation's settings."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
        return {**kept, "PERFWORK_ENV": str(self.env_file)}

    def _environment(self, bind: str, database: str) -> str:
        return "\n".join(
            [
                "# The demo's settings. Trust is open and nothing needs approval: no mail leaves this machine.",
                f"PERFWORK_VAR={self.directory}",
                f"DATABASE_URL={database}",
                "CELERY_BROKER_URL=filesystem://",
                f"EMAIL_URL=smtp://127.0.0.1:{self.port}",
                f"PERFWORK_BASE_URL=http://{bind}",
                "PERFWORK_BOT_ADDRESS=perfbot@bot.example.org",
                "PERFWORK_LIST_ADDRESS=perf-reports@lists.example.org",
                "PERFWORK_TRUST=open",
                "PERFWORK_APPROVE_FIRST=off",
                f"PERFWORK_POLICY={self.directory / 'policy.toml'}",
                f"PERFWORK_ARCHIVES={self.directory / 'inbox'}",
                f"PERFWORK_TREES=linus={self.directory / 'linux.git'},next={self.directory / 'linux.git'}#next",
                "PERFWORK_PERIOD=2",
                "PERFWORK_LEASE=30",
                "",
            ]
        )


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(port: int, seconds: float = 30.0) -> None:
    """Wait until something listens on a port of loopback. Raises CommandError."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise unavailable(f"the demo's web server did not start within {seconds:.0f} s")
