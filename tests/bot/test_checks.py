"""What `check` says of the settings, and what commands say of wrong arguments: one line, with what was expected."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

import manage
from bot.checks import check_settings, check_signatures
from tests.conftest import ROOT
from tracker.models import RawMessage


def told(settings: Any, **values: object) -> list[str]:
    for name, value in values.items():
        setattr(settings, name, value)
    return [f"{message.id} {message.msg}" for message in check_settings()]


def test_settings_in_order_are_not_mentioned(settings: Any) -> None:
    assert told(settings) == []


def test_a_misspelt_setting_is_named_with_the_nearest(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFWORK_TRSUT", "open")
    monkeypatch.setenv("PERFWORK_ZZZZZZZZZZ", "1")
    [first, second] = check_settings()
    assert (first.msg, first.hint) == ("PERFWORK_TRSUT: there is no such setting", "did you mean PERFWORK_TRUST?")
    assert second.hint == "docs/reference.md has all of them"


def test_every_documented_setting_is_known(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set(re.findall(r"`(PERFWORK_[A-Z_]+)`", (ROOT / "docs" / "reference.md").read_text()))
    assert len(names) > 30
    for name in names:
        monkeypatch.setenv(name, "x")
    assert told(settings) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"CELERY_BROKER_URL": "foo://x"}, "perfwork.E002 CELERY_BROKER_URL: expected amqp://, redis:// or filesystem"),
        ({"EMAIL_URL": "smtp://"}, "perfwork.E001 EMAIL_URL: expected a server"),
        ({"PERFWORK_LIST_ADDRESS": "a list"}, "perfwork.E003 PERFWORK_LIST_ADDRESS: expected an address"),
        ({"PERFWORK_OPERATORS": ["kim@lab.example", "kim at lab"]}, "perfwork.E003 PERFWORK_OPERATORS"),
        ({"PERFWORK_TREES": {"linus": "/no/such.git#master"}}, "perfwork.W002 PERFWORK_TREES: /no/such.git does not"),
        (
            {"PERFWORK_ARCHIVES": ["nntps://x/y", "/no/list"]},
            "perfwork.W002 PERFWORK_ARCHIVES: /no/list does not exist",
        ),
    ],
)
def test_what_can_not_work_is_said_before_it_fails(settings: Any, values: dict[str, object], expected: str) -> None:
    [message] = told(settings, **values)
    assert message.startswith(expected)


@pytest.mark.parametrize(
    "arguments",
    [
        ("up", "--workers", "0"),
        ("up", "--workers", "9" * 400),
        ("read", "--jobs", "0", "x"),
    ],
)
def test_wrong_numbers_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"^--(workers|jobs): expected .*, found ") as refused:
        call_command(*arguments)
    assert refused.value.returncode == 64


@pytest.mark.django_db
def test_a_file_that_is_no_mail_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello, this is no mail\nat all\n")
    with pytest.raises(CommandError, match="1 of 1 could not be read") as refused:
        call_command("read", str(tmp_path / "notes.txt"))
    assert refused.value.returncode == 65
    assert "no mail: expected an mbox" in capsys.readouterr().err


def test_the_overview_has_every_command_once() -> None:
    own = {path.stem for path in (ROOT / "bot" / "management" / "commands").glob("*.py")} - {"__init__"}
    grouped = [name for names in manage.GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) - {"check"} == own
    done = subprocess.run([sys.executable, "manage.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.index("ingest") < done.stdout.index("Of Django:")
    assert not re.search(r"^.{141,}$", done.stdout.partition("Of Django:")[0], re.M)


@pytest.mark.django_db
def test_openpgp_signatures_that_count_as_none_are_told(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = b"From: dana@dev.example\nX-Developer-Signature: v=1; a=openpgp-sha256; h=from\n\nwords\n"
    for number, raw in enumerate((head, head.replace(b"openpgp", b"ed25519"), head.replace(b"v=1; ", b"v=1;\n l=9; "))):
        RawMessage.objects.create(digest=str(number), compressed=zlib.compress(raw), received_at=timezone.now())
    assert check_signatures() == []
    [told] = check_signatures(databases=["default"])
    assert told.msg.startswith("1 of the newest 1000 mails")
    (tmp_path / "openpgp").mkdir()
    settings.PERFWORK_KEYRING = str(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/gpg")
    assert check_signatures(databases=["default"]) == []


@pytest.mark.django_db
def test_a_database_without_tables_has_nothing_to_tell() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tracker_rawmessage RENAME TO elsewhere")
    assert check_signatures(databases=["default"]) == []
