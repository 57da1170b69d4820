"""Follow docs/operating.md word by word in containers with Debian 12 and 13: `make operating` (as root).

Prints each command with its outcome and the first lines of its output; the first one that fails ends it. Then the
installation is broken on purpose: a backup that fails, a full disk. On the first Debian, 1.0 and 1.1 are then installed
by their own pages, upgraded by this one, and brought back. Requires debootstrap and systemd-nspawn. The container
shares the network of this machine, and how apt and pip reach their indexes; archive and tree are small ones inside it.
"""

from __future__ import annotations

import json
import mailbox
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASES = os.environ.get("PERFWORK_DEBIAN", "bookworm,trixie").split(",")
PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates,iproute2,procps,curl"
PAGE = ROOT / "docs" / "operating.md"
# Earlier versions, by their last commit.
BEFORE = {"1.0": "ac6ac18490105c58046022216d86d6e9e9d2a0a2", "1.1": "e98f7847307862df8a80dbef1acf65925ab5c9a6"}
NEWEST_OF_1_1 = "0014_rate_calendars"  # the page's example
BACK = "### Back to the version before"
_BLOCKS = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
# Where the page's addresses lead in a container.
_ARCHIVE, _TREE = (
    "https://lore.kernel.org/oe-lkp/0",
    "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git",
)


def page() -> str:
    """Return the page, without the way back, which is for those who come from an earlier version."""
    text = PAGE.read_text()
    return text.replace(section(text, BACK), "")


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a page in their order; one of several lines, or with a here-document, as a whole."""
    for block in _BLOCKS.findall(text):
        lines = iter(block.splitlines())
        for line in lines:
            whole = [line]
            while whole[-1].endswith(("\\", "&&")) or ("<<'EOF'" in line and whole[-1] != "EOF"):
                whole.append(next(lines))
            yield "\n".join(whole)


def section(text: str, heading: str) -> str:
    """Return a section of a page, up to the next heading of any level."""
    return re.split(r"^#+ .*\n", text.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.M)[0]


def make_container(folder: Path, release: str, commit: str = "HEAD") -> Path:
    """Install a small Debian, with a clone in /srv/perfwork that stands at a commit; `git pull` brings it to HEAD."""
    box = folder / "box"
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(box)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copytree("/etc/apt/apt.conf.d", box / "etc" / "apt" / "apt.conf.d", dirs_exist_ok=True)
    if authorities := os.environ.get("PIP_CERT"):  # of an index inside a network
        shutil.copy(authorities, box / "etc" / "index-authorities.pem")
        (box / "etc" / "pip.conf").write_text("[global]\ncert = /etc/index-authorities.pem\n")
    source = box / "srv" / "source"
    git = ["git", "-c", "advice.detachedHead=false"]
    subprocess.run([*git, "clone", "-q", "--bare", ROOT, source / "perfwork.git"], check=True)
    subprocess.run([*git, "-C", source / "perfwork.git", "branch", "-f", "current"], check=True)
    subprocess.run(
        [*git, "clone", "-q", "-b", "current", source / "perfwork.git", box / "srv" / "perfwork"], check=True
    )
    inside = [*git, "-C", box / "srv" / "perfwork"]
    subprocess.run([*inside, "reset", "-q", "--hard", commit], check=True)
    subprocess.run([*inside, "remote", "set-url", "origin", "/srv/source/perfwork.git"], check=True)
    with (box / "etc" / "hosts").open("a") as hosts:
        hosts.write("127.0.0.1 localhost bot.example.org perf.example.org\n")
    with closing(mailbox.mbox(ROOT / "fixtures" / "mail" / "thread.mbox", create=False)) as mails:
        make_repository(source / "oe-lkp.git", {f"{number}": {"m": bytes(mail)} for number, mail in enumerate(mails)})
    make_repository(source / "linux.git", {"Linux 6.1": {"MAINTAINERS": b"Maintainers List\n"}})
    instead = "".join(
        f'[url "file:///srv/source/{name}.git"]\n\tinsteadOf = {url}\n'
        for name, url in (("oe-lkp", _ARCHIVE), ("linux", _TREE))
    )
    (box / "etc" / "gitconfig").write_text(f"{instead}[safe]\n\tdirectory = *\n")
    return box


def make_repository(path: Path, commits: Mapping[str, Mapping[str, bytes]]) -> None:
    """Make a bare repository with these commits, by title, and the files of each."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "master", path], check=True)
    stream = b""
    for number, (title, files) in enumerate(commits.items()):
        who = f"Ada Reed <ada@dev.example> {1_700_000_000 + number} +0000"
        stream += f"commit refs/heads/master\ncommitter {who}\ndata {len(title)}\n{title}\n".encode()
        for name, content in files.items():
            stream += f"M 100644 inline {name}\ndata {len(content)}\n".encode() + content + b"\n"
    subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input=stream, check=True)


class Container:
    """A booted container."""

    def __init__(self, box: Path) -> None:
        command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "-D", str(box)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.leader = self._leader()
        (box / "root" / "environment").touch()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.run("systemctl is-system-running --wait").returncode not in (0, 1):
            time.sleep(0.5)

    def _leader(self) -> str:
        """Return the pid of its systemd."""
        for _ in range(200):
            found = subprocess.run(
                ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True
            ).stdout.split()
            if found:
                return found[0]
            time.sleep(0.1)
        sys.exit("systemd-nspawn started nothing")

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        inside = [
            "nsenter",
            "--target",
            self.leader,
            "--all",
            "--root",
            "--wd",
            "env",
            "-i",
            "HOME=/root",
            "LANG=C.UTF-8",
        ]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        kept = "r=$?; pwd >/root/where; export -p >/root/environment; exit $r"  # as in the shell that pastes them
        script = f'. /root/environment; cd "$(cat /root/where 2>/dev/null || echo /)"\n{text}\n{kept}'
        command = [*inside, path, "DEBIAN_FRONTEND=noninteractive", "bash", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200)

    def end(self) -> None:
        subprocess.run(["kill", "-s", "RTMIN+4", self.leader])  # systemd(1): power off
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


TO = "perfbot+0123456789abcdef@bot.example.org"
MAIL = f"'From: a@dev.example' 'To: {TO}' 'Message-ID: <pipe@dev.example>' 'Subject: x' '' 'x'"
LOG = "journalctl -u 'postfix*'"
PIPED = f"for i in $(seq 30); do {LOG} | grep -q 'relay=perfwork.*sent' && exit; sleep 1; done; {LOG} | tail -5; exit 1"
BACKUPS = "/var/backups/perfwork"
READ = "from tracker.models import Archive; print([(row.path, row.seen) for row in Archive.objects.all()])"
FILLED = (
    "systemctl stop perfwork; mount -t tmpfs -o size=64m,mode=750,uid=perfwork,gid=perfwork tmpfs /var/lib/perfwork;"
    " systemctl start perfwork; sleep 10; dd if=/dev/zero of=/var/lib/perfwork/filler bs=1M 2>/dev/null; "
)
UPLOAD = '-H "Authorization: Bearer $KEY" --data-binary @fixtures/results/05-sched-fair.json https://perf.example.org/api/v1/results'
RETRY = "--retry 60 --retry-delay 1 --retry-all-errors"  # it has just been started
# What an installation has, whatever its version: rows of each table, and the state of each report.
HAS = """
import json, sqlite3
rows = sqlite3.connect("file:/var/lib/perfwork/perfwork.sqlite3?mode=ro", uri=True)
named = rows.execute("select name from sqlite_master where type = 'table' and name like 'tracker_%'")
tables = [name for name, in named]
counts = {name: rows.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}
states = dict(rows.execute("select culprit_id, state from tracker_report"))
print(json.dumps({"counts": counts, "states": states}))
"""
# What they must keep, and what goes in before.
KEPT = (
    "report",
    "bisectresult",
    "finding",
    "measurement",
    "message",
    "rawmessage",
    "outgoingmail",
    "event",
    "suggestion",
    "archive",
)
TAKEN_IN = (
    "cp fixtures/results/*.json /tmp/ && chmod 644 /tmp/*.json",
    "perfwork ingest /tmp/*.json",
    "cp fixtures/mail/thread.mbox /tmp/ && perfwork read /tmp/thread.mbox",
    "perfwork outbox list",
)
# What the page takes for granted before a command.
PREPARATIONS = {
    # curl is to know the certificate that the page makes for trying it out.
    "perfwork backup /var/backups/perfwork/empty.tar": "export CURL_CA_BUNDLE=/etc/ssl/perf.example.org.pem",
    # Its section begins with an installation on SQLite.
    # The scheduler was stopped while it started, and its lease ends within a minute: units see this machine's boot id,
    # and commands that of the container, so that nobody knows that it has died.
    "perfwork backup /var/backups/perfwork/sqlite.tar": "sleep 65; perfwork setup --set DATABASE_URL=",
}
# What must hold at the end, beyond that every command succeeded.
CHECKS: Sequence[tuple[str, str]] = (
    ("the units run", "systemctl is-active perfwork nginx postfix perfwork-daily.timer"),
    ("the site answers by TLS", f"curl -sf {RETRY} --cacert /etc/ssl/perf.example.org.pem https://perf.example.org/"),
    ("http leads to https", "curl -sI http://perf.example.org/ | grep -q '301 Moved'"),
    ("a mail to the bot goes into the pipe", f"printf '%s\\n' {MAIL} | sendmail -f a@dev.example {TO}; {PIPED}"),
    ("the daily service makes a backup", f"systemctl start perfwork-daily && ls {BACKUPS}/20*.tar"),
    ("a key is made", "export KEY=$(perfwork apikey create lab --producer '*')"),
    ("the archive was read", f"perfwork shell -v0 -c '{READ}' | grep \"oe-lkp/git/0.git', [1-9]\""),
    (
        "a backup that fails is a problem",
        f"chown root {BACKUPS}; chmod 755 {BACKUPS}; ! systemctl start perfwork-daily &&"
        f" touch -d '3 days ago' {BACKUPS}/*.tar; perfwork status | grep 'no backup of the last two days'",
    ),
    (
        "a backup heals it",
        f"chown perfwork {BACKUPS} && systemctl start perfwork-daily && ! perfwork status | grep 'no backup'",
    ),
    ("a full disk is a problem", f"{FILLED} perfwork status | grep 'is full'"),
    ("… that the probe tells as well", f"curl -s {RETRY} https://perf.example.org/readyz | grep disk"),
    ("… and PostgreSQL stores what comes in", f"curl -sf {UPLOAD} | grep new"),
    ("… and heals", "rm /var/lib/perfwork/filler; ! perfwork status | grep 'is full'"),
    ("nothing failed", "! systemctl --failed --no-legend | grep perfwork"),
)


def main() -> None:
    if os.geteuid() or not shutil.which("debootstrap") or not shutil.which("systemd-nspawn"):
        sys.exit("NOT FOLLOWED: requires root, debootstrap and systemd-container (apt install …)")
    for release in RELEASES:
        begun = time.monotonic()
        print(f"Debian {release}")
        follow(release)
        count = len([*commands(page())])
        print(f"followed on {release}: {count} commands in {(time.monotonic() - begun) / 60:.1f} minutes")
    for version, commit in BEFORE.items():
        if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", commit], capture_output=True).returncode:
            sys.exit(f"NOT FOLLOWED: this clone lacks the commit of {version}")
        begun = time.monotonic()
        print(f"{version} on Debian {RELEASES[0]}")
        upgrade(RELEASES[0], version, commit)
        print(f"upgraded from {version}, and back, in {(time.monotonic() - begun) / 60:.1f} minutes")


def follow(release: str) -> None:
    """Follow the page in a container of this release; SystemExit for the first command that fails."""
    with tempfile.TemporaryDirectory(prefix="operating-", dir="/var/tmp") as name:
        container = Container(make_container(Path(name), release))
        try:
            for what, command in [*(("", command) for command in commands(page())), *CHECKS]:
                if preparation := PREPARATIONS.get(command):
                    prepared = container.run(preparation)
                    assert prepared.returncode == 0, prepared.stderr
                paste(container, command, what)
        finally:
            container.end()


def paste(container: Container, command: str, what: str = "") -> str:
    """Run a command, and print its outcome; return what it printed. SystemExit if it fails."""
    done = container.run(command)
    print(f"{'ok  ' if done.returncode == 0 else 'FAIL'} {what or command.splitlines()[0][:110]}", flush=True)
    for line in done.stdout.splitlines()[:12]:
        print(f"       {line[:110]}", flush=True)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def upgrade(release: str, version: str, commit: str) -> None:
    """Install an earlier version by its own page, upgrade it by ours, and bring it back; nothing may get lost."""
    old_page = subprocess.check_output(["git", "-C", ROOT, "show", f"{commit}:docs/operating.md"], text=True)
    old_install, forward, back = (
        section(old_page, "## Install"),
        section(PAGE.read_text(), "## Upgrade"),
        section(PAGE.read_text(), BACK),
    )
    migrations = subprocess.check_output(
        ["git", "-C", ROOT, "ls-tree", "--name-only", commit, "tracker/migrations/"], text=True
    )
    assert NEWEST_OF_1_1 in back, "the page's example is another one"
    last = max(re.findall(r"/(\d{4}_\w+)\.py", migrations))
    with tempfile.TemporaryDirectory(prefix="operating-", dir="/var/tmp") as name:
        container = Container(make_container(Path(name), release, commit))
        try:
            for command in [*commands(old_install), *TAKEN_IN]:
                if "changepassword" not in command:  # asks
                    paste(container, command)
            before = has(container)
            for command in commands(forward):
                paste(container, command)
            lost_nothing(before, has(container))
            for command in commands(back):
                paste(container, command.replace(NEWEST_OF_1_1, last).replace("e98f7847", commit))
            lost_nothing(before, has(container))
        finally:
            container.end()


def has(container: Container) -> dict[str, dict[str, object]]:
    """Return what the installation has, once its duties are done."""
    time.sleep(20)
    counted: dict[str, dict[str, object]] = json.loads(paste(container, f"python3 - <<'EOF'{HAS}EOF", "what is there"))
    return counted


def lost_nothing(before: dict[str, dict[str, object]], after: dict[str, dict[str, object]]) -> None:
    """SystemExit if a report has another state than before, or if a table has other rows."""
    for name in KEPT:
        table = f"tracker_{name}"
        if before["counts"][table] != after["counts"][table]:
            sys.exit(f"{table} had {before['counts'][table]} rows, and has {after['counts'][table]}")
    if before["states"] != after["states"]:
        sys.exit(f"the reports were {before['states']}, and are {after['states']}")


if __name__ == "__main__":
    main()
