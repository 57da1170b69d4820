"""What `setup` makes: settings, units and pieces for other servers; wrong input is refused before anything is made."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import environ
import nacl.signing
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from bot import deployment
from bot.management.commands.setup import Command
from tests.conftest import ROOT, clean_environment
from tests.support.needs import SERVERS, need

TEMPLATE = (ROOT / "deploy" / "perfwork.env").read_text()
FIRST = ("--site", "perf.lab.example", "--bot", "bot@bot.lab.example", "--operator", "kim@lab.example")


def settings_below(root: Path) -> dict[str, str]:
    return as_perfwork_reads((root / "etc" / "perfwork.env").read_text())


def as_perfwork_reads(text: str) -> dict[str, str]:
    """What django-environ takes from a file of settings."""

    class Reader(environ.Env):
        ENVIRON: ClassVar[dict[str, str]] = {}

    Reader.read_env(io.StringIO(text))
    return Reader.ENVIRON


def set_in(text: str, values: dict[str, str]) -> str:
    return deployment.with_settings(text, values, deployment.settings_in(TEMPLATE))


def test_settings_are_set_on_their_lines_and_the_others_stay() -> None:
    text = set_in(TEMPLATE, {"PERFWORK_FETCH": "on", "SECRET_KEY": "a\\1b"})
    changed = [new for old, new in zip(TEMPLATE.splitlines(), text.splitlines(), strict=True) if old != new]
    assert changed == ["SECRET_KEY=a\\1b", "PERFWORK_FETCH=on"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\n", "A=1\nPERFWORK_LAB=x\n"),  # of a version that did not have it yet
        ("A=1", "A=1\nPERFWORK_LAB=x\n"),
        ("", "PERFWORK_LAB=x\n"),
        ("#PERFWORK_LAB=Perfwork\nA=1\nPERFWORK_LAB=y\n", "#PERFWORK_LAB=Perfwork\nA=1\nPERFWORK_LAB=x\n"),
        ("PERFWORK_LAB=y\nPERFWORK_LAB=z\n", "PERFWORK_LAB=y\nPERFWORK_LAB=x\n"),
        ("export PERFWORK_LAB='y z'\n", "PERFWORK_LAB=x\n"),
    ],
)
def test_a_setting_is_set_on_the_line_that_counts(text: str, expected: str) -> None:
    assert set_in(text, {"PERFWORK_LAB": "x"}) == expected


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"PERFWORK_FETHC": "on"}, "PERFWORK_FETHC: there is no such setting; did you mean PERFWORK_FETCH?"),
        ({"PERFWORK_LAB": "a\nEMAIL_URL=smtp://elsewhere"}, "PERFWORK_LAB: expected one line"),
    ],
)
def test_a_setting_that_is_none_is_refused(values: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        set_in(TEMPLATE, values)


@given(st.text())
def test_no_value_sets_another_setting(value: str) -> None:
    try:
        text = set_in(TEMPLATE, {"PERFWORK_LAB": value})
    except ValueError:
        return
    before, after = as_perfwork_reads(TEMPLATE), as_perfwork_reads(text)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() <= {"PERFWORK_LAB"}


@pytest.mark.parametrize(
    ("url", "path", "value"),
    [
        ("https://lore.kernel.org/oe-lkp/0", "/srv/lore/oe-lkp/git/0.git", "/srv/lore/oe-lkp"),
        ("https://lore.kernel.org/lkml/git/17.git", "/srv/lore/lkml/git/17.git", "/srv/lore/lkml"),
    ],
)
def test_an_epoch_is_cloned_to_where_the_epochs_after_it_are_found(url: str, path: str, value: str) -> None:
    mirror = deployment.archive_mirror(url)
    assert (str(mirror.path), mirror.value) == (path, value)
    assert deployment.place_of("/srv/other", mirror) is None
    for listed in (value, f"/srv/other,{value}/", path):
        assert deployment.place_of(listed, mirror) == mirror.path


def test_a_tree_stays_where_it_is_with_the_branches_that_were_chosen() -> None:
    mirror = deployment.tree_mirror("mm=https://git.example.org/mm.git")
    assert (str(mirror.path), mirror.value) == ("/srv/git/mm.git", "mm=/srv/git/mm.git")
    assert deployment.place_of("linus=/srv/git/linux.git,mm=/data/mm.git#mm-*", mirror) == Path("/data/mm.git")
    assert deployment.place_of("linus=/srv/git/mm.git", mirror) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("--site", "perf.lab.example;", *FIRST[2:]),
        ("--site", "perf_lab", *FIRST[2:]),
        (*FIRST, "--bot", "bot@lab.example$(id)"),
        (*FIRST, "--operator", "kim at lab"),
        (*FIRST, "--bot", "bot@dev.example", "--operator", "kim@dev.example"),
        (*FIRST, "--list", "reports@bot.lab.example"),
        (*FIRST, "--set", "PERFWORK_TRUST=opne"),
        (*FIRST, "--list", "lists"),
        (*FIRST, "--database", "mysql://host/name"),
        (*FIRST, "--archive", "https://lore.kernel.org/oe-lkp"),
        (*FIRST, "--archive", "https://lore.kernel.org/../0"),
        (*FIRST, "--archive=--upload-pack=id/0"),
        (*FIRST, "--tree", "../linus=https://git.example.org/linux.git"),
        (*FIRST, "--tree", "linus=ext::sh -c id"),
        (*FIRST, "--tree", "linus"),
        (*FIRST, "--set", "PERFWORK_FETCH"),
        (*FIRST, "--set", "PERFWORK_TYPO=1"),
        FIRST[:4],
    ],
)
def test_wrong_input_is_refused_before_anything_is_made(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refusal:
        call_command("setup", *arguments, "--root", str(tmp_path))
    assert refusal.value.returncode == os.EX_USAGE
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_setup_writes_an_installation_and_run_again_changes_only_what_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("setup", *FIRST, "--database", "postgresql", "--root", str(tmp_path))
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["/etc/perfwork.env: made", "/usr/local/bin/perfwork: made"]
    values = settings_below(tmp_path)
    assert values["ALLOWED_HOSTS"] == "perf.lab.example,127.0.0.1"
    assert values["DATABASE_URL"] == "postgresql:///perfwork"
    assert values["PERFWORK_LIST_ADDRESS"] == ""
    assert len(values["SECRET_KEY"]) == 80
    assert (tmp_path / "etc" / "perfwork.env").stat().st_mode & 0o777 == 0o640

    call_command("setup", "--root", str(tmp_path))
    assert capsys.readouterr().out == "nothing to change\n"
    call_command("setup", "--root", str(tmp_path), "--archive", "https://lore.kernel.org/oe-lkp/0")
    assert capsys.readouterr().out == "/etc/perfwork.env: changed\n"
    assert settings_below(tmp_path) == values | {"PERFWORK_ARCHIVES": "/srv/lore/oe-lkp", "PERFWORK_FETCH": "on"}

    unit = (tmp_path / "etc" / "systemd" / "system" / "perfwork.service").read_text()
    assert f"WorkingDirectory={ROOT}\n" in unit
    environment = {**clean_environment(), "PERFWORK_ENV": str(tmp_path / "etc" / "perfwork.env")}
    environment["PERFWORK_VAR"] = str(tmp_path / "var")
    done = subprocess.run([sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_dry_run_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (*FIRST, "--archive", "https://lore.kernel.org/oe-lkp/0", "--root", str(tmp_path), "--dry-run")
    call_command("setup", *arguments)
    assert "/etc/perfwork.env: would be made" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_piece_needs_the_settings_first(tmp_path: Path) -> None:
    for piece, missing in (("nginx", "--site"), ("postfix", "--bot"), ("dns", "--bot")):
        with pytest.raises(CommandError, match=f"run setup with {missing} first"):
            call_command("setup", piece, "--root", str(tmp_path))


def printed(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("setup", *FIRST, "--root", str(root))
    capsys.readouterr()
    call_command("setup", *arguments, "--root", str(root))
    return capsys.readouterr().out


@pytest.mark.parametrize("relay", ["", "[smtp.example.org]:587"])
def test_postfix_accepts_its_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], relay: str) -> None:
    need("postfix")
    commands = printed(tmp_path / "root", capsys, "postfix", "--relay", relay)
    assert all(line.startswith("postconf -") or "sasl_passwd" in line for line in commands.splitlines())
    (tmp_path / "main.cf").write_text("compatibility_level = 3.6\n")
    (tmp_path / "master.cf").touch()
    environment = {**os.environ, "PATH": SERVERS}
    script = "\n".join(line for line in commands.splitlines() if line.startswith("postconf"))
    script = script.replace("postconf ", f"postconf -c {tmp_path} ")
    done = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    shown = subprocess.run(["postconf", "-c", tmp_path, "-n"], env=environment, capture_output=True, text=True)
    assert shown.stderr == ""
    assert "transport_maps = inline:{ bot@bot.lab.example=perfwork: }" in shown.stdout
    assert f"smtp_tls_security_level = {'secure' if relay else 'may'}\n" in shown.stdout
    service = subprocess.run(["postconf", "-c", tmp_path, "-M"], env=environment, capture_output=True, text=True)
    assert re.search(rf"^perfwork +unix .*argv={ROOT}/deploy/postfix/read-mail$", service.stdout, re.M | re.S)
    assert os.access(ROOT / "deploy" / "postfix" / "read-mail", os.X_OK)


@pytest.mark.slow
def test_the_record_for_dns_is_that_of_the_key_that_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import dkim

    need("openssl")
    zone = printed(tmp_path, capsys, "dns")
    assert zone == printed(tmp_path, capsys, "dns")  # the key that is there is kept
    assert all(len(line) < 1000 for line in zone.splitlines())
    [record] = re.findall(r"^perfwork\._domainkey\.bot\.lab\.example\. IN TXT \( (.*) \)$", zone, re.M)
    key = (tmp_path / "var" / "lib" / "perfwork" / "dkim.key").read_bytes()
    mail = b"From: bot@bot.lab.example\r\nSubject: s\r\n\r\ntext\r\n"
    signature = dkim.sign(mail, b"perfwork", b"bot.lab.example", key)
    text = "".join(re.findall(r'"([^"]*)"', record))
    assert base64.b64decode(text.partition("p=")[2])
    assert dkim.verify(signature + mail, dnsfunc=lambda name, timeout=5: text.encode())


def test_an_ed25519_key_and_a_signing_domain_have_their_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "etc" / "key"
    key.parent.mkdir()
    signing = nacl.signing.SigningKey.generate()
    key.write_bytes(base64.b64encode(bytes(signing)) + b"\n")
    call_command("setup", *FIRST, "--root", str(tmp_path))
    for value in ("PERFWORK_DKIM_KEY=/etc/key", "PERFWORK_DKIM_DOMAIN=lab.example", "PERFWORK_DKIM_SELECTOR=s1"):
        text = (tmp_path / "etc" / "perfwork.env").read_text()
        values = dict([value.split("=")])
        (tmp_path / "etc" / "perfwork.env").write_text(set_in(text, values))
    capsys.readouterr()
    call_command("setup", "dns", "--root", str(tmp_path), "--dry-run")
    public = base64.b64encode(bytes(signing.verify_key)).decode()
    assert f's1._domainkey.lab.example. IN TXT ( "v=DKIM1; k=ed25519; p={public}" )' in capsys.readouterr().out


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    call_command("setup", *FIRST, "--root", str(tmp_path))
    file = tmp_path / "etc" / "perfwork.env"
    file.write_text(set_in(file.read_text(), {"PERFWORK_DKIM_KEY": "/etc/key"}))
    (tmp_path / "etc" / "key").write_text("no key")
    with pytest.raises(CommandError, match="/etc/key: expected an RSA key in PEM, or an Ed25519 seed in base64"):
        call_command("setup", "dns", "--root", str(tmp_path))


def test_what_was_changed_in_a_unit_is_kept_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("setup", *FIRST, "--root", str(tmp_path))
    unit = tmp_path / "etc" / "systemd" / "system" / "perfwork.service"
    changed = unit.read_text().replace("ReadWritePaths=", "ReadWritePaths=/data/lore ")
    unit.write_text(changed)
    file = tmp_path / "etc" / "perfwork.env"
    file.chmod(0o644)
    capsys.readouterr()
    call_command("setup", "--root", str(tmp_path))
    assert (
        "perfwork.service: changed; what it was is in /etc/systemd/system/perfwork.service.old"
        in capsys.readouterr().out
    )
    assert unit.with_name("perfwork.service.old").read_text() == changed
    assert file.stat().st_mode & 0o777 == 0o640, "the secret could be read by everybody"


def test_mail_is_read_wherever_the_code_is(tmp_path: Path) -> None:
    """What Postfix runs; 75 is "try again later"."""
    script = tmp_path / "deploy" / "postfix" / "read-mail"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "postfix" / "read-mail", script)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    for code, expected in ((0, 0), (65, 65), (78, 75)):
        python.write_text(f'#!/bin/sh\necho "$PWD $*"; exit {code}\n')
        python.chmod(0o755)
        done = subprocess.run([script], cwd="/", capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (expected, f"{tmp_path} manage.py read -\n")


def test_the_command_runs_as_the_service_and_setup_as_root(tmp_path: Path) -> None:
    text = deployment.command_text(Path("/srv/perf work"))
    assert "cd '/srv/perf work' || exit 78" in text
    assert subprocess.run(["sh", "-n"], input=text.encode()).returncode == 0
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-s", "sh", "-"], input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stdout


def test_programs_that_setup_runs_do_not_get_the_settings_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django has read them into the environment, where they win over the file."""
    monkeypatch.setenv("DATABASE_URL", "postgresql:///old")
    monkeypatch.setenv("LANG", "C.UTF-8")
    command = Command()
    command.dry_run, command.writes_only = False, False
    seen = command._run("env").decode().splitlines()
    assert "LANG=C.UTF-8" in seen
    assert not [line for line in seen if line.startswith("DATABASE_URL")]


def test_a_refused_setting_is_named_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"\ACELERY_BROKER_URL: expected "):
        call_command("setup", *FIRST, "--set", "CELERY_BROKER_URL=foo://x", "--root", str(tmp_path))


def test_postgresql_that_is_not_here_is_missed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.management.commands.setup._has_user", lambda name: False)
    monkeypatch.setattr("bot.management.commands.setup.os.geteuid", lambda: 0)
    written: list[str] = []
    monkeypatch.setattr("bot.management.commands.setup.Command._write", lambda *_, **__: written.append("a file"))
    with pytest.raises(CommandError, match="apt-get install postgresql") as refusal:
        call_command("setup", *FIRST, "--database", "postgresql")
    assert (refusal.value.returncode, written) == (os.EX_UNAVAILABLE, [])
