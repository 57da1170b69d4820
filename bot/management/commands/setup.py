"""`setup`: make an installation on a Debian machine, or bring it up to date; run again, it changes only what differs.

As root. It says each thing that it made or changed; the commands that it runs for the service run as its user.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bot import deployment
from bot.deployment import ARCHIVES, SETTINGS, STATE, TREES, Mirror

USER = "perfwork"
BACKUPS = Path("/var/backups/perfwork")
COMMAND = Path("/usr/local/bin/perfwork")
UNITS = Path("/etc/systemd/system")
DKIM_KEY = STATE / "dkim.key"
QUESTIONS = {
    "site": "Host name of the pages, such as perf.example.org: ",
    "bot": "Address of the bot, such as perfbot@bot.example.org: ",
    "operator": "Your own address: ",
}


class Command(BaseCommand):
    help = "Install Perfwork on this machine: user, settings, database, systemd units, mirrors. As root; may run again."
    requires_system_checks = []  # there is no installation yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        piece = "print a piece: nginx's configuration, commands for Postfix, or DNS records (with a new DKIM key)"
        parser.add_argument("piece", nargs="?", choices=("nginx", "postfix", "dns"), help=piece)
        parser.add_argument("--site", default="", metavar="HOST", help="host name of the pages")
        parser.add_argument("--bot", default="", metavar="ADDRESS", help="the bot's address")
        parser.add_argument("--list", default="", metavar="ADDRESS", help="your list, which gets every report")
        parser.add_argument(
            "--operator", action="append", default=[], metavar="ADDRESS", help="who runs it; repeatable"
        )
        database = "postgresql: make one on this machine; or its URL; default: SQLite"
        parser.add_argument("--database", default="", metavar="URL", help=database)
        parser.add_argument("--archive", action="append", default=[], metavar="URL", help="clone an epoch; repeatable")
        parser.add_argument("--tree", action="append", default=[], metavar="NAME=URL", help="clone a tree; repeatable")
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any setting; repeatable")
        parser.add_argument("--relay", default="", metavar="HOST", help="with postfix: the smarthost")
        parser.add_argument("--root", default="", metavar="DIR", help="only write the files, below DIR: for an image")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")

    def handle(self, *, piece: str | None, root: str, dry_run: bool, **options: Any) -> None:
        if not root and not dry_run and os.geteuid():
            raise CommandError(
                "setup writes to /etc: run it as root, or with --dry-run to see what it would do",
                returncode=os.EX_NOPERM,
            )
        self.root, self.dry_run, self.writes_only = Path(root or "/"), dry_run, bool(root)
        try:
            if piece:
                self.stdout.write(self._piece(piece, options["relay"]), ending="")
            else:
                self._install(options)
        except ValueError as mistake:
            raise CommandError(str(mistake), returncode=os.EX_USAGE) from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}", returncode=os.EX_CANTCREAT) from None

    # --- Pieces, printed ---

    def _piece(self, piece: str, relay: str) -> str:
        values = deployment.read_settings(self._read(SETTINGS))
        match piece:
            case "nginx":
                return deployment.nginx((settings.BASE_DIR / "deploy" / "nginx.conf").read_text(), values)
            case "postfix":
                return deployment.postfix(values, settings.BASE_DIR, relay)
        key = Path(values.get("PERFWORK_DKIM_KEY") or DKIM_KEY)
        if not self._below(key).exists():
            if self.dry_run:
                raise ValueError(f"{key} does not exist: without --dry-run, it is made")
            if self.writes_only:
                self._below(key).parent.mkdir(parents=True, exist_ok=True)
            self._run("openssl", "genrsa", "-out", str(self._below(key)), "2048", as_service=True)
        done = self._run("openssl", "rsa", "-in", str(self._below(key)), "-pubout", "-outform", "DER", as_service=True)
        selector = values.get("PERFWORK_DKIM_SELECTOR") or settings.PERFWORK_DKIM_SELECTOR
        records = deployment.dns(values, base64.b64encode(done).decode(), selector)
        if values.get("PERFWORK_DKIM_KEY"):
            return records
        return f"{records}; Once these are published: perfwork setup --set PERFWORK_DKIM_KEY={key}\n"

    # --- The installation, step by step ---

    def _install(self, options: Mapping[str, Any]) -> None:
        mirrors = [*map(deployment.archive_mirror, options["archive"]), *map(deployment.tree_mirror, options["tree"])]
        is_new = not self._read(SETTINGS)
        text = self._settings(options, mirrors)  # refuses what is wrong before anything is made
        self._user()
        self._write(SETTINGS, text, 0o640, group=USER)
        self._write(COMMAND, deployment.command_text(settings.BASE_DIR), 0o755)
        for unit in sorted((settings.BASE_DIR / "deploy" / "systemd").iterdir()):
            self._write(UNITS / unit.name, deployment.relocated(unit.read_text(), settings.BASE_DIR), 0o644)
        if self.writes_only:
            return
        for folder in (BACKUPS, STATE, ARCHIVES, TREES):
            self._folder(folder, 0o700 if folder == BACKUPS else 0o750)
        if Path("/run/systemd/system").exists():
            self._run("systemctl", "daemon-reload")
        built = settings.DOCUMENTATION / "index.html"
        sources = (settings.BASE_DIR / "docs", settings.BASE_DIR / "bot", settings.BASE_DIR / "tracker")
        newest = max(file.stat().st_mtime for folder in sources for file in folder.rglob("*.[mp][dy]"))
        if not built.exists() or built.stat().st_mtime < newest:
            self._run(sys.executable, "manage.py", "documentation")
        values = deployment.read_settings(text)
        if values.get("DATABASE_URL") == deployment.settings_of(database="postgresql")["DATABASE_URL"]:
            self._postgresql()
        for mirror in mirrors:
            self._clone(mirror)
        self._run(str(COMMAND), "migrate", "--verbosity", "0")
        self._run(str(COMMAND), "check", "--deploy")
        if not self.dry_run:
            how = "enable --now perfwork perfwork-daily.timer" if is_new else "restart perfwork"
            self.stdout.write(f"next: systemctl {how}")

    def _settings(self, options: Mapping[str, Any], mirrors: Sequence[Mirror]) -> str:
        """Return the file of settings as it is to be. Raises ValueError."""
        current = self._read(SETTINGS)
        given = {"site": options["site"], "bot": options["bot"], "operator": ",".join(options["operator"])}
        for name in [name for name in QUESTIONS if not current and not given[name]]:
            if not sys.stdin.isatty():
                raise ValueError(f"--{name} is missing: the first setup needs --site, --bot and --operator")
            given[name] = input(QUESTIONS[name]).strip()
        values = deployment.settings_of(
            site=given["site"],
            bot=given["bot"],
            operators=given["operator"],
            reports=options["list"],
            database=options["database"],
        )
        if not current:
            current = (settings.BASE_DIR / "deploy" / "perfwork.env").read_text()
            values = {"SECRET_KEY": deployment.new_secret(), "PERFWORK_LIST_ADDRESS": "", **values}
        before = deployment.read_settings(current)
        for mirror in mirrors:
            listed = values.get(mirror.setting, before.get(mirror.setting, ""))
            values |= {mirror.setting: deployment.with_mirror(listed, mirror), "PERFWORK_FETCH": "on"}
        for pair in options["set"]:
            name, equals, value = pair.partition("=")
            if not equals:
                raise ValueError(f"--set: expected NAME=VALUE, found {pair[:80]!r}")
            values[name] = value
        return deployment.with_settings(current, values)

    def _user(self) -> None:
        if self.writes_only or subprocess.run(["id", USER], capture_output=True).returncode == 0:
            return
        self._run("useradd", "--system", "--home-dir", str(STATE), USER)
        self._say(f"user {USER}", "made")

    def _postgresql(self) -> None:
        """Make the role and its database on this machine, unless they are there."""
        asked: Sequence[tuple[str, str, Callable[[], bytes]]] = (
            ("role", "pg_roles WHERE rolname", lambda: self._as_postgres("createuser", USER)),
            ("database", "pg_database WHERE datname", lambda: self._as_postgres("createdb", "-O", USER, USER)),
        )
        for what, where, make in asked:
            if not self._as_postgres("psql", "-tAc", f"SELECT 1 FROM {where} = '{USER}'").strip():
                make()
                self._say(f"PostgreSQL {what} {USER}", "made")

    def _clone(self, mirror: Mirror) -> None:
        if mirror.path.exists():
            return
        self._say(str(mirror.path), f"cloned from {mirror.url}")  # before: a kernel's history takes minutes
        self.stdout.flush()
        how = "--mirror" if mirror.setting == "PERFWORK_ARCHIVES" else "--bare"
        unfinished = mirror.path.with_name(f".{mirror.path.name}.unfinished")
        self._run("mkdir", "-p", str(mirror.path.parent), as_service=True)
        self._run("rm", "-rf", str(unfinished), as_service=True)
        self._run("git", "clone", "--quiet", how, "--", mirror.url, str(unfinished), as_service=True)
        self._run("mv", str(unfinished), str(mirror.path), as_service=True)

    # --- What touches the machine ---

    def _below(self, path: Path) -> Path:
        return self.root / path.relative_to("/")

    def _read(self, path: Path) -> str:
        try:
            return self._below(path).read_text()
        except FileNotFoundError:
            return ""

    def _write(self, path: Path, text: str, mode: int, group: str = "") -> None:
        """Write a file whole; one with this text stays as it is."""
        target = self._below(path)
        before = self._read(path)
        if before == text:
            return
        self._say(str(path), "changed" if before else "made")
        if self.dry_run:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        if group and not self.writes_only:
            shutil.chown(unfinished, group=group)
        unfinished.chmod(mode)
        unfinished.replace(target)

    def _folder(self, path: Path, mode: int) -> None:
        if not path.exists():
            self._run("install", "-d", "-o", USER, "-g", USER, "-m", f"{mode:o}", str(path))
            self._say(str(path), "made")

    def _say(self, what: str, done: str) -> None:
        self.stdout.write(f"{what}: {f'would be {done}' if self.dry_run else done}")

    def _as_postgres(self, *command: str) -> bytes:
        return self._run("runuser", "-u", "postgres", "--", *command)

    def _run(self, *command: str, as_service: bool = False) -> bytes:
        """Run a program in Perfwork's folder, and return what it printed. Raises CommandError with its words."""
        if as_service and not self.writes_only:
            command = ("runuser", "-u", USER, "--", "env", f"HOME={STATE}", *command)
        if self.dry_run:
            return b""
        # What the file of settings said before, this process has in its environment, where it would win.
        template = (settings.BASE_DIR / "deploy" / "perfwork.env").read_text()
        names = deployment.settings_in(template) - {"PERFWORK_VAR"}
        environment = {name: value for name, value in os.environ.items() if name not in names}
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
            raise CommandError(
                f"{' '.join(command)[:200]}: {said[-600:] or done.returncode}", returncode=os.EX_SOFTWARE
            )
        return done.stdout
