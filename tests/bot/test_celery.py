"""The queue of files: what one process writes, another never sees in part, and a killed one leaves nothing broken."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from django.utils import timezone
from kombu import Connection, Exchange, Queue

from bot.celery import WAIT, LeasedScheduler, Transport, app
from tracker.models import ServiceLease

# --- The queue of files: what one process writes, another never sees in part, and a killed one leaves nothing broken
# ---

MAIL = Queue("mail", Exchange("mail"), routing_key="mail")


@pytest.fixture
def nothing_bound() -> None:
    """Forget what this process has bound, in another test's folder; never while a thread publishes."""
    Transport.global_state.clear()


def connect(folder: Path) -> Connection:
    (folder / "control").mkdir(exist_ok=True)
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder), "control_folder": str(folder / "control")}
    return Connection("filesystem://", transport=Transport, transport_options=options)


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
def test_the_app_uses_it_without_a_broker() -> None:
    with app.connection() as connection:
        assert isinstance(connection.transport, Transport)


# --- One scheduler is at work; a second one waits and says so, and takes over when the first has ended ---


@pytest.fixture
def scheduler(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LeasedScheduler:
    monkeypatch.setattr("bot.celery.close_old_connections", lambda: None)
    return LeasedScheduler(app, schedule_filename=str(tmp_path / "schedule"), lazy=True)


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
