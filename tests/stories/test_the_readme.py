"""All commands in the README run, in order, on an empty installation."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from bot.results.recognise import read_bytes
from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.long
def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    commands = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    assert len(commands) >= 10
    env = {**os.environ, "PERFWORK_VAR": str(tmp_path)}
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "./manage.py"
        done = subprocess.run(
            [sys.executable, program, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_the_page_about_archives_is_done_as_it_says(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "archives.md").read_text(), re.S)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PERFWORK_VAR": str(tmp_path)}
    command = ["bash", "-ec", f"./manage.py migrate -v0\n{block}"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "new: 1 report" in lines[0]
    assert "already known" in lines[1]
    assert lines[3] == "0 mails read again: none in quarantine, 0 reports with a changed status"


@pytest.mark.slow
def test_the_page_about_comparisons_is_done_as_it_says(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "comparisons.md").read_text(), re.S)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 6
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "./manage.py"
        call_command(*arguments, stdout=io.StringIO())


@pytest.mark.slow
def test_the_example_of_a_measurement_is_taken() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "comparisons.md").read_text(), re.S)
    (answer,) = read_bytes(example.encode(), "example")
    assert answer.rejection is None


@pytest.mark.slow
def test_every_setting_is_documented() -> None:
    code = (ROOT / "tracker" / "settings.py").read_text()
    names = set(re.findall(r'(?:env(?:\.\w+)?|flag|seconds|positive_int|pairs|address|database)\(\s*"([A-Z_]+)"', code))
    documented = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.M))
    assert names == documented | {"PERFWORK_ENV"}


@pytest.mark.slow
def test_every_command_in_mail_is_documented() -> None:
    from bot.replies.commands import Word

    shown = re.findall(r"`#lkp (.*?)(?::.*?)?`", (ROOT / "docs" / "answering.md").read_text())
    assert set(shown) == {word.value for word in Word}


@pytest.mark.slow
def test_the_help_that_the_mails_point_to(client: Client) -> None:
    page = client.get("/help/answering/").content.decode()
    assert ">Answering a report</h1>" in page
    assert settings.BASE_DIR == ROOT


@pytest.mark.slow
def test_every_file_that_the_documents_name_is_there() -> None:
    """A recipe that leads to a file of yesterday is worse than none."""
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    path = re.compile(r"`((?:bot|tracker|tests|templates|static|fixtures|docs)/[\w/.-]*[\w/])`")
    named = {(page.name, name) for page in pages for name in path.findall(page.read_text())}
    assert len(named) > 100
    assert {each for each in named if not (ROOT / each[1]).exists()} == set()
