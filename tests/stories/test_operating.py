"""What does not work shows: on pages and by mail to operators, to probes, to Prometheus and in the log."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest
from celery import Celery
from django.contrib.auth.models import Group, User
from django.db import OperationalError, ProgrammingError
from django.test import Client
from kombu import Queue
from prometheus_client.parser import text_string_to_metric_families

from bot.archives.reader import forget_others
from bot.archives.sources import shown
from bot.celery import RecordedTask
from bot.mail.settings import BotSettings
from bot.management.commands.up import commands
from bot.notifications.faults import mail_operators
from bot.notifications.report import compose_due
from bot.outbox.transports import Envelope, SendOutcome, SendStatus, Server, SmtpTransport
from bot.upstream.tracking import Patience, follow
from bot.web.metrics import queue_lengths
from tests.kernel import Kernel
from tests.mail_server import Moody
from tests.world import World
from tracker.logs import AddContext, bound, json_formatter
from tracker.models import FaultMail, Mirror, OutgoingMail, OutgoingState, TaskRun, Tree
from tracker.services import mail_transitions
from tracker.services.faults import faults, snapshot
from tracker.unavailable import OncePerMinute, reason_of

NOW = datetime.now(UTC)
HANGS = "git fetch: the server did not answer for 60 s; try another mirror"


@pytest.fixture
def hanging() -> Mirror:
    """An archive whose server hangs; its name tries to break lines."""
    return Mirror.objects.create(path="/srv/lkml\x1b[2J\n\nX-Evil: 1", error=HANGS, failing_since=NOW)


@pytest.fixture
def operator() -> User:
    user = User.objects.create_user("kim", "kim@lab.example", is_staff=True)
    user.groups.add(Group.objects.get(name="operator"))
    return user


@pytest.mark.django_db
def test_operators_see_it_on_two_pages_and_others_on_none(client: Client, hanging: Mirror, operator: User) -> None:
    assert HANGS not in client.get("/").content.decode()
    client.force_login(operator)
    for path in ("/", "/inbox/"):
        page = client.get(path).content.decode()
        assert HANGS in page, path
        assert 'href="/help/operating/#problems"' in page
    assert 'id="problems"' in client.get("/help/operating/").content.decode()


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
    assert client.get("/readyz").status_code == 200

    def gone(*arguments: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("tracker.pages.health.MigrationExecutor", gone)
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
        (OperationalError("no such table: tracker_report"), "the database lacks migrations: run manage.py migrate"),
        (undefined("42P01"), "the database lacks migrations: run manage.py migrate"),
        (undefined("42601"), ""),  # a syntax error is ours
        (
            OperationalError('FATAL: database "perf" does not exist'),
            "the database that DATABASE_URL names does not exist",
        ),
        (OperationalError("database is locked"), "the database is busy"),
        (OperationalError("connection to server at 10.0.0.2 failed"), "the database can't be reached"),
    ],
)
def test_what_the_errors_of_databases_mean(error: Exception, meaning: str) -> None:
    assert reason_of(error) == meaning


@pytest.mark.django_db
def test_an_error_of_the_program_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracker.pages.home.home_page", lambda now: 1 / 0)
    assert Client(raise_request_exception=False).get("/").status_code == 500


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("database or disk is full", "the disk of the database is full (database or disk is full)"),
        ("no such table: x", "the database lacks migrations: run manage.py migrate (no such table: x)"),
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
    ("only", "queues", "names"),
    [
        (("web", "worker", "beat"), (), {"web", "web-2", "worker", "fetcher", "scheduler"}),
        (("web",), (), {"web", "web-2"}),
        (("worker", "beat"), (), {"worker", "fetcher", "scheduler"}),
        (("worker",), ("archives", "git"), {"worker"}),
    ],
)
def test_a_machine_may_run_some_of_the_processes(only: Any, queues: Any, names: set[str]) -> None:
    found = commands("127.0.0.1:8000", 2, only, queues)
    assert found.keys() == names
    if queues:
        assert "archives,git" in found["worker"]
