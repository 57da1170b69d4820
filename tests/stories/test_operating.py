"""What does not work shows: on pages and by mail to operators, to probes, to Prometheus and in the log."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import socket
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
from bot.upstream.tracking import Patience, follow
from bot.web.metrics import queue_lengths
from bot.web.server import COUNTERS, allocate_counters
from tests.support.people import person
from tests.support.servers import Moody
from tests.support.world import Kernel, World
from tracker.logs import AddContext, OncePerMinute, bound, json_formatter
from tracker.models import FaultMail, Mirror, OutgoingMail, OutgoingState, ServiceLease, TaskRun, Tree
from tracker.services import mail_transitions
from tracker.services.accounts import Scope, create_api_key
from tracker.services.database import outage
from tracker.services.faults import Disk, Fault, FaultKind, faults, take_snapshot
from tracker.services.installation import rejected_files

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
    return take_snapshot(NOW + timedelta(hours=3)).oldest_due


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
    assert [each.name for each in take_snapshot(NOW).archives] == [shown(address)]
    kernel.walk("linus")
    settings.PERFWORK_TREES = {"linus": "/srv/linux.git"}
    assert [each.name for each in take_snapshot(NOW).trees] == ["linus"]
    settings.PERFWORK_TREES = {}
    assert take_snapshot(NOW).trees == []


@pytest.mark.django_db
def test_a_tree_that_is_quiet_was_read_all_the_same(kernel: Kernel, settings: Any) -> None:
    settings.PERFWORK_TREES = {"linus": "/srv/linux.git"}
    kernel.git.commit("mm: a change")
    kernel.walk("linus")
    for hours in (1, 24):
        now = NOW + timedelta(hours=hours)
        follow(Tree.objects.get(name="linus"), kernel.world.settings, now, Patience(None, timedelta(minutes=5)))
        assert [each.at for each in take_snapshot(now).trees] == [now]


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
    assert outage(error) == meaning


@pytest.mark.django_db
def test_an_upload_on_a_full_disk_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _, secret = create_api_key("lab", [Scope.RESULTS], "*", NOW)
    monkeypatch.setattr("bot.web.lab.take_in", full)
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
    assert "rejected" not in answer.partition("Periodic tasks")[0].partition("moved")[2]
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
