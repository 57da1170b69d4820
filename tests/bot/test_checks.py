"""What `check` says of the settings, and what commands say of wrong arguments: one line, with what was expected."""

from __future__ import annotations

import base64
import re
import shutil
import socket
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import nacl.signing
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

import manage
from bot.checks import check_connections, check_settings, check_signatures
from bot.outbox.transports import Server
from tests.conftest import ROOT
from tests.support.servers import Moody
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
    assert set(grouped) == own
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


# --- check --connect ---


def unreachable(settings: Any, **values: object) -> list[str]:
    for name, value in values.items():
        setattr(settings, name, value)
    return [message.msg for message in check_connections()]


@pytest.mark.django_db
def test_an_installation_without_servers_has_none_to_reach(settings: Any) -> None:
    assert unreachable(settings) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMAIL_URL", "smtp://{closed}"),
        ("EMAIL_URL", "sendmail:///no/such/program"),
        ("CELERY_BROKER_URL", "redis://{closed}/0"),
        ("CELERY_BROKER_URL", "amqp://guest:secret@{closed}//"),
        ("PERFWORK_ARCHIVES", ["/no/archive", "nntp://{closed}/org.list"]),
        ("PERFWORK_LORE", "http://{closed}/all"),
        ("PERFWORK_READER_URL", "http://{closed}/v1"),
    ],
)
def test_a_server_that_does_not_answer_is_named(settings: Any, name: str, value: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
        given = (
            value.format(closed=closed) if isinstance(value, str) else [part.format(closed=closed) for part in value]
        )
        [trouble] = unreachable(settings, **{name: given})
    assert trouble.startswith(f"{name}: ")
    assert "secret" not in trouble


@pytest.mark.django_db
def test_a_mail_server_that_answers_is_no_trouble(settings: Any, moody: tuple[Moody, Server]) -> None:
    assert unreachable(settings, EMAIL_URL=f"smtp://127.0.0.1:{moody[1].port}") == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("in_dns", "expected"),
    [
        ("own", ""),
        ("other", "is of another key; `setup dns` prints ours"),
        ("", "no record perfwork._domainkey.bot.example.org in DNS; `setup dns` prints it"),
        (None, "DNS does not answer for perfwork._domainkey.bot.example.org"),
    ],
)
def test_a_dkim_key_must_be_the_one_in_dns(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_dns: str | None, expected: str
) -> None:
    keys = {name: nacl.signing.SigningKey.generate() for name in ("own", "other")}
    file = tmp_path / "key"
    file.write_bytes(base64.b64encode(bytes(keys["own"])))

    def record(name: str) -> str | None:
        public = base64.b64encode(bytes(keys[in_dns].verify_key)).decode() if in_dns else ""
        return f"v=DKIM1; k=ed25519; p={public}" if in_dns else in_dns

    monkeypatch.setattr("bot.config.key_in_dns", record)
    messages = unreachable(settings, PERFWORK_DKIM_KEY=str(file), PERFWORK_BOT_ADDRESS="perfbot@bot.example.org")
    assert [expected in message for message in messages] == ([True] if expected else [])
