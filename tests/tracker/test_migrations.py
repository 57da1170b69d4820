"""What a migration may lose without a word."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection

from tests.conftest import ROOT, clean_environment
from tests.support.rows import line
from tests.support.world import World
from tracker.models import Folding, OutgoingMail
from tracker.pages import search
from tracker.services import event_log

pytestmark = pytest.mark.django_db
TRIGGERS = {f"{index}_{end}" for index in ("report_words", "message_words") for end in ("added", "removed", "changed")}


class _Editor:
    """What make_again needs of a schema editor, of which SQLite makes none inside a test's transaction."""

    connection = connection

    def execute(self, statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)


def triggers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        return {name for (name,) in cursor.fetchall()}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL needs no triggers")
def test_the_full_text_index_has_its_triggers_after_all_migrations() -> None:
    assert triggers() >= TRIGGERS, (
        "a migration made tracker_report or tracker_message again, which loses its triggers: let it end with "
        "migrations.RunPython(make_again, …) of tracker/migrations/_search_triggers.py"
    )


def test_a_new_database_is_folded_by_the_present_version() -> None:
    """Else the first reports in it would be said to be folded after an upgrade."""
    assert Folding.objects.get().version == event_log.VERSION


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL needs no triggers")
def test_lost_triggers_are_made_again_and_the_index_with_them() -> None:
    with connection.cursor() as cursor:
        for name in TRIGGERS:
            cursor.execute(f"DROP TRIGGER {name}")
    first = line(1, words="zanzibar")
    assert search.reports_with(["zanzibar"]) == []
    make_again = import_module("tracker.migrations._search_triggers").make_again
    make_again(apps, _Editor())
    assert triggers() >= TRIGGERS
    second = line(2, words="zanzibar")
    assert sorted(search.reports_with(["zanzibar"]) or []) == [first.pk, second.pk]
    second.delete()
    assert search.reports_with(["zanzibar"]) == [first.pk]


def test_a_database_of_before_1_0_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.sqlite3")) as old:
        old.execute("CREATE TABLE tracker_report (id INTEGER)")
    environment = {**clean_environment(), "PERFWORK_VAR": str(tmp_path)}
    environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'old.sqlite3'}"
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == os.EX_CONFIG
    assert "this database is of a version before 1.0, which can't be upgraded" in done.stderr
    assert "Traceback" not in done.stderr
    with closing(sqlite3.connect(tmp_path / "old.sqlite3")) as old:
        names = {name for (name,) in old.execute("SELECT name FROM sqlite_master WHERE name LIKE 'tracker_%'")}
    assert names == {"tracker_report"}


def test_who_is_a_maintainer_is_taken_from_the_reasons_of_mails_composed_before(world: World) -> None:
    world.report()
    mail = OutgoingMail.objects.get()
    lee = ["lee@dev.example", "Lee Park", "Cc", "maintainer of MM"]
    others = [
        ["max@dev.example", "Max", "", "maintainer of MM"],  # left out
        ["bo@dev.example", "Bo", "Cc", "reviewer of MM"],
    ]
    OutgoingMail.objects.filter(pk=mail.pk).update(people=[*mail.people, lee, *others])
    import_module("tracker.migrations.0009_maintainers_of_mail").fill(apps, _Editor())
    assert OutgoingMail.objects.get().maintainers == ["lee@dev.example"]
