"""The demo, run with the real commands on SQLite and on PostgreSQL: the same reports in the same states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot import demo
from bot.archives.public_inbox import read_epoch
from bot.demo import DemoTree
from bot.mail.message import ParsedMail, parse
from tests.conftest import ROOT


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
    assert len(reports) == 9 + 53


@pytest.mark.slow
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
