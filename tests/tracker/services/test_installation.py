"""What is stored is measured once a day; the page says how much more it is than a week before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from bot.tasks import prune
from tests.support.people import person
from tracker.models import RawMessage, StoredSize
from tracker.services.installation import KEPT, LARGEST, Growth, growth, measure_sizes, record_sizes

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 27, 3, tzinfo=UTC)
MIB = 1 << 20


def test_tables_and_directories_are_measured_and_what_is_missing_is_not(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "a.json").write_bytes(b"x" * MIB)
    (tmp_path / "a link").symlink_to("/")
    sizes = measure_sizes({"drop directory": tmp_path, "tree linus": tmp_path / "gone"})
    assert MIB <= sizes["drop directory"] < 2 * MIB
    assert "tree linus" not in sizes
    assert sizes["table report"] > 0
    tables = {f"table {name.removeprefix('tracker_')}" for name in connection.introspection.table_names()}
    others = {name for name in sizes if not name.startswith("table sqlite_")} - {"drop directory"}
    assert others <= tables  # an index counts with its table


def test_growth_is_since_the_last_measurement_of_a_week_ago() -> None:
    for days, size in ((15, 1), (9, 10), (8, 20), (3, 50), (1, 70)):
        record_sizes({"table message": size * MIB}, NOW - timedelta(days=days))
    record_sizes({"table message": 80 * MIB, "drop directory": 2 * MIB, "table event": MIB - 1}, NOW)
    assert growth(NOW + timedelta(hours=1)) == [
        Growth("table message", 80 * MIB, 60 * MIB),
        Growth("drop directory", 2 * MIB, None),
    ]


def test_nothing_is_known_before_the_first_measurement() -> None:
    assert growth(NOW) == []


def test_measurements_are_bounded() -> None:
    record_sizes({"old": MIB}, NOW - KEPT - timedelta(days=1))
    record_sizes({f"table {number}": (number + 1) * MIB for number in range(100)}, NOW)
    assert StoredSize.objects.count() == LARGEST
    assert growth(NOW)[0] == Growth("table 99", 100 * MIB, None)


def test_an_operator_may_prune_by_hand_only(settings: Any) -> None:
    old = RawMessage.objects.create(digest="q", compressed=b"", received_at=NOW - timedelta(days=400))
    settings.PERFWORK_PRUNE = False
    assert prune() == 0
    assert RawMessage.objects.filter(pk=old.pk).exists()
    settings.PERFWORK_PRUNE = True
    assert prune() == 1
    assert not RawMessage.objects.filter(pk=old.pk).exists()


def test_the_daily_task_removes_and_measures_and_the_page_shows_it(client: Client, settings: Any) -> None:
    done = settings.PERFWORK_DROP / "done"
    done.mkdir(parents=True, exist_ok=True)
    (done / "a.json").write_bytes(b"x" * 3 * MIB)
    assert prune() == 0
    operator = person("operator", "kim", "kim@lab.example")
    client.force_login(operator)
    page = client.get("/operating/").content.decode()
    assert "drop directory" in page
    assert "3.0" in page
    assert "not known yet" in page
