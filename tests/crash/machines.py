"""Five machines share PostgreSQL, RabbitMQ and a mail server; each is killed, cut off and slowed: `make machines`.

`make soak` (`--minutes 20`) goes on with random faults and with clocks that differ by up to eight seconds, and draws
curves of memory, of what waits, and of what was done.

Two web servers, two workers and a scheduler, each in a network and a pid namespace of its own, on a network that only
they are on (10.77.0.0/24 behind no router). A lab hands in a result every half second, to whichever web server answers.
At the end every result must be there once, and every mail have arrived once. Requires root, iproute2, PostgreSQL and
RabbitMQ.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from statistics import median
from typing import Any

import django
from aiosmtpd.controller import Controller

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tracker.settings")
django.setup()

from bot.demo import DemoInbox
from tests.conftest import ROOT
from tests.support.servers import rabbit
from tests.support.world import START
from tracker.domain.text import tag_of

HUB, NETWORK, SMTP_PORT, WEB_PORT = "pw-hub", "10.77.0", 2525, 8000
SERVER = f"{NETWORK}.1"
SKEWS = {"web1": 3.0, "web2": -3.0, "worker1": 4.0, "worker2": -4.0, "beat": 2.0}  # seconds by which clocks are off
ROLES = {"web1": "web", "web2": "web", "worker1": "worker", "worker2": "worker", "beat": "beat"}
BEAT = 5.0  # seconds
FAULT, REST = 9.0, 6.0  # seconds of a fault, and after it
EVERY = 0.5  # seconds between two results
SAMPLE = 5.0  # seconds between two looks at memory
BLOCKS = " ▁▂▃▄▅▆▇█"
PATIENCE = 120.0  # seconds after the last fault
NO_LIMITS = "per_author_a_day = 0\nper_list_a_day = 0\na_day = 0\n[rate]\nall = 0\ndomain = 0\naddress = 0\n"
POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), Path("/nowhere"))


def sh(*command: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(each) for each in command], check=True, capture_output=True, text=True, **more)


@contextmanager
def network() -> Iterator[None]:
    """A network of namespaces: the hub with a bridge, and one for each machine."""
    remove()
    sh("ip", "netns", "add", HUB)
    sh("ip", "-n", HUB, "link", "set", "lo", "up")
    sh("ip", "-n", HUB, "link", "add", "br0", "type", "bridge")
    sh("ip", "-n", HUB, "addr", "add", f"{SERVER}/24", "dev", "br0")
    sh("ip", "-n", HUB, "link", "set", "br0", "up")
    for number, name in enumerate(ROLES):
        inside, outside = f"pw-{name}", f"to-{name}"
        sh("ip", "netns", "add", inside)
        sh("ip", "-n", HUB, "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", inside)
        sh("ip", "-n", HUB, "link", "set", outside, "master", "br0", "up")
        sh("ip", "-n", inside, "addr", "add", f"{address(number)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            sh("ip", "-n", inside, "link", "set", link, "up")
    try:
        yield
    finally:
        remove()


def remove() -> None:
    for name in (*(f"pw-{each}" for each in ROLES), HUB):
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def address(number: int) -> str:
    return f"{NETWORK}.{11 + number}"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL server in the hub, as the user of its package."""
    data = folder / "pg"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []}
    sh(POSTGRES / "initdb", "-D", data, "-A", "trust", "-U", "perfwork", **user, cwd="/")
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {NETWORK}.0/24 trust\n")
    command = [POSTGRES / "postgres", "-D", data, "-h", SERVER, "-p", "5432", "-k", data, "-c", "fsync=off"]
    log = (folder / "postgres.log").open("wb")
    server = subprocess.Popen([str(each) for each in command], stdout=log, stderr=log, cwd="/", **user)
    try:
        for _ in range(100):
            if not subprocess.run([str(POSTGRES / "pg_isready"), "-h", SERVER], capture_output=True).returncode:
                break
            time.sleep(0.1)
        sh(POSTGRES / "createdb", "-h", SERVER, "-U", "perfwork", "perfwork")
        yield f"postgres://perfwork@{SERVER}:5432/perfwork"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


class Machine:
    """One machine: a namespace of processes, with a part of Perfwork in it."""

    def __init__(self, name: str, number: int, env: dict[str, str], folder: Path, skew: float = 0.0) -> None:
        self.name, self.number = name, number
        self.env = {**env, "PERFWORK_VAR": str(folder / name), "PERFWORK_DROP": str(folder / name / "drop")}
        if skew:
            self.env |= {"PYTHONPATH": str(Path(__file__).parent / "skewed"), "SKEW_SECONDS": str(skew)}
        self.log = (folder / f"{name}.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        only = ["--only", ROLES[self.name], "--bind", f"{address(self.number)}:{WEB_PORT}"]
        up = [sys.executable, "manage.py", "up", *only]
        # Processes of another machine can't be seen: whether they live is known from leases alone.
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
        hostname = ["sh", "-c", f'hostname {self.name}; exec "$@"', "sh"]
        command = ["ip", "netns", "exec", f"pw-{self.name}", *inside, *hostname, *up]
        self.process = subprocess.Popen(command, cwd=ROOT, env=self.env, stdout=self.log, stderr=self.log)

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def pids(self) -> list[int]:
        found = sh("ip", "netns", "pids", f"pw-{self.name}").stdout.split()
        return [int(pid) for pid in found]

    # --- faults ---
    def killed(self) -> None:
        """Killed with all its processes, and started again as systemd does."""
        self.kill()
        time.sleep(FAULT / 2)
        self.start()
        time.sleep(FAULT / 2)

    def cut_off(self) -> None:
        """Its network is gone."""
        sh("ip", "-n", f"pw-{self.name}", "link", "set", "eth0", "down")
        time.sleep(FAULT)
        sh("ip", "-n", f"pw-{self.name}", "link", "set", "eth0", "up")

    def slowed(self) -> None:
        """It runs a tenth of the time."""
        end = time.monotonic() + FAULT
        while time.monotonic() < end:
            self._signal(signal.SIGSTOP)
            time.sleep(0.9)
            self._signal(signal.SIGCONT)
            time.sleep(0.1)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


@dataclass
class Received:
    """The mail server: when the mail of each report's tag came first, and how often it came."""

    inbox: DemoInbox
    first: dict[str, float] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        raw = envelope.content.replace(b"\r\n", b"\n")
        head = raw.partition(b"\n\n")[0].decode("utf-8", "replace")
        tag = next(line for line in head.splitlines() if line.startswith("X-Perfwork-Report:")).split()[1]
        self.times[tag] += 1
        self.first.setdefault(tag, time.monotonic())
        self.inbox.add(raw)  # the list's archive, which is evidence
        return "250 2.0.0 taken"


class Lab(threading.Thread):
    """Hands in a result every half second, to the other web server if one does not answer, until it is accepted."""

    def __init__(self, key: str) -> None:
        super().__init__(daemon=True)
        self.key, self.accepted, self.asked, self.stop = key, dict[str, float](), 0, threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            number += 1
            sha = f"{number:08x}" * 5
            while not self.stop.is_set():
                self.asked += 1
                if self._hand_in(sha, self.asked % 2):
                    self.accepted[sha] = time.monotonic()
                    break
            time.sleep(EVERY)

    def _hand_in(self, sha: str, web: int) -> bool:
        url = f"http://{address(web)}:{WEB_PORT}/api/v1/results"
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(result(sha)).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=3) as answer:
                return bool(answer.status in (200, 202))
        except (OSError, urllib.error.URLError):
            return False


class Sampler(threading.Thread):
    """Looks every few seconds: the memory of each machine in MiB, and how many accepted results have no mail yet."""

    def __init__(self, machines: Sequence[Machine], lab: Lab, received: Received) -> None:
        super().__init__(daemon=True)
        self.machines, self.lab, self.received = machines, lab, received
        self.curves: dict[str, list[float]] = {name: [] for name in (*ROLES, "results", "mails", "waiting")}
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(SAMPLE):
            for machine in self.machines:
                self.curves[machine.name].append(sum(map(resident, machine.pids())))
            results, mails = len(self.lab.accepted), len(self.received.first)
            for name, value in (("results", results), ("mails", mails), ("waiting", results - mails)):
                self.curves[name].append(value)

    def draw(self) -> None:
        """Print each curve as a line of blocks, from 0 to its largest value."""
        for name, curve in self.curves.items():
            step = max(1, len(curve) // 80)
            shown = [max(curve[at : at + step]) for at in range(0, len(curve), step)]
            top = max(shown, default=0) or 1
            line = "".join(BLOCKS[min(len(BLOCKS) - 1, int(value / top * (len(BLOCKS) - 1)))] for value in shown)
            print(f"{name:8} {line} {curve[-1] if curve else 0:.0f}, at most {max(curve, default=0):.0f}")

    def grows(self) -> list[str]:
        """Return the machines that hold a quarter more memory in the last quarter than in the second one."""
        found = []
        for name in ROLES:
            curve = [value for value in self.curves[name] if value]
            quarter = len(curve) // 4
            if quarter and median(curve[-quarter:]) > 1.25 * median(curve[quarter : 2 * quarter]):
                found.append(name)
        return found


def resident(pid: int) -> float:
    """Return the memory of a process in MiB, shared pages divided among those who share them; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("Pss:")), 0.0)


def result(sha: str) -> dict[str, Any]:
    return {
        "schema": "perf-bisect-result/1", "id": f"lab-{sha[:8]}", "producer": {"name": "lab"},
        "created_at": START.isoformat(), "outcome": "conclusive", "tree": {"name": "linus", "branch": "master"},
        "good": {"sha": "1" * 40, "describe": "v9.0"}, "bad": {"sha": "2" * 40, "describe": "v9.1-rc1"},
        "parent": {"sha": "a" * 40, "subject": "mm: prepare"},
        "first_bad": {"sha": sha, "subject": f"mm: change {sha[:8]}",
                      "author": {"name": f"Dev {sha[:8]}", "email": f"dev-{sha[:8]}@dev.example"}},
        "test": {"suite": "vm-scan", "params": {"nr_task": "50%"}}, "machine": {"id": "lab7-m1", "cpus": 64},
        "measurements": [{"metric": "vm-scan.ops_per_sec", "unit": "1/s", "direction": "higher", "role": "headline",
                          "good": {"samples": [1000, 1010, 990]}, "bad": {"samples": [700, 705, 695]}}],
    }  # fmt: skip


def main() -> None:
    if os.geteuid() or not shutil.which("ip") or not POSTGRES.is_dir():
        sys.exit("NOT RUN: requires root, iproute2, postgresql and rabbitmq-server")
    minutes = int(sys.argv[sys.argv.index("--minutes") + 1]) if "--minutes" in sys.argv else 0
    if "--inside" in sys.argv:
        inside(minutes)
        return
    with network():
        command = ["ip", "netns", "exec", HUB, sys.executable, "-m", "tests.crash.machines", "--inside", *sys.argv[1:]]
        sys.exit(subprocess.run(command, cwd=ROOT).returncode)


def inside(minutes: int) -> None:
    """Run in the hub: start the servers and machines, cause the faults, and compare. `minutes`: of a soak, or 0."""
    with tempfile.TemporaryDirectory(prefix="machines-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        broker = folder / "rabbit"
        broker.mkdir()
        received = Received(DemoInbox(folder / "inbox"))
        smtp = Controller(received, hostname=SERVER, port=SMTP_PORT)
        smtp.start()
        with postgres(folder) as database, rabbit(broker, SERVER) as queue:
            clean = {name: value for name, value in os.environ.items() if not name.startswith("PERFWORK_")}
            (folder / "policy.toml").write_text(NO_LIMITS)
            hosts = ",".join(["127.0.0.1", SERVER, *(address(number) for number in range(len(ROLES)))])
            env = {
                **clean, "DATABASE_URL": database, "CELERY_BROKER_URL": queue, "ALLOWED_HOSTS": hosts,
                "SECRET_KEY": "several-machines-need-the-same-secret-of-fifty-characters", "PERFWORK_PERIOD": str(BEAT),
                "EMAIL_URL": f"smtp://{SERVER}:{SMTP_PORT}", "PERFWORK_APPROVE_FIRST": "off", "PERFWORK_LEASE": "10",
                "PERFWORK_TRUST": "open", "PERFWORK_ARCHIVES": str(received.inbox.path), "LOG_LEVEL": "WARNING",
                "PERFWORK_SMTP_TIMEOUT": "5", "PERFWORK_POLICY": str(folder / "policy.toml"), "PERFWORK_BASE_URL": f"http://{address(0)}:{WEB_PORT}",
            }  # fmt: skip
            try:
                run(env, folder, received, minutes)
            finally:
                smtp.stop()


def manage(env: dict[str, str], folder: Path, *arguments: str) -> str:
    given = {**env, "PERFWORK_VAR": str(folder / "driver")}
    return sh(sys.executable, "manage.py", *arguments, cwd=ROOT, env=given).stdout


def run(env: dict[str, str], folder: Path, received: Received, minutes: int) -> None:
    manage(env, folder, "migrate", "-v0")
    key = manage(env, folder, "apikey", "create", "lab", "--scope", "results", "--producer", "*").split()[-1]
    skews = SKEWS if minutes else {}
    machines = [Machine(name, number, env, folder, skews.get(name, 0.0)) for number, name in enumerate(ROLES)]
    for machine in machines:
        machine.start()
    time.sleep(15)
    for number, name in enumerate(skews):
        if ROLES[name] == "web" and abs(clock_of(number) - skews[name]) > 1:
            sys.exit(
                f"{name}: its clock is {clock_of(number):+.1f} s off, not {skews[name]:+.1f} s: the soak proves nothing"
            )
    lab = Lab(key)
    lab.start()
    sampler = Sampler(machines, lab, received)
    sampler.start()
    windows: list[tuple[str, float, float]] = []

    def window(what: str, fault: Callable[[], None]) -> None:
        begin = time.monotonic()
        fault()
        windows.append((what, begin, time.monotonic()))
        time.sleep(REST)

    try:
        window("no fault", lambda: time.sleep(20))
        for machine, fault in faults(machines, minutes):
            window(f"{machine.name} {fault.__name__.replace('_', ' ')}", fault)
        lab.stop.set()
        lab.join(20)
        end = time.monotonic() + PATIENCE
        while len(received.first) < len(lab.accepted) and time.monotonic() < end:
            time.sleep(1)
        time.sleep(3 * BEAT)
        sampler.stop.set()
        code = judge(env, folder, lab, received, windows)
        sampler.draw()
        if minutes and (growing := sampler.grows()):
            print(f"memory grows: {', '.join(growing)}")
            code = 1
        sys.exit(code)
    finally:
        for machine in machines:
            machine.kill()


def clock_of(web: int) -> float:
    """Return by how many seconds a web server's clock is off, as the quickest of its answers says."""
    answers = []
    for _ in range(5):
        began = time.time()
        with urllib.request.urlopen(f"http://{address(web)}:{WEB_PORT}/healthz", timeout=5) as answer:
            said = parsedate_to_datetime(answer.headers["Date"]).timestamp()
        answers.append((time.time() - began, said + 0.5 - began))  # it says whole seconds
    return min(answers)[1]


def faults(machines: Sequence[Machine], minutes: int) -> Iterator[tuple[Machine, Callable[[], None]]]:
    """Yield every fault of every machine once; in a soak, random ones until the time is over."""
    every = [(each, fault) for each in machines for fault in (each.killed, each.cut_off, each.slowed)]
    end, dice = time.monotonic() + 60 * minutes, random.Random(31)
    if not minutes:
        yield from every
    while minutes and time.monotonic() < end:
        yield dice.choice(every)


STATES = """
import json
from collections import Counter
from tracker.models import BisectResult, OutgoingMail, Report
print(json.dumps([BisectResult.objects.count(), Report.objects.count(),
                  Counter(OutgoingMail.objects.values_list("state", flat=True))]))
"""


def judge(
    env: dict[str, str], folder: Path, lab: Lab, received: Received, windows: Sequence[tuple[str, float, float]]
) -> int:
    """Print what became of the results, and how long their mail took; return 1 if one is lost or doubled."""
    results, reports, states = json.loads(manage(env, folder, "shell", "-v0", "-c", STATES).splitlines()[-1])
    by_tag = {tag_of(sha): at for sha, at in lab.accepted.items()}
    took = {tag: received.first[tag] - at for tag, at in by_tag.items() if tag in received.first}
    twice = sum(count > 1 for count in received.times.values())
    lost = len(by_tag) - len(took)
    print(f"{len(by_tag)} results accepted, {lab.asked} times handed in; {results} stored, {reports} reports")
    print(f"mails {states}")
    print(f"lost {lost}, twice {twice}; beat {BEAT:.0f} s, two beats {2 * BEAT:.0f} s")
    print(f"{'results handed in while':26}{'number':>7}{'median':>9}{'longest':>9}   seconds until their mail arrived")
    for what, begin, end in windows:
        within = [seconds for tag, seconds in took.items() if begin <= by_tag[tag] <= end]
        if within:
            print(f"{what:26}{len(within):7}{median(within):9.1f}{max(within):9.1f}")
    wrong = lost or twice or results != reports or set(states) != {"sent"}
    if wrong:
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    main()
