"""The queue of files: what one process writes, another never sees in part, and a killed one leaves nothing broken."""

from __future__ import annotations

import base64
import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest
from celery.worker import state
from django.db import DatabaseError
from django.utils import timezone
from kombu import Connection, Exchange, Queue

from bot.celery import GROWN, WAIT, FolderTransport, LeasedScheduler, RunningTask, _runs, _Schedules, _StartsAnew, app
from tests.conftest import ROOT
from tracker.models import ServiceLease, TaskRun

# --- The queue of files: what one process writes, another never sees in part, and a killed one leaves nothing broken
# ---

MAIL = Queue("mail", Exchange("mail"), routing_key="mail")


@pytest.fixture
def nothing_bound() -> None:
    """Forget what this process has bound, in another test's folder; never while a thread publishes."""
    FolderTransport.global_state.clear()


def connect(folder: Path) -> Connection:
    (folder / "control").mkdir(exist_ok=True)
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder), "control_folder": str(folder / "control")}
    return Connection("filesystem://", transport=FolderTransport, transport_options=options)


def take(folder: Path, count: int) -> list[int]:
    taken: list[int] = []
    with connect(folder) as connection:
        channel: Any = connection.channel()
        while len(taken) < count:
            done = (folder / "done").exists()  # looked at before the folder, which is complete then
            try:
                taken.append(json.loads(base64.b64decode(channel._get("mail")["body"])))
            except Empty:
                if done:
                    break
    return taken


@pytest.mark.usefixtures("nothing_bound")
def test_two_that_take_while_one_writes_get_every_message_once(tmp_path: Path) -> None:
    count = 300
    with ThreadPoolExecutor(2) as pool, connect(tmp_path) as connection:
        takers = [pool.submit(take, tmp_path, count) for _ in range(2)]
        try:
            with connection.Producer() as producer:
                for number in range(count):
                    producer.publish(
                        number, exchange=MAIL.exchange, routing_key="mail", declare=[MAIL], serializer="json"
                    )
        finally:
            (tmp_path / "done").touch()  # else the takers would go on for ever
    assert sorted(number for taker in takers for number in taker.result()) == list(range(count))


@pytest.mark.usefixtures("nothing_bound")
def test_a_message_is_taken_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move to another file system is a copy, which two processes may make at once, one of them of an empty file."""
    monkeypatch.setattr("shutil.move", lambda *_: pytest.fail("moved"))
    with connect(tmp_path) as connection, connection.Producer() as producer:
        producer.publish(1, exchange=MAIL.exchange, routing_key="mail", declare=[MAIL], serializer="json")
    (tmp_path / "done").touch()
    assert take(tmp_path, 1) == [1]
    assert not list(tmp_path.glob("*.msg"))


@pytest.mark.usefixtures("nothing_bound")
@pytest.mark.parametrize("left", ["", "[[", '[["mail", ""'])
def test_a_table_left_half_written_is_written_anew(tmp_path: Path, left: str) -> None:
    with connect(tmp_path) as connection:
        (tmp_path / "control" / "mail.exchange").write_text(left)
        with connection.Producer() as producer:
            producer.publish(1, exchange=MAIL.exchange, routing_key="mail", declare=[MAIL], serializer="json")
    (tmp_path / "done").touch()
    assert take(tmp_path, 1) == [1]


@pytest.mark.usefixtures("nothing_bound")
def test_a_message_half_written_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "123_abc.part").write_text('{"body":')
    (tmp_path / "done").touch()
    assert take(tmp_path, 1) == []


@pytest.mark.usefixtures("nothing_bound")
def test_who_waits_is_woken_by_a_message(tmp_path: Path) -> None:
    taken: list[object] = []

    def consume() -> None:
        with (
            connect(tmp_path) as own,
            own.Consumer([MAIL], callbacks=[lambda body, _: taken.append(body)], no_ack=True),
        ):
            while not taken:
                own.drain_events(timeout=60)

    with connect(tmp_path) as connection, connection.Producer() as producer:
        MAIL(connection.default_channel).declare()
        consumer = threading.Thread(target=consume)
        consumer.start()
        producer.publish(1, exchange=MAIL.exchange, routing_key="mail", serializer="json")
    consumer.join(30)  # the timeout of one look is longer
    assert taken == [1]


@pytest.mark.usefixtures("nothing_bound")
def test_without_inotify_the_folder_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("bot.celery.INotify.__init__", none_left)
    taken: list[object] = []
    with connect(tmp_path) as own, own.Consumer([MAIL], callbacks=[lambda body, _: taken.append(body)], no_ack=True):
        with pytest.raises(TimeoutError):
            own.drain_events(timeout=0.05)
        with connect(tmp_path) as connection, connection.Producer() as producer:
            producer.publish(1, exchange=MAIL.exchange, routing_key="mail", declare=[MAIL], serializer="json")
        own.drain_events(timeout=30)
    assert taken == [1]


@pytest.mark.usefixtures("nothing_bound")
def test_who_waits_for_nothing_is_told(tmp_path: Path) -> None:
    with connect(tmp_path) as connection, connection.Consumer([MAIL]), pytest.raises(TimeoutError):
        connection.drain_events(timeout=0.05)


@pytest.mark.usefixtures("nothing_bound")
def test_the_app_uses_it_without_a_broker() -> None:
    with app.connection() as connection:
        assert isinstance(connection.transport, FolderTransport)


# --- One scheduler is at work; a second one waits and says so, and takes over when the first has ended ---


@pytest.fixture
def scheduler(db: None, monkeypatch: pytest.MonkeyPatch) -> LeasedScheduler:
    monkeypatch.setattr("bot.celery.close_old_connections", lambda: None)
    monkeypatch.setattr("bot.celery.RENEWED", 0.0)
    return LeasedScheduler(app)


def test_a_second_scheduler_waits_and_takes_over(scheduler: LeasedScheduler, caplog: pytest.LogCaptureFixture) -> None:
    now = timezone.now()
    other = ServiceLease.objects.create(
        name="scheduler", lease_until=now + timedelta(minutes=1), holder="other boot pid:[1] 5 5"
    )
    assert scheduler.tick() == WAIT
    assert scheduler.tick() == WAIT
    assert caplog.text.count("another scheduler is running") == 1
    ServiceLease.objects.filter(pk=other.pk).update(lease_until=now - timedelta(seconds=1))  # it has ended
    assert scheduler._holds_lease()
    assert "this scheduler took over" in caplog.text
    other.refresh_from_db()
    assert other.holder != "other boot pid:[1] 5 5"
    assert scheduler._holds_lease()  # renewed


def test_who_lost_the_lease_stops(scheduler: LeasedScheduler, caplog: pytest.LogCaptureFixture) -> None:
    assert scheduler._holds_lease()
    ServiceLease.objects.update(holder="other boot pid:[1] 5 5")
    assert scheduler.tick() == WAIT
    assert "another scheduler is running" in caplog.text


def test_an_error_of_the_database_costs_a_scheduler_no_minute(
    scheduler: LeasedScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scheduler._holds_lease()
    with monkeypatch.context() as away:
        away.setattr("bot.leases.database_now", lambda: (_ for _ in ()).throw(DatabaseError("locked")))
        assert not scheduler._holds_lease()
    assert scheduler._holds_lease()  # its own lease is still valid


def test_tasks_go_on_in_their_periods(scheduler: LeasedScheduler) -> None:
    """When each last ran is known from the database, so that a restart neither repeats nor forgets one."""
    now = timezone.now()
    TaskRun.objects.create(task="mail_faults", at=now - timedelta(minutes=50), seconds=1)
    TaskRun.objects.create(task="compose_reminders", at=now - timedelta(days=3), seconds=1)
    TaskRun.objects.create(task="suggest_closings", at=now + timedelta(days=3), seconds=1)
    assert scheduler._holds_lease()
    waits = {name: entry.is_due().next for name, entry in scheduler.schedule.items()}
    assert 9 * 60 < waits["mail_faults"] < 10 * 60 + 1
    assert scheduler.schedule["take_results"].is_due().is_due  # never ran
    assert waits["compose_reminders"] < 30
    assert 59 * 60 < waits["suggest_closings"] <= 3600  # the clock was wrong
    starts = sorted(entry.last_run_at + entry.schedule.run_every for entry in scheduler.schedule.values())
    assert all(later - earlier > timedelta(seconds=0.4) for earlier, later in pairwise(starts))


def test_a_daily_task_that_failed_runs_again_after_an_hour(scheduler: LeasedScheduler) -> None:
    now = timezone.now()
    run = TaskRun.objects.create(task="prune", at=now - timedelta(minutes=50), seconds=1, error="OSError: no space")
    TaskRun.objects.create(task="mail_suggestions", at=now - timedelta(hours=5), seconds=1)
    assert scheduler._holds_lease()
    assert not scheduler.schedule["prune"].is_due().is_due
    TaskRun.objects.filter(pk=run.pk).update(at=now - timedelta(minutes=70))
    scheduler.schedule["prune"].last_run_at = now - timedelta(minutes=70)
    assert scheduler._holds_lease()
    assert scheduler.schedule["prune"].is_due().is_due
    assert not scheduler.schedule["mail_suggestions"].is_due().is_due
    scheduler.schedule["prune"].last_run_at = now  # it was enqueued, and runs
    assert scheduler._holds_lease()
    assert not scheduler.schedule["prune"].is_due().is_due
    # No worker has come for three hours: it is not enqueued a second time.
    TaskRun.objects.filter(pk=run.pk).update(at=now - timedelta(hours=4))
    scheduler.schedule["prune"].last_run_at = now - timedelta(hours=3) + timedelta(seconds=1)
    assert scheduler._holds_lease()
    assert not scheduler.schedule["prune"].is_due().is_due


def test_a_start_after_a_silence_is_known_until_something_has_run(scheduler: LeasedScheduler) -> None:
    """So that nobody is told of what is late only because all was off."""

    def began() -> datetime | None:
        scheduler._know_last_runs()
        return TaskRun.objects.filter(task="scheduler").values_list("at", flat=True).first()

    now = timezone.now()
    assert began() is None  # new
    TaskRun.objects.create(task="send_mail", at=now - timedelta(minutes=1), seconds=1)
    assert began() is None
    TaskRun.objects.update(at=now - timedelta(days=1))
    first = began()
    assert first
    assert first >= now
    assert began() == first  # it dies again and again, and nothing runs: that must not hide it
    TaskRun.objects.filter(task="scheduler").update(at=now - timedelta(days=2))
    assert (began() or now) > now


# --- A worker that runs its tasks in threads starts anew when one can't be ended, or when it has grown ---


@pytest.fixture
def starts_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The exit codes with which it would have ended; the loop ends with the first look."""
    ended: list[int] = []

    def end(code: int) -> None:
        ended.append(code)
        raise SystemExit

    looks = iter([None])
    monkeypatch.setattr("bot.celery.time.sleep", lambda _: next(looks))
    monkeypatch.setattr("bot.celery.os._exit", end)
    monkeypatch.setattr("bot.celery.YOUNG", 0.0)
    monkeypatch.setattr("bot.celery.own_memory", lambda: 0)
    yield ended
    state.should_stop = None
    _runs.clear()


def look() -> None:
    with suppress(SystemExit, StopIteration):
        _StartsAnew(None)._look()


@pytest.mark.usefixtures("starts_anew")
@pytest.mark.parametrize(("ending", "code"), [(False, os.EX_SOFTWARE), (True, None)])
def test_a_scheduler_that_fails_takes_its_worker_along(ending: bool, code: int | None) -> None:
    """As a thread it would be missed by nobody; up starts both again."""

    def fail() -> None:
        raise OSError("no route to the broker")

    step = _Schedules(None)
    step.service, step.ending = SimpleNamespace(start=fail), ending  # type: ignore[assignment]
    step._run()
    assert state.should_stop == code


@pytest.mark.parametrize(("seconds", "codes"), [(90, []), (1600, [os.EX_SOFTWARE])])
def test_a_task_that_takes_longer_than_its_limit_ends_the_worker(
    starts_anew: list[int], seconds: float, codes: list[int]
) -> None:
    _runs["id"] = RunningTask(time.monotonic() - seconds, app.conf.task_time_limit, nullcontext())
    look()
    assert starts_anew == codes
    assert state.should_stop is None


@pytest.mark.usefixtures("starts_anew")
@pytest.mark.parametrize(("memory", "code"), [(GROWN - 1, None), (GROWN + 1, os.EX_OK)])
def test_a_worker_that_has_grown_ends_once_its_tasks_have(
    memory: int, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.celery.own_memory", lambda: memory)
    look()
    assert state.should_stop == code


def test_celery_finds_its_settings_by_itself() -> None:
    """As `celery -A bot inspect ping` does, which operators call without any variable."""
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", "import bot.celery; print(bot.celery.app.main)"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
