"""A test site: a database that is created once and copied for every test, and a web server."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PASSWORD = "a-long-password-of-kim"
CHROMIUM = "/usr/bin/chromium"


class Site:
    """A web server and its database. `fresh` restores the initial state; `url` is the base URL of the pages."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PERFWORK_", "DATABASE_"))}
        self.env = {
            **clean,
            "PERFWORK_VAR": str(directory),
            "PERFWORK_BASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "tracker.settings",
            "LOG_LEVEL": "WARNING",
            "EMAIL_URL": f"sendmail://{directory}/sendmail",
        }
        # Mail goes into files, from which the tests take the links in it.
        (directory / "mail" / "new").mkdir(parents=True, exist_ok=True)
        sendmail = directory / "sendmail"
        sendmail.write_text(f'#!/bin/sh\ncat >"$(mktemp {directory}/mail/new/XXXXXXXX)"\n')
        sendmail.chmod(0o700)
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Path:
        return self.directory / "perfwork.sqlite3"

    def run(self, *arguments: str) -> str:
        """Run a Python command on this site's database, and return its output."""
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, initial: Path) -> None:
        """Serve a copy of `initial`, the initial database of all tests. The first process to get here creates it."""
        with Path(f"{initial}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait: they would create the same
            if not initial.exists():
                self.run("-m", "tests.browser.made")
                shutil.copy(self.database, initial)
        self.initial = initial
        self.fresh()
        self.serve()

    def serve(self) -> None:
        """Start the web server, and wait until it answers."""
        web = ["-m", "bot.web.server", f"127.0.0.1:{self.port}"]
        log = (self.directory / "web.log").open("wb")
        self._server = subprocess.Popen([sys.executable, *web], cwd=ROOT, env=self.env, stderr=log, stdout=log)
        log.close()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/sign-in/", timeout=5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError((self.directory / "web.log").read_text())

    def fresh(self) -> None:
        """Put the initial database back, under a server that may have it open, and forget the mails of other tests."""
        for mail in (self.directory / "mail" / "new").iterdir():
            mail.unlink()
        with closing(sqlite3.connect(self.initial)) as initial, closing(sqlite3.connect(self.database)) as own:
            own.execute("PRAGMA synchronous=OFF")
            initial.backup(own)

    def stop(self) -> None:
        if self._server:
            self._server.terminate()
            self._server.wait(10)
