"""What does not work shows: on pages and by mail to operators, to probes, to Prometheus and in the log."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from kombu import Queue
from prometheus_client import REGISTRY, Histogram
from prometheus_client.parser import text_string_to_metric_families

from bot.archives.reader import forget_others
from bot.archives.sources import shown
from bot.celery import RecordedTask
from bot.mail.settings import BotSettings
from bot.management.commands.up import works
from bot.notifications.faults import mail_operators
from bot.notifications.report import compose_due
from bot.outbox.transports import Envelope, SendOutcome, SendStatus, Server, SmtpTransport
from bot.results.intake import take_dropped
from bot.tasks import fold_reports
from bot.upstream.tracking import Patience, follow
from bot.web.metrics import queue_lengths
from bot.web.server import COUNTERS, allocate_counters
from tests.conftest import ROOT, clean_environment
from tests.support.databases import migrated
from tests.support.needs import SERVERS, need
from tests.support.people import person
from tests.support.servers import Moody, free_port
from tests.support.world import DANA, Kernel, World, message_id
from tracker.logs import AddContext, bound, json_formatter
from tracker.models import FaultMail, Folding, Mirror, OutgoingMail, OutgoingState, Report, ServiceLease, TaskRun, Tree
from tracker.services import event_log, mail_transitions
from tracker.services.accounts import Scope, create_api_key
from tracker.services.faults import Disk, Fault, FaultKind, faults, snapshot
from tracker.services.installation import rejected_files
from tracker.unavailable import OncePerMinute, reason_of

# --- What does not work shows: on pages and by mail to operators, to probes, to Prometheus and in the log ---

NOW = datetime.now(UTC)
HANGS = "git fetch: the server did not answer for 60 s; try another mirror"


@pytest.fixture
def hanging() -> Mirror:
    """An archive whose server hangs; its name tries to break lines."""
    return Mirror.objects.create(path="/srv/lkml\x1b[2J\n\nX-Evil: 1", error=HANGS, failing_since=NOW)


@pytest.fixture
def operator() -> User:
    return person("operator", "kim", "kim@lab.example", is_staff=True)


@pytest.mark.django_db
def test_operators_see_it_on_two_pages_and_others_on_none(client: Client, hanging: Mirror, operator: User) -> None:
    assert HANGS not in client.get("/").content.decode()
    client.force_login(operator)
    for path in ("/", "/review/"):
        page = client.get(path).content.decode()
        assert HANGS in page, path
        assert 'href="/help/operating/#problems"' in page
    assert 'id="problems"' in client.get("/help/operating/").content.decode()


@pytest.mark.django_db
def test_backups_that_stopped_are_a_problem(tmp_path: Path, settings: Any) -> None:
    def told() -> list[str]:
        return [fault.error for fault in faults(datetime.now(UTC)) if fault.kind is FaultKind.BACKUP]

    settings.PERFWORK_BACKUPS = str(tmp_path)
    assert told() == []  # the database is new
    long_ago = NOW.timestamp() - 3 * 86_400
    MigrationRecorder.Migration.objects.update(applied=NOW - timedelta(days=3))
    assert told() == ["no backup of the last two days: `systemctl status perfwork-daily` says why"]
    backup = tmp_path / "2026-11-24.tar"
    backup.touch()
    assert told() == []
    os.utime(backup, (long_ago, long_ago))
    assert len(told()) == 1
    settings.PERFWORK_BACKUPS = str(tmp_path / "gone")
    assert len(told()) == 1
    settings.PERFWORK_BACKUPS = ""
    assert told() == []


@pytest.mark.django_db
def test_operators_get_one_mail_a_day(
    hanging: Mirror, operator: User, moody: tuple[Moody, Server], bot_settings: BotSettings
) -> None:
    User.objects.create_user("reader", "reader@lab.example")
    transport = SmtpTransport(moody[1])
    assert mail_operators(transport, bot_settings, NOW) == 1
    assert mail_operators(transport, bot_settings, NOW) == 0
    assert mail_operators(transport, bot_settings, NOW + timedelta(days=1)) == 1
    message = message_from_bytes(moody[0].taken[0], policy=default)
    assert message["To"] == "kim@lab.example"
    assert "X-Evil" not in message
    text = message.get_content()
    assert HANGS in " ".join(text.split())
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines() if "https://" not in line) <= 78
    assert FaultMail.objects.count() == 2


@pytest.mark.django_db
def test_that_no_runner_takes_a_job_is_mailed_once(
    operator: User, moody: tuple[Moody, Server], bot_settings: BotSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Fault(FaultKind.JOB, "lab", "1 job waited a day for a runner", NOW)
    monkeypatch.setattr("bot.notifications.faults.faults", lambda now: [late] if now >= NOW else [])
    transport = SmtpTransport(moody[1])
    sent = [mail_operators(transport, bot_settings, NOW + timedelta(hours=hour)) for hour in range(-30, 80, 5)]
    assert sum(sent) == 1


@pytest.mark.django_db
def test_a_server_that_is_away_loses_no_mail(hanging: Mirror, operator: User, bot_settings: BotSettings) -> None:
    away = SmtpTransport(Server("127.0.0.1", 9))
    assert mail_operators(away, bot_settings, NOW) == 0
    assert not FaultMail.objects.exists()


@pytest.mark.django_db
def test_no_operator_is_mailed_while_all_sending_is_stopped(
    hanging: Mirror, operator: User, moody: tuple[Moody, Server], bot_settings: BotSettings
) -> None:
    mail_transitions.stop_sending("kim", NOW)
    assert mail_operators(SmtpTransport(moody[1]), bot_settings, NOW) == 0
    mail_transitions.resume_sending("kim", NOW)
    assert mail_operators(SmtpTransport(moody[1]), bot_settings, NOW) == 1


@pytest.mark.django_db
def test_a_server_that_is_away_is_asked_once(hanging: Mirror, operator: User, bot_settings: BotSettings) -> None:
    User.objects.create_superuser("lin", "lin@lab.example")
    asked = []

    class Away:
        def send(self, envelope: Envelope, confirm: object) -> SendOutcome:
            asked.append(envelope.recipients)
            return SendOutcome(SendStatus.NO_SERVER, "no route to host")

        def close(self) -> None:
            pass

    assert mail_operators(Away(), bot_settings, NOW) == 0
    assert len(asked) == 1
    assert not FaultMail.objects.exists()


def due() -> datetime | None:
    return snapshot(NOW + timedelta(hours=3)).oldest_due


@pytest.mark.django_db
def test_mail_that_waits_for_its_day_or_its_turn_does_not_stall(world: World) -> None:
    world.ingest(world.result("b" * 40, "mm: a"))
    compose_due(world.settings, NOW, approve_first=False)
    assert due() == NOW
    mail = OutgoingMail.objects.filter(state=OutgoingState.APPROVED)
    mail.update(not_before=NOW + timedelta(days=1))  # the author has had today's five
    assert due() is None
    mail.update(not_before=NOW + timedelta(hours=2), turn_at=NOW + timedelta(hours=2))  # the domain's rate
    assert due() == NOW + timedelta(hours=2)
    [row] = mail_transitions.claim([mail.get().pk], NOW + timedelta(minutes=5), timedelta(minutes=5), "worker 1")
    later = NOW + timedelta(minutes=6)
    mail_transitions.retry_later(row, later, "no route to host", "worker 1", no_server=True)
    mail.update(not_before=NOW + timedelta(hours=4), turn_at=None)
    assert due() == NOW + timedelta(minutes=5), "it was tried, and put off"


@pytest.mark.django_db
def test_what_is_not_configured_any_more_is_no_fault(kernel: Kernel, settings: Any) -> None:
    Mirror.objects.create(path="/srv/old", tried_at=NOW - timedelta(days=9))
    address = "imaps://kim:secret@list.example/INBOX"
    Mirror.objects.create(path=shown(address), tried_at=NOW - timedelta(days=9))
    forget_others([address])
    assert [each.name for each in snapshot(NOW).archives] == [shown(address)]
    kernel.walk("linus")
    settings.PERFWORK_TREES = {"linus": "/srv/linux.git"}
    assert [each.name for each in snapshot(NOW).trees] == ["linus"]
    settings.PERFWORK_TREES = {}
    assert snapshot(NOW).trees == []


@pytest.mark.django_db
def test_a_tree_that_is_quiet_was_read_all_the_same(kernel: Kernel, settings: Any) -> None:
    settings.PERFWORK_TREES = {"linus": "/srv/linux.git"}
    kernel.git.commit("mm: a change")
    kernel.walk("linus")
    for hours in (1, 24):
        now = NOW + timedelta(hours=hours)
        follow(Tree.objects.get(name="linus"), kernel.world.settings, now, Patience(None, timedelta(minutes=5)))
        assert [each.at for each in snapshot(now).trees] == [now]


@pytest.mark.django_db
def test_probes(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/healthz").content == b"ok\n"
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (200, b"ready, degraded: scheduler\n")
    with monkeypatch.context() as full:
        full.setattr("tracker.pages.operating.disks", lambda: [Disk("drop", 1 << 40, 1 << 40), Disk("var", 0, 1 << 40)])
        answer = client.get("/readyz")
        assert (answer.status_code, answer.content) == (
            503,
            b"not ready: nothing can be stored: the disk of var is full\n",
        )

    def gone(*arguments: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("tracker.pages.operating.MigrationExecutor", gone)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"not ready: the database can't be reached\n")


@pytest.mark.django_db
def test_probes_are_answered_without_tls(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/").status_code == 301


@pytest.mark.django_db
def test_metrics_need_their_key_and_are_as_prometheus_reads_them(client: Client, settings: Any) -> None:
    assert client.get("/metrics").status_code == 404
    settings.PERFWORK_METRICS_KEY = "s3cret"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer x"}).status_code == 401
    Mirror.objects.create(path='/srv/"lkml"\n', error=HANGS, tried_at=NOW)
    TaskRun.objects.create(task="send_mail", at=NOW, seconds=1.5, error="ValueError: x")
    text = client.get("/metrics", headers={"Authorization": "Bearer s3cret"}).content.decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    assert {each.labels["kind"]: each.value for each in found["perfwork_faults"]}["archive"] == 1
    failing = [(each.labels["archive"], each.value) for each in found["perfwork_archive_failing"]]
    assert failing == [('/srv/"lkml"\n', 1)]
    assert [each.value for each in found["perfwork_task_seconds"]] == [1.5]
    assert any(each.labels.get("page") == "metrics" for each in found["perfwork_request_seconds"])


@pytest.mark.django_db
def test_a_queue_that_nobody_declared_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Celery(broker="memory://", set_as_current=False)
    app.conf.task_queues = [Queue("mail"), Queue("git")]
    monkeypatch.setattr("bot.web.metrics.current_app", app)
    assert queue_lengths() == {"mail": 0.0, "git": 0.0}


@pytest.mark.django_db
def test_without_a_database_a_page_says_so_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*arguments: Any) -> None:
        raise OperationalError("connection to server at 10.0.0.2 failed")

    monkeypatch.setattr("tracker.pages.home.home_page", gone)
    client = Client(raise_request_exception=False)
    page = client.get("/")
    assert (page.status_code, page["Retry-After"]) == (503, "10")
    assert "10.0.0.2" not in page.content.decode()
    assert '<meta http-equiv="refresh" content="10">' in page.content.decode()


FULL = "nothing can be stored: the disk is full or read-only"


def undefined(sqlstate: str) -> ProgrammingError:
    """What PostgreSQL says where a migration is missing."""
    cause = Exception('relation "tracker_report" does not exist')
    cause.sqlstate = sqlstate  # type: ignore[attr-defined]
    error = ProgrammingError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (OperationalError("no such table: tracker_report"), "the database lacks migrations: run `./manage.py migrate`"),
        (undefined("42P01"), "the database lacks migrations: run `./manage.py migrate`"),
        (undefined("42601"), ""),  # a syntax error is ours
        (
            OperationalError('FATAL: database "perf" does not exist'),
            "the database that DATABASE_URL names does not exist",
        ),
        (OperationalError("database is locked"), "the database is busy"),
        (OperationalError("connection to server at 10.0.0.2 failed"), "the database can't be reached"),
        (
            OperationalError("unable to open database file"),
            "the database file can't be opened: is it there, and has its disk space?",
        ),
        (OperationalError("disk I/O error"), "the disk of the database reports an error"),
        (OperationalError("attempt to write a readonly database"), FULL),
        (OSError(errno.ENOSPC, "No space left on device"), FULL),
        (OSError(errno.EROFS, "Read-only file system"), FULL),
        (OSError(errno.ENOENT, "No such file or directory"), ""),
    ],
)
def test_what_the_errors_of_databases_mean(error: Exception, meaning: str) -> None:
    assert reason_of(error) == meaning


@pytest.mark.django_db
def test_an_upload_on_a_full_disk_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _, secret = create_api_key("lab", [Scope.RESULTS], "*", NOW)
    monkeypatch.setattr("bot.web.results.take_in", full)
    caller = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})
    answer = caller.post("/api/v1/results", {}, content_type="application/json")
    assert (answer.status_code, answer["Retry-After"]) == (507, "60")
    assert answer.json() == {"error": f"{FULL}; try again in 60 seconds"}


def test_a_web_process_counts_in_memory_if_there_is_no_space_for_its_file(tmp_path: Path) -> None:
    assert allocate_counters(tmp_path / "metrics")
    (file,) = (tmp_path / "metrics").iterdir()
    assert file.stat().st_blocks * 512 >= COUNTERS  # no holes, which would kill it when the disk is full
    (tmp_path / "taken").touch()
    assert not allocate_counters(tmp_path / "taken")
    kinds = {
        type(metric) for metric in REGISTRY._collector_to_names if metric.__module__ == "prometheus_client.metrics"
    }
    assert kinds == {Histogram}  # the only kind of file that is allocated


@pytest.mark.django_db
def test_an_error_of_the_program_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.pages.home.home_page", lambda now: 1 / 0)
    assert Client(raise_request_exception=False).get("/").status_code == 500


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("database or disk is full", "nothing can be stored: the disk is full or read-only (database or disk is full)"),
        ("no such table: x", "the database lacks migrations: run `./manage.py migrate` (no such table: x)"),
        ("connection\nrefused", "the database can't be reached (connection refused)"),
    ],
)
def test_the_log_gets_one_line_a_minute(error: str, line: str) -> None:
    once = OncePerMinute()
    records = []
    for _ in range(3):
        failure = OperationalError(error)
        info = (OperationalError, failure, None)
        records.append(logging.LogRecord("django.request", logging.ERROR, "", 0, "Internal: %s", ("/",), info))
    assert [once.filter(record) for record in records] == [True, False, False]
    assert (records[0].getMessage(), records[0].exc_info) == (line, None)


@pytest.mark.django_db
def test_log_lines_name_what_they_are_about_on_one_line() -> None:
    record = logging.LogRecord("bot", logging.INFO, "", 0, "filed", (), None)
    with bound(message_id="<a\nb@x>"), bound(task="read_archive"):
        AddContext().filter(record)
    assert record.__dict__["context"] == " message_id=<a?b@x> task=read_archive"
    fields = json.loads(json_formatter().format(record))
    assert (fields["event"], fields["level"], fields["task"]) == ("filed", "info", "read_archive")


@pytest.mark.django_db
def test_a_worker_records_each_run() -> None:
    class Fails(RecordedTask):
        name = "fails"

    task = Fails()
    task.before_start("id", (7,), {})
    task.after_return("FAILURE", ValueError("no\nserver"), "id", (7,), {}, None)
    assert TaskRun.objects.get(task="fails").error == "ValueError: no server"
    task.before_start("id", (7,), {})
    task.after_return("SUCCESS", None, "id", (7,), {}, None)
    assert TaskRun.objects.get(task="fails").error == ""


@pytest.mark.django_db
def test_faults_cost_few_queries_however_many_there_are(django_assert_max_num_queries: Any) -> None:
    Mirror.objects.bulk_create(Mirror(path=f"/srv/{number}", error="x") for number in range(150))
    with django_assert_max_num_queries(11):
        assert len([each for each in faults(NOW) if each.error == "x"]) == 100


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("workers", "only", "queues", "names"),
    [
        (1, ("web", "worker", "beat"), (), {"web", "worker", "fetcher"}),  # the worker is the scheduler, too
        (2, ("web", "worker", "beat"), (), {"web", "web-2", "worker", "fetcher", "scheduler"}),
        (2, ("web",), (), {"web", "web-2"}),
        (1, ("beat",), (), {"scheduler"}),
        (2, ("worker", "beat"), (), {"worker", "fetcher", "scheduler"}),
        (1, ("worker",), ("archives", "git"), {"worker"}),
    ],
)
def test_a_machine_may_run_some_of_the_processes(workers: int, only: Any, queues: Any, names: set[str]) -> None:
    with socket.socket() as listening:
        assert works(listening if "web" in only else None, workers, only, queues).keys() == names


# --- Every alert fires by its cause, in a real Prometheus that asks a real web server, and ends with it ---

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


# --- An upgrade changes what the tables rest on: nobody sees an empty table, and a worker folds all reports again ---


@pytest.fixture
def upgraded(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """Three reports whose summary is still that of the version before."""
    reports = [world.report(f"mm: change number {number}") for number in range(3)]
    world.post(DANA, "I am working on a fix.", to=message_id(reports[0]))
    world.read()
    Report.objects.update(words="", urgency=0, state="no_response")
    Folding.objects.update_or_create(pk=1, defaults={"version": event_log.VERSION - 1, "folded_to": 0})
    monkeypatch.setattr(event_log, "_known_complete", set())
    monkeypatch.setattr(event_log, "_AT_ONCE", 2)
    return reports


@pytest.mark.django_db
def test_pages_say_how_far_it_is_until_all_is_folded(
    upgraded: list[Report], client: Client, admin_client: Client
) -> None:
    for address in ("/", "/search/?q=x", f"/report/{upgraded[0].culprit.sha}/"):
        page = client.get(address)
        assert page.status_code == 503
        assert "Folding all reports after an upgrade: 0 of 3" in page.content.decode()
        assert page["Retry-After"] == "10"
    assert client.get("/api/v1/reports").json()["error"].startswith("folding all reports")
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert admin_client.get("/admin/").status_code == 200, "an operator can look"

    assert fold_reports() == 3

    assert client.get("/").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert Report.objects.get(pk=upgraded[0].pk).state == "working"
    assert not Report.objects.filter(words="").exists()
    assert fold_reports() == 0


@pytest.mark.django_db
def test_commands_print_no_table_that_is_not_folded(upgraded: list[Report]) -> None:
    for command in (["triage"], ["export", "reports"], ["report", "v9.1"], ["digest"]):
        with pytest.raises(CommandError, match="0 of 3; wait for a worker, or run"):
            call_command(*command)
    out = io.StringIO()
    call_command("refold", stdout=out)
    assert out.getvalue() == "3 reports folded\n"
    call_command("export", "reports", stdout=out)
    assert '"working"' in out.getvalue()


@pytest.mark.django_db
def test_it_goes_on_where_it_was_interrupted(upgraded: list[Report], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    fold = event_log.fold

    def dies_at_the_second(keys: list[int]) -> None:
        seen.append(keys)
        if len(seen) == 2:
            raise MemoryError
        fold(keys)

    monkeypatch.setattr(event_log, "fold", dies_at_the_second)
    with pytest.raises(MemoryError):
        event_log.fold_all()
    assert (at := event_log.progress())
    assert (at.done, at.total) == (2, 3)
    assert event_log.fold_all() == 1
    assert seen[1] == seen[2], "the first slice is not folded twice"


@pytest.mark.django_db
def test_a_new_database_has_nothing_to_fold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(event_log, "_known_complete", set())
    assert event_log.progress() is None
    assert Folding.objects.get().version == event_log.VERSION


@pytest.mark.django_db
def test_once_it_is_complete_it_costs_no_query(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(event_log, "_known_complete", set())
    event_log.progress()
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert event_log.progress() is None


OLD_DATA = """
import datetime
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
apps = MigrationLoader(connection).project_state([("tracker", "0001_schema")]).apps
row = lambda name, **values: apps.get_model("tracker", name).objects.create(**values)
now = timezone.now()
culprit = row("Commit", sha="3b1f0c9d2e" + "4" * 30, title="mm: walk cold folios first",
    trailers=[["Reviewed-by", '"Holt, Vera" <Vera@dev.example>'], ["Cc", "Zoe Hill <zoe@dev.example>"]])
report = row("Report", culprit=culprit, tag="3b1f0c9d2e444444", verdict="regression", state="working", status="x")
archive = row("Archive", path="/srv/inbox/git/0.git")
source = row("RawMessage", digest="d", compressed=b"", received_at=now, archive=archive)
row("Message", message_id="a@b", report=report, source=source, kind="person", own_text="a word: zanzibar")
row("Event", report=report, key="responded:a@b", kind="responded", occurred_at=now, recorded_at=now, role="author",
    message_id="a@b")
for mail in ("a@b", "e@f", "g@h"):
    row("Event", report=report, key=f"replied:{mail}", kind="replied", occurred_at=now, recorded_at=now, role="author",
        message_id=mail)
event = lambda key, **more: row("Event", report=report, key=key, occurred_at=now, recorded_at=now, **more)
event("reversed:1", kind="reversed", reverses="replied:e@f", actor="dana")
for number in (1, 3):
    event(f"noted:g@h#{number}", kind="noted", message_id="g@h")
event("test_asked:g@h#10", kind="test_asked", message_id="g@h")
event("reading_rejected=working:g@h#2!1", kind="reading_rejected", message_id="g@h", actor="dana")
event("reversed:noted:g@h#3", kind="reversed", reverses="noted:g@h#3", actor="dana")
row("Suggestion", report=report, key="working:g@h#2", kind="working", occurred_at=now, message_id="g@h",
    role="author", decision="rejected", decided_by="dana", decided_at=now)
for suffix in ("", "#2"):  # rejected twice, under two keys
    event(f"reading_rejected=asked:e@f{suffix}", kind="reading_rejected", message_id="e@f", actor="dana")
row("Suggestion", report=report, key="asked:e@f#2", kind="asked", occurred_at=now, message_id="e@f",
    role="author")
row("Suggestion", report=report, key="responded:e@f", kind="responded", occurred_at=now, message_id="e@f",
    role="author")
row("LabJob", report=report, event_key="test_asked:g@h#10", request="test", opened_at=now, due_at=now)
row("TokenBucket", key="", used_until=now + datetime.timedelta(hours=1))
row("TokenBucket", key="@dev.example", used_until=now - datetime.timedelta(hours=1))
row("OutgoingMail", message_id="c@d", report=report, raw=b"", sender="", recipients=[], subject="s", composed_at=now)
"""
# There was a kind of its own for replies of which nothing else was certain; of one mail, both may be there.
# The keys held the place of a fact among all that a mail says.
KEYS = [
    "responded responded:a@b",
    "responded responded:e@f",
    "responded responded:g@h",
    "reversed reversed:1 responded:e@f",
    "noted noted:g@h",
    "noted noted:g@h#1",
    "test_asked test_asked:g@h",
    "reading_rejected reading_rejected=working:g@h!1",
    "reversed reversed:noted:g@h#1 noted:g@h#1",
    "reading_rejected reading_rejected=asked:e@f",
    "reading_rejected reading_rejected=asked:e@f#2",
    "('all', 1)",  # what a rate limit has given away
    "working:g@h asked:e@f test_asked:g@h",
]
LOOK = """
from django.test import Client
from django.utils import timezone
from tracker.models import Event, LabJob, Message, OutgoingMail, RateCalendar, RawMessage, Report
from tracker.models import Suggestion
from tracker.pages import search as search_index
print([model.objects.count() for model in (Event, Message, OutgoingMail, RawMessage, Report)])
print(Report.objects.get().culprit.signers)
for names in Event.objects.order_by("pk").values_list("kind", "key", "reverses"):
    print(*filter(None, names))
print(*((each.key or "all", len(each.taken)) for each in RateCalendar.objects.all()))
print(*Suggestion.objects.order_by("pk").values_list("key", flat=True), LabJob.objects.get().event_key)
print(Report.objects.get().state, search_index.reports_with(["zanzibar"]) == [Report.objects.get().pk])
print(Client().get(f"/report/{Report.objects.get().culprit.sha}/", headers={"host": "127.0.0.1"}).status_code)
"""


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_data_of_the_first_schema_is_there_after_all_migrations(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    env = {**os.environ, "PERFWORK_VAR": str(tmp_path / "var"), "DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    if database == "postgresql":
        env["DATABASE_URL"] = request.getfixturevalue("postgres")

    def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)

    assert manage("migrate", "-v0", "tracker", "0001").returncode == 0
    done = manage("shell", "-v0", "-c", OLD_DATA)
    assert done.returncode == 0, done.stderr
    assert "run `./manage.py migrate` first" in manage("triage").stderr, "no traceback, and no empty table"
    assert manage("migrate", "-v0").returncode == 0
    assert "folding all reports after an upgrade: 0 of 1" in manage("triage").stderr
    assert manage("refold").stdout == "1 reports folded\n"
    done = manage("shell", "-v0", "-c", LOOK)
    # Nobody counts as a signer by what a lab stored: git tells, once the tree is walked.
    seen = ["[11, 1, 1, 1, 1]", "[]", *KEYS, "responded True", "200"]
    assert done.stdout.splitlines()[-len(seen) :] == seen, done.stderr
    back = manage("migrate", "-v0", "tracker", "0005")
    assert back.returncode == 0, back.stderr
    assert manage("migrate", "-v0").returncode == 0


# --- Status, and a clock that was wrong ---


def test_status_says_what_is_wrong_and_what_waits(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    now = timezone.now()
    ServiceLease.objects.update_or_create(name="scheduler", defaults={"lease_until": now + timedelta(minutes=1)})
    call_command("status")
    out = capsys.readouterr().out
    assert out.startswith("0 problems\nWaiting for a person:\n  nothing\n")
    assert re.search(r"^  send_mail +never$", out, re.M)
    TaskRun.objects.create(task="send_mail", at=now + timedelta(days=3), seconds=1)
    OutgoingMail.objects.create(message_id="a@b", raw=b"", sender="", recipients=[], state="failed", composed_at=now)
    with pytest.raises(CommandError, match="2 problems"):
        call_command("status")
    out = capsys.readouterr().out
    assert "send_mail since" in out
    assert "last ran in the future" in out
    assert "1 mail refused by a server: see /outbox/?state=failed" in out


@pytest.fixture
def operators_client(db: None) -> Client:
    user = person("operator", "olga")
    client = Client()
    client.force_login(user)
    return client


def test_rejected_files_are_named_and_dismissed(operators_client: Client, tmp_path: Path, settings: Any) -> None:
    settings.PERFWORK_DROP = tmp_path
    _, secret = create_api_key("lab7", [Scope.RESULTS], "*", NOW)
    headers = {"Authorization": f"Bearer {secret}"}
    Client().post("/api/v1/results", "{", content_type="application/json", headers=headers)
    (tmp_path / "refused" / "link").symlink_to("/etc/passwd")
    (tmp_path / "refused" / "link.reason").symlink_to("/etc/passwd")
    (tmp_path / "refused" / "folder").mkdir()
    (tmp_path / "refused" / "folder.reason").mkdir()
    page = operators_client.get("/operating/").content.decode()
    assert "3 files rejected" in page
    assert "posted with the key lab7\nbody, column 2: not JSON" in page
    assert "root:" not in page
    assert Client().post("/operating/dismiss/").status_code == 302  # to sign in
    answer = operators_client.post("/operating/dismiss/", follow=True).content.decode()
    assert "3 files moved to dismissed/ in the drop directory." in answer
    assert "rejected" not in answer.partition("What runs by itself")[0].partition("moved")[2]
    assert len(list((tmp_path / "dismissed").iterdir())) == 6
    assert take_dropped(tmp_path, [], timezone.now() + timedelta(days=1)) == 0  # nothing of it is read again
    (tmp_path / "refused").rmdir()
    (tmp_path / "refused").symlink_to("/etc")
    assert rejected_files(tmp_path / "refused") == []
    assert len(list((tmp_path / "dismissed").iterdir())) == 6


def test_one_page_says_what_is_wrong_and_what_waits(operators_client: Client, django_assert_num_queries: Any) -> None:
    now = timezone.now()
    ServiceLease.objects.update_or_create(name="scheduler", defaults={"lease_until": now + timedelta(minutes=1)})
    page = operators_client.get("/operating/").content.decode()
    assert "nothing is wrong, nothing waits" in page
    assert "Send mail" in page
    TaskRun.objects.create(task="send_mail", at=now, seconds=1, error="OSError: no route to host")
    for number in range(3):
        mail = {"message_id": f"{number}@b", "purpose": f"p{number}", "state": "composed", "composed_at": now}
        OutgoingMail.objects.create(raw=b"", sender="", recipients=[], **mail)
    operators_client.get("/operating/")
    mail_transitions.stop_sending("kim", now, "the lab moves")
    with django_assert_num_queries(24):
        page = operators_client.get("/operating/").content.decode()
    assert f"1 hold on all sending since {now:%Y-%m-%d %H:%M}, by kim: the lab moves</a>" in page
    assert "Operating: 1 problem<" in page
    assert "failed: OSError: no route to host" in page
    assert '<a href="/outbox/">3 mails to approve</a>' in page
    assert "/help/operating/#task" in page


def test_only_operators_see_how_the_installation_stands(client: Client, operators_client: Client) -> None:
    assert "/sign-in/" in client.get("/operating/")["Location"]
    client.force_login(User.objects.create_user("terry"))
    assert client.get("/operating/").status_code == 403
    assert "Operating" not in client.get("/").content.decode()
    assert "Operating" in operators_client.get("/").content.decode()


def test_the_command_tries_again_what_failed(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    now = timezone.now()
    Mirror.objects.create(path="/srv/lore/x", tried_at=now, error="not a git repository", failures=5)
    Mirror.objects.create(path="/srv/lore/y", tried_at=now)
    with pytest.raises(CommandError, match="problem"):
        call_command("status", "--try-again")
    assert [mirror.tried_at for mirror in Mirror.objects.order_by("path")] == [None, now]
    assert "failed archives and trees, read again at once: 1; what follows is older" in capsys.readouterr().out


def test_a_second_hold_says_who_holds_and_that_its_reason_is_not_kept(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    mail_transitions.stop_sending("kim", timezone.now(), "the lab moves")
    call_command("outbox", "hold", "--reason", "wrong numbers")
    expected = "all sending was already stopped by kim, 'the lab moves'; the reason given now is not kept\n"
    assert capsys.readouterr().out == expected


def test_what_failed_is_tried_again_at_once(operators_client: Client) -> None:
    now = timezone.now()
    Mirror.objects.create(path="/srv/lore/x", tried_at=now, error="not a git repository", failures=5)
    Tree.objects.create(name="linus", path="/srv/x.git", role="mainline", fetched_at=now, error="no such directory")
    assert operators_client.get("/operating/").content.decode().count("Try now") == 1  # that tree is followed no more
    for kind, name in (("archive", "/srv/lore/x"), ("tree", "linus")):
        answer = operators_client.post("/operating/try/", {"kind": kind, "name": name}, follow=True)
        assert "A worker tries it now" in answer.content.decode()
    assert Mirror.objects.get().tried_at is None
    assert Tree.objects.get(name="linus").fetched_at is None
    gone = operators_client.post("/operating/try/", {"kind": "archive", "name": "/srv/other"}, follow=True)
    assert "Nothing was changed" in gone.content.decode()
    assert operators_client.post("/operating/try/", {"kind": "disk", "name": "x"}).status_code == 400


def test_what_last_ran_in_the_future_is_due_at_once() -> None:
    from bot.celery import LeasedScheduler, app

    scheduler = LeasedScheduler(app=app)
    entry = scheduler.schedule["send_mail"]
    entry.last_run_at = timezone.now() + timedelta(days=3)
    assert not entry.is_due().is_due
    scheduler._forget_the_future()
    assert entry.is_due().is_due
    entry.last_run_at = timezone.now()
    scheduler._forget_the_future()
    assert not entry.is_due().is_due
