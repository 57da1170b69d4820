"""Unsafe settings are rejected with a one-line message, and commands say what is missing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, clean_environment
from tracker.settings import postgresql_options

# --- Unsafe settings are rejected with a one-line message, and commands say what is missing ---

SECRET = "correct-horse-battery-staple-" * 3
SAFE = {"SECRET_KEY": SECRET, "ALLOWED_HOSTS": "perf.example.org", "PERFWORK_BASE_URL": "https://perf.example.org"}


def manage(var: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = clean_environment()
    command = [sys.executable, "manage.py", *arguments]
    env = {**clean, "PERFWORK_VAR": str(var), **env}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"ALLOWED_HOSTS": "perf.example.org"}, "SECRET_KEY is not set"),
        ({"SECRET_KEY": "changeme"}, "SECRET_KEY can be guessed"),
        ({"SECRET_KEY": "django-insecure-abc"}, "SECRET_KEY can be guessed"),
        ({"SECRET_KEY": "a short one of 30 characters.."}, "SECRET_KEY can be guessed"),
        ({"SECRET_KEY": "abab" * 20}, "SECRET_KEY can be guessed"),
        ({**SAFE, "DEBUG": "on"}, "DEBUG shows settings and code to everybody"),
        ({"PERFWORK_READER_URL": "file:///etc/passwd"}, "PERFWORK_READER_URL: expected an address"),
        ({"PERFWORK_TRUST": "everybody"}, "PERFWORK_TRUST: expected verified, open or maintainers, found 'everybody'"),
        ({"PERFWORK_APPROVE_FIRST": "enabled"}, "PERFWORK_APPROVE_FIRST: expected on or off, found 'enabled'"),
        ({"PERFWORK_PERIOD": "abc"}, "PERFWORK_PERIOD: expected a number of seconds, found 'abc'"),
        ({"PERFWORK_LEASE": "-1"}, "PERFWORK_LEASE: expected a number of seconds, found '-1'"),
        ({"PERFWORK_TREES": "foo"}, "PERFWORK_TREES: expected comma-separated name=path pairs"),
        ({"PERFWORK_TREES": "=/x"}, "PERFWORK_TREES: expected comma-separated name=path pairs"),
        ({"PERFWORK_BOT_ADDRESS": "perfbot"}, "PERFWORK_BOT_ADDRESS: expected an address"),
        ({"DATABASE_URL": "garbage"}, "DATABASE_URL: expected sqlite:///path or postgres://"),
        ({"PERFWORK_VAR": "/proc/nowhere"}, "PERFWORK_VAR: cannot create /proc/nowhere"),
        ({"PERFWORK_ENV": "/nowhere"}, "PERFWORK_ENV: no such file: /nowhere"),
        *(
            ({"PERFWORK_SENT": url}, "PERFWORK_SENT: expected imaps://user:password@host/Sent")
            for url in ("imaps:bot:s3cret@mx/Sent", "imaps://bot:s3\uff1fcret@mx/Sent", "imaps://bot:s3#cret@mx/Sent")
        ),
    ],
)
def test_what_is_unsafe_or_wrong_is_refused_in_a_line(tmp_path: Path, env: dict[str, str], message: str) -> None:
    done = manage(tmp_path, "check", **env)
    assert done.returncode != 0
    assert done.stderr.startswith("perfwork: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_production_settings_are_clean(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **SAFE)
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("value", "promised"), [("", "False False"), ("on", "True True")])
def test_what_a_domain_promises_to_browsers_is_opted_in(tmp_path: Path, value: str, promised: str) -> None:
    env = {**SAFE, "PERFWORK_HSTS_PRELOAD": value, "PERFWORK_HSTS_SUBDOMAINS": value} if value else SAFE
    shown = "from django.conf import settings as s; print(s.SECURE_HSTS_PRELOAD, s.SECURE_HSTS_INCLUDE_SUBDOMAINS)"
    done = manage(tmp_path, "shell", "-v0", "-c", shown, **env)
    assert done.stdout.split("\n")[-2] == promised, done.stderr


@pytest.mark.slow
def test_a_database_without_tables_is_said(tmp_path: Path) -> None:
    done = manage(tmp_path, "triage")
    assert done.returncode != 0
    assert done.stderr == "perfwork: database: no such table: tracker_folding; run `./manage.py migrate` first\n"


@pytest.mark.long
@pytest.mark.slow
def test_a_fresh_installation_says_what_to_do(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate", "-v0").returncode == 0
    for arguments, message, code in (
        (["triage"], "there are no reports yet", os.EX_NOINPUT),
        (["triage", "v0.1"], "v0.1: unknown release", os.EX_NOINPUT),
        (["track"], "set PERFWORK_TREES", os.EX_CONFIG),
        (["read"], "set PERFWORK_ARCHIVES", os.EX_USAGE),
        (["read", "--thread", "a@b"], "no lore server is set", os.EX_DATAERR),
        (["outbox", "send"], "EMAIL_URL is not set", os.EX_CONFIG),
    ):
        done = manage(tmp_path, *arguments)
        assert done.returncode == code
        assert message in done.stderr, arguments
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_secret_of_a_local_installation_is_its_own_and_stays(tmp_path: Path) -> None:
    ask = ["shell", "-v0", "-c", "from django.conf import settings; print(settings.SECRET_KEY)"]
    first, again = manage(tmp_path, *ask).stdout, manage(tmp_path, *ask).stdout
    other = tmp_path / "other"
    assert first == again
    assert len(first) > 50
    assert manage(other, *ask).stdout != first
    assert (tmp_path / "secret-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_nothing_runs_a_migration_short(tmp_path: Path) -> None:
    assert manage(tmp_path, "makemigrations", "--check", "--dry-run").returncode == 0


@pytest.mark.slow
def test_what_a_command_does_not_need_it_does_not_import() -> None:
    """Each of these costs a tenth of a second or more at every start."""
    code = (
        "import sys; sys.argv = ['manage.py', 'read', '--help']\n"
        "import runpy\n"
        "try: runpy.run_path('manage.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([name for name in ('structlog', 'scipy', 'sklearn', 'celery', 'b4') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "LOG_FORMAT": "line"}, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.slow
def test_what_the_database_url_says_of_a_connection_goes_first() -> None:
    ours = postgresql_options(60, {})
    assert ours["options"] == "-c idle_in_transaction_session_timeout=60000"
    given = {"options": "-c search_path=perf", "connect_timeout": 3}
    both = postgresql_options(0.5, given)
    assert both == {
        **ours,
        "options": "-c idle_in_transaction_session_timeout=5000 -c search_path=perf",
        "connect_timeout": 3,
    }


# --- Vendored files are identical to their releases ---

DIGESTS = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "uplot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
}


def test_vendored_files_are_as_released() -> None:
    folder = ROOT / "static" / "vendor"
    found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.glob("*.min.*")}
    assert found == DIGESTS
    assert all(name in (folder / "README.md").read_text() for name in DIGESTS)
