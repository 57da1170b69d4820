"""One scheduler is at work; a second one waits and says so, and takes over when the first has ended."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from bot.celery import WAIT, LeasedScheduler, app
from tracker.models import ServiceLease


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
