"""`setup`: make an installation on a Debian machine, or bring it up to date; run again, it changes only what differs.

As root. It says each thing that it made or changed; the commands that it runs for the service run as its user.
"""

import base64
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from nacl.signing import SigningKey

from bot import deployment
from bot.deployment import ARCHIVES, SETTINGS, STATE, TREES, NewMirror
from bot.management import unavailable, usage_error

USER = "perfwork"
BACKUPS = Path("/var/backups/perfwork")
COMMAND = Path("/usr/local/bin/perfwork")
UNITS = Path("/etc/systemd/system")
DKIM_KEY = STATE / "dkim.key"
_CREATE_DATABASE = ("createdb", "-O", USER, "-E", "UTF8", "-T", "template0", USER)  # whatever the cluster's locale is
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
            "--operator",
            action="append",
            default=[],
            metavar="ADDRESS",
            help="whose mail speaks for the lab; repeatable",
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
        if not root and os.geteuid() and (not dry_run or piece == "dns"):
            raise CommandError(
                "setup writes to /etc, and reads keys: run it as root, or with --dry-run to see what it would do",
                returncode=os.EX_NOPERM,
            )
        self.root, self.dry_run, self.writes_only = Path(root or "/"), dry_run, bool(root)
        self.changes = False  # whether anything was, or would be, made or changed
        try:
            if piece:
                self.stdout.write(self._piece(piece, options["relay"]), ending="")
            else:
                self._install(options)
                if not self.changes:
                    self.stdout.write("nothing to change")
                if not (self.dry_run or self.writes_only):
                    self.stdout.write(f"next: systemctl {self._next()}")
        except ValueError as mistake:
            raise usage_error(str(mistake)) from None
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
            case _:
                return self._dns(values)

    def _dns(self, values: Mapping[str, str]) -> str:
        """Return the records for DNS; a DKIM key is made if there is none."""
        key = Path(values.get("PERFWORK_DKIM_KEY") or DKIM_KEY)
        file = str(self._below(key))
        if not self._below(key).exists():
            if self.dry_run:
                raise ValueError(f"{key} does not exist: without --dry-run, it is made")
            if self.writes_only:
                self._below(key).parent.mkdir(parents=True, exist_ok=True)
            self._run("openssl", "genrsa", "-out", file, "2048", as_service=True)
        private = self._run("cat", file, as_service=True, reads=True)
        if private.lstrip().startswith(b"-----BEGIN"):
            rsa = ("openssl", "rsa", "-in", file, "-pubout", "-outform", "DER")
            kind, public = "rsa", self._run(*rsa, as_service=True, reads=True)
        else:
            try:
                kind, public = "ed25519", bytes(SigningKey(base64.b64decode(private)).verify_key)
            except ValueError:
                raise ValueError(f"{key}: expected an RSA key in PEM, or an Ed25519 seed in base64") from None
        selector = values.get("PERFWORK_DKIM_SELECTOR") or settings.PERFWORK_DKIM_SELECTOR
        records = deployment.dns(values, base64.b64encode(public).decode(), kind, selector)
        if values.get("PERFWORK_DKIM_KEY"):
            return records
        return f"{records}; once these are published: perfwork setup --set PERFWORK_DKIM_KEY={key}\n"

    # --- The installation, step by step ---

    def _install(self, options: Mapping[str, Any]) -> None:
        mirrors = [*map(deployment.archive_mirror, options["archive"]), *map(deployment.tree_mirror, options["tree"])]
        text = self._settings(options, mirrors)
        values = deployment.read_settings(text)
        is_local = values.get("DATABASE_URL") == deployment.LOCAL_DATABASE
        if is_local and not (self.writes_only or self.dry_run or _has_user("postgres")):
            raise unavailable("PostgreSQL is not here: apt-get install postgresql")
        self._refuse_invalid(text)  # before anything is made
        self._user()
        self._write(SETTINGS, text, 0o640, group=USER)
        self._write(COMMAND, deployment.command_text(settings.BASE_DIR), 0o755)
        for unit in sorted((settings.BASE_DIR / "deploy" / "systemd").iterdir()):
            unit_text = unit.read_text().replace(deployment.CODE, str(settings.BASE_DIR))
            self._write(UNITS / unit.name, unit_text, 0o644, keeps=True)
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
        if is_local:
            self._postgresql()
        for mirror in mirrors:
            if deployment.place_of(values[mirror.setting], mirror) == mirror.path:
                self._clone(mirror)
        self._run(str(COMMAND), "migrate", "--verbosity", "0")
        self._run(str(COMMAND), "check", "--deploy")

    def _next(self) -> str:
        """Return what starts the new settings: the units that are enabled here, else all of Perfwork."""
        command = ["systemctl", "list-unit-files", "--no-legend", "--state=enabled", "perfwork*.service"]
        try:
            lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        except FileNotFoundError:  # no systemd
            lines = []
        enabled = [line.split()[0].removesuffix(".service") for line in lines if line.strip()]
        return f"restart {' '.join(enabled)}" if enabled else "enable --now perfwork perfwork-daily.timer"

    def _refuse_invalid(self, text: str) -> None:
        """Raise ValueError, in the words of `check`, if Perfwork would not start with these settings."""
        with tempfile.TemporaryDirectory(prefix="perfwork-setup-") as name:
            file = Path(name) / "perfwork.env"
            file.touch(mode=0o600)
            file.write_text(text)
            environment = self._environment() | {"PERFWORK_ENV": str(file), "PERFWORK_VAR": name}
            command = [sys.executable, "manage.py", "check"]
            done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
        if done.returncode:
            # A check's finding is "?: (perfwork.E002) CELERY_BROKER_URL: expected …", below a heading
            lines = [line for line in done.stderr.splitlines() if ": " in line and "SystemCheckError" not in line]
            words = re.sub(r"\A\S*: \(\w+\.\w+\) ", "", lines[0].strip()) if lines else done.stderr
            raise ValueError(words.strip().removeprefix("perfwork: "))

    def _settings(self, options: Mapping[str, Any], mirrors: Sequence[NewMirror]) -> str:
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
            values = {"SECRET_KEY": secrets.token_urlsafe(60), "PERFWORK_LIST_ADDRESS": "", **values}
        before = deployment.read_settings(current)
        for mirror in mirrors:
            listed = values.get(mirror.setting, before.get(mirror.setting, ""))
            if deployment.place_of(listed, mirror) is None:
                listed = f"{listed},{mirror.value}" if listed else mirror.value
                values |= {mirror.setting: listed, "PERFWORK_FETCH": "on"}
        for pair in options["set"]:
            name, equals, value = pair.partition("=")
            if not equals:
                raise ValueError(f"--set: expected NAME=VALUE, found {pair[:80]!r}")
            values[name] = value
        return deployment.with_settings(current, values, self._names())

    def _names(self) -> set[str]:
        return deployment.settings_in((settings.BASE_DIR / "deploy" / "perfwork.env").read_text())

    def _user(self) -> None:
        if self.writes_only or _has_user(USER):
            return
        self._run("useradd", "--system", "--home-dir", str(STATE), USER)
        self._say(f"user {USER}", "made")

    def _postgresql(self) -> None:
        """Make the role and its database on this machine, unless they are there."""
        if os.geteuid():  # a dry run: only root may ask
            return
        asked: Sequence[tuple[str, str, Callable[[], bytes]]] = (
            ("role", "pg_roles WHERE rolname", lambda: self._as_postgres("createuser", USER)),
            ("database", "pg_database WHERE datname", lambda: self._as_postgres(*_CREATE_DATABASE)),
        )
        for what, where, make in asked:
            if not self._as_postgres("psql", "-tAc", f"SELECT 1 FROM {where} = '{USER}'", reads=True).strip():
                make()
                self._say(f"PostgreSQL {what} {USER}", "made")

    def _clone(self, mirror: NewMirror) -> None:
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

    def _write(self, path: Path, text: str, mode: int, group: str = "", *, keeps: bool = False) -> None:
        """Write a file whole; one with this text gets its mode only. `keeps`: what was there before, as FILE.old."""
        target = self._below(path)
        before = self._read(path)
        if before == text:
            if not self.dry_run:
                target.chmod(mode)
            return
        kept = f"; what it was is in {path}.old" if before and keeps else ""
        self._say(str(path), f"changed{kept}" if before else "made")
        if self.dry_run:
            return
        if kept:
            target.with_name(f"{target.name}.old").write_text(before)
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
        self.changes = True

    def _as_postgres(self, *command: str, reads: bool = False) -> bytes:
        return self._run("runuser", "-u", "postgres", "--", *command, reads=reads)

    def _run(self, *command: str, as_service: bool = False, reads: bool = False) -> bytes:
        """Run a program in Perfwork's folder, and return what it printed. Raises CommandError with its words.

        `reads`: it changes nothing, and runs in a dry run, too. None of them gets root's terminal.
        """
        if as_service and not self.writes_only:
            command = ("runuser", "-u", USER, "--", "env", f"HOME={STATE}", *command)
        if self.dry_run and not reads:
            return b""
        done = subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env=self._environment(),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
            raise CommandError(
                f"{' '.join(command)[:200]}: {said[-600:] or done.returncode}", returncode=os.EX_SOFTWARE
            )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Return the environment without settings: what Django read from a file would win over the file that is new."""
        names = self._names() - {"PERFWORK_VAR"} | {"PERFWORK_ENV"}
        return {name: value for name, value in os.environ.items() if name not in names}


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
