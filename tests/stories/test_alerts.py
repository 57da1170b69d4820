"""Every alert fires by its cause, in a real Prometheus that asks a real web server, and ends with it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT, clean_environment
from tests.support.databases import migrated
from tests.support.needs import SERVERS, need
from tests.support.servers import free_port

KEY = "a-key-of-the-tests"
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text())
PATIENCE = 40  # seconds until an alert fires, or ends
CALM = """
from datetime import timedelta
from django.utils import timezone
from tracker.models import ServiceLease
ServiceLease.objects.update_or_create(name="scheduler", defaults={"lease_until": timezone.now() + timedelta(days=1)})
"""
# What causes an alert, and what ends it, in the database.
CAUSES = {
    "PerfworkScheduler": (
        "ServiceLease.objects.update(lease_until=now - timedelta(minutes=20))",
        "ServiceLease.objects.update(lease_until=now + timedelta(days=1))",
    ),
    "PerfworkTask": (
        "TaskRun.objects.create(task='send_mail', at=now, seconds=1, error='OSError: no route to host')",
        "TaskRun.objects.update(at=now, error='')",
    ),
    "PerfworkOutbox": (
        "mail = OutgoingMail.objects.create(message_id='a@b', raw=b'', sender='', recipients=[], subject='s',"
        " state='approved', composed_at=now);"
        "MailTransition.objects.create(mail=mail, became='approved', was='composed', by='r',"
        " at=now - timedelta(hours=3))",
        "OutgoingMail.objects.update(state='sent', sent_at=now)",
    ),
    "PerfworkInDoubt": (
        "OutgoingMail.objects.create(message_id='c@d', raw=b'', sender='', recipients=[], subject='s', purpose='x',"
        " state='in_doubt', composed_at=now)",
        "OutgoingMail.objects.filter(state='in_doubt').update(state='cancelled')",
    ),
    "PerfworkFailed": (
        "OutgoingMail.objects.create(message_id='e@f', raw=b'', sender='', recipients=[], subject='s', purpose='y',"
        " state='failed', composed_at=now)",
        "OutgoingMail.objects.filter(state='failed').update(state='cancelled')",
    ),
    "PerfworkClock": (
        "TaskRun.objects.update_or_create(task='send_mail', defaults={'at': now + timedelta(days=3), 'seconds': 1})",
        "TaskRun.objects.update(at=now)",
    ),
    "PerfworkQuarantine": (
        "RawMessage.objects.create(digest='q', compressed=b'', received_at=now, error='ValueError: no date')",
        "RawMessage.objects.update(error='')",
    ),
    "PerfworkJob": (
        "from django.core.management import call_command;"
        "call_command('ingest', 'fixtures/results/01-mm-vmscan.json', verbosity=0);"
        "LabJob.objects.create(report=Report.objects.get(), event_key='e', request='test a patch', proven=True,"
        " patch_mail='g@h', opened_at=now - timedelta(days=2), due_at=now)",
        "LabJob.objects.update(state='withdrawn')",
    ),
    "PerfworkArchive": (
        "Archive.objects.create(path='/srv/lore/x/git/0.git', error='not a git repository; clone it again')",
        "Archive.objects.update(error='')",
    ),
    "PerfworkTree": (
        "Tree.objects.create(name='alerting', path='/srv/git/x.git', role='next', error='no such directory')",
        "Tree.objects.update(error='')",
    ),
    "PerfworkQueue": (
        "from bot.tasks import read_archive; [read_archive.apply_async((0,)) for _ in range(1001)]",
        "from bot.celery import app; app.control.purge()",
    ),
}


class Installation:
    """A web server over a database, and a Prometheus that asks it every second."""

    def __init__(self, folder: Path, var: Path) -> None:
        self.folder, self.var = folder, var
        clean = clean_environment()
        self.env = {**clean, "PERFWORK_VAR": str(var), "PERFWORK_METRICS_KEY": KEY, "EMAIL_URL": "smtp://127.0.0.1:9"}
        self.env |= {"PERFWORK_PAGE_CACHE": "off", "LOG_LEVEL": "CRITICAL", "PERFWORK_TREES": "alerting=/srv/git/x.git"}
        (var / "backups").mkdir(parents=True, exist_ok=True)
        (var / "backups" / "new.tar").touch()
        self.env["PERFWORK_BACKUPS"] = str(var / "backups")
        self.port, self.prometheus_port = free_port(), free_port()
        self.web: subprocess.Popen[bytes] | None = None
        self.prometheus: subprocess.Popen[bytes] | None = None

    def shell(self, code: str) -> None:
        models = "MailTransition, OutgoingMail, RawMessage, ServiceLease, TaskRun, Archive, Tree, LabJob, Report"
        imports = (
            f"from datetime import timedelta\nfrom django.utils import timezone\nfrom tracker.models import {models}\n"
        )
        text = f"{imports}now = timezone.now()\n{code}"
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v0", "-c", text],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def start_web(self) -> None:
        command = [sys.executable, "-m", "bot.web.server", f"127.0.0.1:{self.port}"]
        self.web = subprocess.Popen(command, cwd=ROOT, env=self.env, stderr=subprocess.DEVNULL)

    def start_prometheus(self) -> None:
        rules = re.sub(r"for: \w+", "for: 0s", RULES.read_text()).replace("[5m]", "[8s]")
        (self.folder / "alerts.yaml").write_text(rules)
        (self.folder / "prometheus.yaml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\n"
            f"scrape_configs:\n  - job_name: perfwork\n    authorization: {{credentials: {KEY}}}\n"
            f"    static_configs: [{{targets: ['127.0.0.1:{self.port}']}}]\n"
        )
        command = ["prometheus", f"--config.file={self.folder}/prometheus.yaml", "--log.level=error"]
        command += [f"--storage.tsdb.path={self.folder}/tsdb", f"--web.listen-address=127.0.0.1:{self.prometheus_port}"]
        self.prometheus = subprocess.Popen(
            command, env={**os.environ, "PATH": SERVERS}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def firing(self) -> set[str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.prometheus_port}/api/v1/alerts", timeout=5) as answer:
                found = json.load(answer)["data"]["alerts"]
        except OSError:
            return {"Prometheus is not there yet"}
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def wait_until(self, holds: Callable[[set[str]], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds(found := self.firing()):
            assert time.monotonic() < deadline, f"{what}; firing: {found}"
            time.sleep(0.3)

    def fires_and_ends(self, alert: str, cause: Callable[[], None], end: Callable[[], None]) -> None:
        cause()
        self.wait_until(lambda found: alert in found, f"{alert} did not fire")
        end()
        self.wait_until(lambda found: alert not in found, f"{alert} did not end")

    def get(self, path: str) -> None:
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20).read()

    def stall(self) -> None:
        """Hand in results while the database is held by somebody else: they wait until it is free."""
        self.shell(
            "from tracker.services.accounts import Scope, create_api_key\n"
            "token = create_api_key('slow', [Scope.RESULTS], '*', now)[1]\n"
            f"open({str(self.folder / 'key')!r}, 'w').write(token)"
        )
        key, result = (self.folder / "key").read_text(), (ROOT / "fixtures/results/03-block.json").read_bytes()

        def hand_in() -> None:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/results", result)
            request.add_header("Authorization", f"Bearer {key}")
            request.add_header("Content-Type", "application/json")
            urllib.request.urlopen(request, timeout=20).read()

        hand_in()
        time.sleep(2)  # Prometheus has seen the count once: a rate is of what is added to it
        senders = [threading.Thread(target=hand_in) for _ in range(3)]
        with closing(sqlite3.connect(self.var / "perfwork.sqlite3", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            for sender in senders:
                sender.start()
            time.sleep(3)
            database.execute("ROLLBACK")
        for sender in senders:
            sender.join()

    def kill_web(self) -> None:
        assert self.web
        self.web.kill()
        self.web.wait()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    need("prometheus", "root")
    var = tmp_path / "var"
    var.mkdir()
    # A small disk of its own, which can be filled.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", var], check=True)
    found = Installation(tmp_path, var)
    try:
        migrated(var / "perfwork.sqlite3")
        found.shell(CALM)
        found.start_web()
        found.start_prometheus()
        yield found
    finally:
        for process in (found.prometheus, found.web):
            if process:
                process.kill()
                process.wait()
        subprocess.run(["umount", "--lazy", var])


@pytest.mark.slow
@pytest.mark.long
def test_every_alert_fires_by_its_cause_and_ends_with_it(installation: Installation) -> None:
    at = installation
    at.wait_until(lambda found: not found, "something fires in an installation that works")
    tried = []

    def try_out(alert: str, cause: Callable[[], None], end: Callable[[], None]) -> None:
        at.fires_and_ends(alert, cause, end)
        tried.append(alert)

    for alert, (cause, end) in CAUSES.items():
        try_out(alert, lambda cause=cause: at.shell(cause), lambda end=end: at.shell(end))  # type: ignore[misc]

    refused, filler = at.var / "drop" / "refused", at.var / "filler"
    refused.mkdir(parents=True)
    try_out("PerfworkRejected", (refused / "a.json").touch, (refused / "a.json").unlink)
    backup = at.var / "backups" / "new.tar"
    try_out("PerfworkBackup", lambda: os.utime(backup, (0, 0)), backup.touch)
    try_out("PerfworkDisk", lambda: filler.write_bytes(b"x" * (free(at.var) - (2 << 20))), filler.unlink)

    def rename(was: str, becomes: str) -> None:
        with closing(sqlite3.connect(at.var / "perfwork.sqlite3", timeout=20)) as database:
            database.execute(f"ALTER TABLE {was} RENAME TO {becomes}")

    def fail() -> None:
        rename("tracker_release", "gone")
        for _ in range(30):
            at.get("/")
            time.sleep(0.05)

    try_out("PerfworkErrors", fail, lambda: rename("gone", "tracker_release"))

    try_out("PerfworkSlow", at.stall, lambda: None)
    try_out("PerfworkDown", at.kill_web, at.start_web)
    assert sorted(tried) == sorted(ALERTS), "an alert was not tried"
    at.wait_until(lambda found: not found, "something still fires")


def free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
