"""Regressions as KCIDB objects: its own library accepts them, whatever the reports say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from kcidb_io.schema import LATEST

from bot.archives.reader import read_source
from bot.archives.sources import open_sources
from bot.mail.settings import BotSettings
from tests.world import START, World
from tracker.models import Commit, Report
from tracker.pages.report_json import kcidb_json


def exported(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    call_command("export", "kcidb", **options)
    found = json.loads(capsys.readouterr().out)
    LATEST.validate_exactly(found)
    return dict(found)


def test_a_report_is_an_issue_with_its_incidents(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    report = world.report("mm: scan more")
    found = exported(capsys, origin="lab7")
    [issue], [checkout] = found["issues"], found["checkouts"]
    assert issue["report_url"].endswith(f"/report/{report.culprit.sha}/")
    assert issue["comment"] == report.status
    assert checkout["git_commit_hash"] == report.culprit.sha
    assert {each["issue_id"] for each in found["incidents"]} == {issue["id"]} == {f"lab7:{report.culprit.sha}"}
    tests = {each["id"]: each for each in found["tests"]}
    assert {each["test_id"] for each in found["incidents"]} <= tests.keys()
    assert all(each["number"]["value"] for each in tests.values())
    before = issue["version"]
    world.commit("mm: scan less", f'Fixes: {report.culprit.sha[:12]} ("mm: scan more")')
    world.track()
    assert exported(capsys)["issues"][0]["version"] > before


@pytest.mark.parametrize("name", ["reports-dev", "reports-in-patch-threads-dev"])
def test_all_reports_of_real_mail_are_valid(
    db: None, shared: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    robots = frozenset({"lkp@intel.com", "oliver.sang@intel.com", "rong.a.chen@intel.com", "yujie.liu@intel.com"})
    (source,) = open_sources(str(shared / f"{name}.mbox"))
    settings = BotSettings(address="perfbot@bot.example.org", robots=robots, trust_policy="open")
    read_source(source, settings, START)
    found = exported(capsys)
    regressions = Report.objects.filter(verdict="regression").count()
    assert len(found["issues"]) == regressions > 0
    assert len(found["incidents"]) >= regressions


@given(st.text(), st.text(), st.from_regex(r"[0-9a-f]{7,64}", fullmatch=True))
def test_any_words_are_valid(title: str, status: str, sha: str) -> None:
    report = Report(culprit=Commit(sha=sha, title=title), verdict="regression", status=status)
    LATEST.validate_exactly(json.loads(json.dumps(kcidb_json([(report, [])], "lab", lambda path: f"https://x{path}"))))


@pytest.mark.parametrize("origin", ["", "Lab", "a b", "a:b"])
def test_an_origin_that_kcidb_would_refuse(db: None, origin: str) -> None:
    with pytest.raises(CommandError, match="--origin: expected"):
        call_command("export", "kcidb", origin=origin)
