"""Follow docs/operating.md word by word in a container with Debian, systemd included: `make operating` (as root).

Prints each command with its outcome; the first one that fails ends it. Requires debootstrap and systemd-nspawn. The
container shares the network of this machine, and how apt and pip reach their indexes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = os.environ.get("PERFWORK_DEBIAN", "bookworm")
PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates,iproute2,procps,curl"
PAGE = ROOT / "docs" / "operating.md"
_BLOCKS = re.compile(r"^```(console|sh)\n(.*?)^```", re.M | re.S)


def commands() -> Iterator[str]:
    """Yield the commands of the page in their order; one of several lines, or with a here-document, as a whole."""
    for _, block in _BLOCKS.findall(PAGE.read_text()):
        lines = iter(block.splitlines())
        for line in lines:
            whole = [line]
            while whole[-1].endswith("\\"):
                whole.append(next(lines))
            if "<<'EOF'" in line:
                while whole[-1] != "EOF":
                    whole.append(next(lines))
            yield "\n".join(whole).replace("./manage.py", "perfwork")


def make_container(folder: Path) -> Path:
    """Install a small Debian, with the project's source of HEAD in /srv/perfwork."""
    box = folder / "box"
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(box)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copytree("/etc/apt/apt.conf.d", box / "etc" / "apt" / "apt.conf.d", dirs_exist_ok=True)
    if authorities := os.environ.get("PIP_CERT"):  # of an index inside a network
        shutil.copy(authorities, box / "etc" / "index-authorities.pem")
        (box / "etc" / "pip.conf").write_text("[global]\ncert = /etc/index-authorities.pem\n")
    code = box / "srv" / "perfwork"
    code.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", code], stdin=archive.stdout, check=True)
    with (box / "etc" / "hosts").open("a") as hosts:
        hosts.write("127.0.0.1 localhost bot.example.org perf.example.org\n")
    return box


class Container:
    """A booted container."""

    def __init__(self, box: Path) -> None:
        command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "-D", str(box)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.leader = self._leader()
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
        script = f'cd "$(cat /root/where 2>/dev/null || echo /)"\n{text}\nr=$?; pwd >/root/where; exit $r'
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
RETRY = "--retry 60 --retry-delay 1 --retry-all-errors"  # it has just been started
# What must hold at the end, beyond that every command succeeded.
CHECKS: Sequence[tuple[str, str]] = (
    ("the units run", "systemctl is-active perfwork nginx postfix perfwork-daily.timer"),
    ("the site answers by TLS", f"curl -sf {RETRY} --cacert /etc/ssl/perf.example.org.pem https://perf.example.org/"),
    ("http leads to https", "curl -sI http://perf.example.org/ | grep -q '301 Moved'"),
    ("a mail to the bot goes into the pipe", f"printf '%s\\n' {MAIL} | sendmail -f a@dev.example {TO}; {PIPED}"),
    ("the daily service makes a backup", "systemctl start perfwork-daily && ls /var/backups/perfwork/*.tar"),
    ("nothing failed", "! systemctl --failed --no-legend | grep perfwork"),
)


def main() -> None:
    if os.geteuid() or not shutil.which("debootstrap") or not shutil.which("systemd-nspawn"):
        sys.exit("NOT FOLLOWED: requires root, debootstrap and systemd-container (apt install …)")
    with tempfile.TemporaryDirectory(prefix="operating-", dir="/var/tmp") as name:
        container = Container(make_container(Path(name)))
        try:
            for what, command in [*(("", each) for each in commands()), *CHECKS]:
                done = container.run(command)
                print(
                    f"{'ok  ' if done.returncode == 0 else 'FAIL'} {what or command.splitlines()[0][:110]}", flush=True
                )
                if done.returncode:
                    sys.exit(f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        finally:
            container.end()


if __name__ == "__main__":
    main()
