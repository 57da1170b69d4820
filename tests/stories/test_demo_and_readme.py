"""The demo, run with the real commands on SQLite and on PostgreSQL: the same reports in the same states."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from bot import demo
from bot.archives.public_inbox import read_epoch
from bot.demo import DemoTree
from bot.mail.message import ParsedMail, parse
from bot.results.recognise import read_bytes
from tests.conftest import ROOT

# --- The demo, run with the real commands on SQLite and on PostgreSQL: the same reports in the same states ---


def manage(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def played(directory: Path, *options: str, **env: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """What the demo printed, and its reports by their titles' subsystems."""
    directory.mkdir()
    done = manage("demo", "--no-serve", *options, PERFWORK_VAR=str(directory), **env)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = manage("export", "reports", PERFWORK_ENV=str(directory / "demo" / "env")).stdout.splitlines()
    reports = [json.loads(line) for line in lines]
    return done.stdout, {each["title"]: each for each in reports}


def sent_mails(inbox: Path) -> list[ParsedMail]:
    """What the bot sent, as the list's archive has it."""
    mails = [parse(raw.raw) for raw in read_epoch(inbox / "git" / "0.git")]
    return [mail for mail in mails if mail.author.email == "perfbot@bot.example.org"]


STATES = {
    "[mm/vmscan]": ("fixed", "merged at v9.1-rc1, the regression has been fixed in v9.1-rc3"),
    "[fs/ledger]": ("responded", "merged at v9.1-rc1, the author has responded"),
    "[block]": ("no_action", "merged at v9.1-rc1"),
    "[net/relay]": ("expected", "merged at v9.1-rc2, the regression is expected"),
    "[sched/fair]": ("fix_confirmed", "merged at v9.1-rc2, a fix is proposed and confirmed"),
    "[x86/entry]": ("invalid", "merged at v9.1-rc2, the report was withdrawn"),
    "[ext9]": ("dropped", "merged at v9.1-rc2, the commit has been reverted in v9.1-rc3"),
    "[lib/sort]": ("fix_proposed", "currently not merged, in linux-next since next-20260922, a fix is proposed"),
    "[slab]": (
        "fix_queued",
        "currently not merged, in linux-next since next-20260922, a fix is queued in slab/slab.git (for-next)",
    ),
}


def assert_the_story(reports: dict[str, dict[str, Any]]) -> None:
    ours = {title: each for title, each in reports.items() if "-perfbot@" in each["message_id"]}
    found = {title.split()[1]: (each["state"], each["status"]) for title, each in ours.items()}
    assert found == STATES
    (of_a_person,) = (each for each in reports.values() if each["reported_by"] == "person")
    assert (
        of_a_person["status"] == 'v9.0 good, v9.1-rc2 bad, not bisected, waiting for Pat Penguin: "Can you bisect it?"'
    )
    assert len(reports) == 9 + 53 + 1


@pytest.mark.slow
@pytest.mark.long
def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    """Whatever is set for the installation that it runs on: none of it is the demo's, which would mail real people."""
    real = {"DATABASE_URL": f"sqlite:///{tmp_path / 'real.sqlite3'}", "EMAIL_URL": "smtp://127.0.0.1:9"}
    output, reports = played(tmp_path / "var", PERFWORK_TRUST="maintainers", **real)
    assert not (tmp_path / "real.sqlite3").exists()
    assert_the_story(reports)
    for step in ("$ ./manage.py ingest fixtures/results", "$ ./manage.py outbox send", "$ ./manage.py track"):
        assert step in output
    assert "merged at v9.1-rc2, a fix is proposed and confirmed" in " ".join(output.split())
    assert "on lab7-m2: measured, recorded" in output  # the circle: asked, claimed, measured, answered
    mails = {mail.subject: mail.text for mail in sent_mails(tmp_path / "var" / "demo" / "inbox")}
    assert "We tested this patch. It recovers 9" in mails["Re: [LKP] [sched/fair] 58d7ea8671: -21.2% regression"]
    failed = " ".join(mails["Re: [LKP] [ext9] 27c5d5b778: -47.3% regression"].split())
    assert "We could not test this patch: it does not apply to the culprit." in failed
    events = manage("export", "events", PERFWORK_ENV=str(tmp_path / "var" / "demo" / "env")).stdout.splitlines()
    assert all(json.loads(line)["evidence"] for line in events)


@pytest.mark.slow
@pytest.mark.long
def test_the_demo_tells_the_same_on_postgresql(tmp_path: Path, postgres: str) -> None:
    assert_the_story(played(tmp_path / "var", "--database", postgres)[1])


@pytest.mark.slow
def test_the_results_name_the_commits_of_the_demo_tree(tmp_path: Path) -> None:
    shas = set(demo.build_tree(DemoTree(tmp_path / "linux.git")).values())
    results = [json.loads(file.read_text()) for file in sorted((ROOT / "fixtures" / "results").glob("*.json"))]
    assert len(results) == 10
    assert {each["first_bad"]["sha"] for each in results if "first_bad" in each} <= shas


# --- All commands in the README run, in order, on an empty installation ---


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
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "measurements.md").read_text(), re.S)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 6
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "./manage.py"
        call_command(*arguments, stdout=io.StringIO())


@pytest.mark.slow
def test_the_example_of_a_measurement_is_taken() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "measurements.md").read_text(), re.S)
    (answer,) = read_bytes(example.encode(), "example")
    assert answer.rejection is None


@pytest.mark.slow
def test_every_setting_is_documented() -> None:
    code = (ROOT / "tracker" / "settings.py").read_text()
    names = set(re.findall(r'(?:env(?:\.\w+)?|flag|seconds|positive_int|pairs|address|database)\(\s*"([A-Z_]+)"', code))
    documented = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "reference.md").read_text(), re.M))
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
    assert len(named) > 60
    assert {each for each in named if not (ROOT / each[1]).exists()} == set()
