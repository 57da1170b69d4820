"""A profile: submitted by command and over the network, shown on its report's page and side by side."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.conftest import ROOT
from tests.support.needs import need
from tests.support.rows import token
from tests.support.world import World
from tracker.models import OutgoingMail, Report, ToolOutput
from tracker.services import catalog

# --- docs/results.md, executed as written: by command, through a pipe, and with curl against `up` ---

BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "results.md").read_text(), re.S)


def shell(block: str, var: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", block], cwd=ROOT, env=environment(var), capture_output=True, text=True)


def environment(var: Path) -> dict[str, str]:
    """A user's: `./manage.py` finds the Python that has everything installed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PERFWORK_VAR": str(var), "PERFWORK_PERIOD": "1"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """What `up` serves; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    running = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--bind", address],
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    host, port = address.split(":")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                break
        time.sleep(0.2)
    yield address
    running.terminate()
    running.wait(30)


@pytest.mark.slow
@pytest.mark.long
def test_a_result_by_command_and_a_refusal_through_a_pipe(tmp_path: Path) -> None:
    by_command, by_pipe = BLOCKS[:2]
    done = shell(by_command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "new: fixtures/results/01-mm-vmscan.json: lab7-9.1-0001 (report f04628387e" in done.stdout
    again = shell(by_command, tmp_path)
    assert "duplicate: fixtures/results/01-mm-vmscan.json" in again.stdout
    refused = shell(by_pipe, tmp_path)
    assert refused.returncode == os.EX_DATAERR
    assert refused.stderr.startswith('refused: standard input, line 1: "bad" is a required property')
    assert "Traceback" not in refused.stderr
    (kept,) = (tmp_path / "drop" / "refused").glob("*.json")
    assert json.loads(kept.read_bytes()) == {"schema": "perf-bisect-result/1"}


@pytest.mark.long
@pytest.mark.slow
def test_a_result_with_curl(served: str, tmp_path: Path) -> None:
    need("curl")
    block = next(block for block in BLOCKS if block.startswith("curl")).replace("127.0.0.1:8000", served)
    create = next(each for each in BLOCKS if "apikey create" in each)
    block = block.replace("$(cat token)", shell(create.partition(">")[0], tmp_path).stdout.strip())
    first = shell(block, tmp_path)
    assert first.returncode == 0, first.stderr
    assert " 202 " in first.stdout.splitlines()[0]
    location = re.search(r"^location: (\S+)", first.stdout, re.M | re.I)
    assert location
    assert " 200 " in shell(block, tmp_path).stdout.splitlines()[0]
    found = shell(f"curl -sS http://{served}{location[1]}", tmp_path)
    assert json.loads(found.stdout)["findings"][0]["headline"] is True
    refused = shell(block.replace("@fixtures/results/02-fs-ledger.json", "'{}'"), tmp_path)
    assert " 400 " in refused.stdout.splitlines()[0]
    assert '"pointer": ""' in refused.stdout
    stranger = shell(re.sub('perfwork_[^"]+', "guessed", block), tmp_path)
    assert " 401 " in stranger.stdout.splitlines()[0]


@pytest.mark.slow
@pytest.mark.long
def test_a_directory_that_is_dropped(served: str, tmp_path: Path) -> None:
    """The worker of `up` takes files and directories, each whole, and moves them where they belong."""
    drop = tmp_path / "drop"
    shutil.copy(ROOT / "fixtures" / "results" / "03-block.json", drop / ".block.json")
    (drop / ".block.json").rename(drop / "block.json")
    shutil.copytree(ROOT / "fixtures" / "results", drop / ".many")
    (drop / ".many" / "bad.json").write_text("{")
    (drop / ".many").rename(drop / "many")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        (drop / "done" / "block.json").exists() and (drop / "refused" / "many").exists()
    ):
        time.sleep(0.3)
    assert (drop / "done" / "block.json").exists()
    assert "bad.json" in (drop / "refused" / "many.reason").read_text()
    exported = shell("./manage.py export reports", tmp_path)
    assert len(exported.stdout.splitlines()) == 9


# --- A profile: submitted by command and over the network, shown on its report's page and side by side ---

OLD = """# Samples: 9K of event 'cycles'
# Overhead  Command  Shared Object      Symbol
    60.00%  scanner  [kernel.kallsyms]  [k] shrink_folio_list
    40.00%  scanner  [kernel.kallsyms]  [k] <img src=x onerror=alert(1)>
"""
NEW = OLD.replace("60.00%", "35.00%").replace("40.00%", "65.00%")


@pytest.fixture
def report(world: World) -> Report:
    world.ingest(world.result("b" * 40, "mm: a"))
    return Report.objects.get()


def attach(tmp_path: Path, **files: str) -> str:
    out = io.StringIO()
    for side, text in files.items():
        path = tmp_path / f"{side}.txt"
        path.write_text(text)
        call_command("tool_output", str(path), "--report", "b" * 12, "--side", side, stdout=out, stderr=out)
    return out.getvalue()


def test_profiles_of_both_sides(report: Report, tmp_path: Path, client: Client) -> None:
    assert "attached: parent.txt (perf report)" in attach(tmp_path, parent=OLD, culprit=NEW)
    attach(tmp_path, parent=OLD)  # again: nothing is new
    old, new = ToolOutput.objects.order_by("pk")
    page = client.get(f"/report/{'b' * 40}/").content.decode()
    link = f"/tool-output/beside/?old={old.pk}&amp;new={new.pk}"
    assert link in page
    beside = client.get(link.replace("&amp;", "&")).content.decode()
    assert '<th scope="row">&lt;img src=x onerror=alert(1)&gt;</th>' in beside
    assert "+25.00" in beside
    assert "-25.00" in beside
    one = client.get(f"/tool-output/{old.pk}/").content.decode()
    assert "&lt;img src=x" in one
    assert "<img src=x" not in one + beside
    raw = client.get(f"/tool-output/{old.pk}/raw/")
    assert raw.content.decode() == OLD
    assert (raw["Content-Type"], raw["X-Content-Type-Options"]) == ("text/plain; charset=utf-8", "nosniff")


def test_what_nobody_knows_is_kept_as_text(report: Report, tmp_path: Path, client: Client) -> None:
    assert "(text)" in attach(tmp_path, culprit="We looked at it for long.\nNothing.\n")
    row = ToolOutput.objects.get()
    assert "We looked at it for long." in client.get(f"/tool-output/{row.pk}/").content.decode()
    beside = client.get(f"/tool-output/beside/?old={row.pk}&new={row.pk}").content.decode()
    assert "No numbers could be read from these files." in beside


def test_wrong_ones_are_refused(report: Report, tmp_path: Path, client: Client) -> None:
    good = tmp_path / "good.txt"
    good.write_text(OLD)
    for arguments, why in (
        (["--side", "parent"], "expected a report with its side, or a kernel"),
        (["--report", "b" * 12], "side: expected parent or culprit"),
        (["--report", "c" * 12, "--side", "parent"], "no report has a culprit or a tag that begins with cccccccccccc"),
        (["--kernel", "v9.9"], "no kernel v9.9 was measured"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("tool_output", str(good), *arguments)
    (tmp_path / "empty.txt").write_text("\n")
    err = io.StringIO()
    files = [str(tmp_path / "empty.txt"), str(tmp_path / "missing.txt"), str(good)]
    with pytest.raises(CommandError, match="2 of 3 refused"):
        call_command("tool_output", *files, "--report", "b" * 12, "--side", "parent", stderr=err, stdout=err)
    assert "refused: empty.txt: the file is empty" in err.getvalue()
    assert "attached: good.txt" in err.getvalue()
    for path, status in (
        ("/tool-output/999/", 404),
        ("/tool-output/beside/?old=1", 400),
        ("/tool-output/beside/?old=x&new=1", 400),
    ):
        assert client.get(path).status_code == status


def test_over_the_network(report: Report, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    valid = token()

    def post(query: str, body: str = OLD, given: str = valid) -> Any:
        headers = {"Authorization": f"Bearer {given}"}
        return client.post(f"/api/v1/tool-output?{query}", body, content_type="text/plain", headers=headers)

    taken = post(f"report={'b' * 40}&side=culprit&name=perf.txt")
    assert (taken.status_code, taken.json()["kind"]) == (202, "perf report")
    assert client.get(taken.json()["location"]).status_code == 200
    assert post("report=x&side=culprit", given="wrong").status_code == 401
    assert post("side=culprit").status_code == 400
    assert post(f"report={'c' * 40}&side=culprit&name=x").status_code == 404
    assert post("kernel=v6.12%00&name=x").status_code == 400
    monkeypatch.setattr(catalog, "MOST_CHARACTERS", 10)
    assert post(f"report={'b' * 40}&side=culprit&name=y", "x" * 11).status_code == 400
    assert post(f"report={'b' * 40}&side=culprit&name=y", "x" * 50).status_code == 413


def test_what_one_lab_says_of_a_parent_makes_no_author_of_anothers_culprit(world: World) -> None:
    evil = {"name": "Mal", "email": "mal@evil.example"}
    parent = {"sha": "c" * 40, "subject": "EVIL", "author": evil}
    world.ingest(world.result("b" * 40, "mm: b", parent=parent, producer={"name": "other lab"}))
    world.ingest(world.result("c" * 40, "mm: c"))
    culprit = Report.objects.get(culprit__sha="c" * 40).culprit
    assert (culprit.title, culprit.author_email) == ("mm: c", "dana@dev.example")


def test_another_labs_result_adds_nobody_to_the_mail_about_a_culprit(world: World) -> None:
    report = world.report("mm: b", sha="b" * 40)
    first_bad = {
        "sha": "b" * 40,
        "subject": "EVIL",
        "author": {"name": "Mal", "email": "mal@evil.example"},
        "trailers": [{"tag": "Reviewed-by", "value": "Mal <mal@evil.example>"}],
    }
    other = {"id": "other-1", "producer": {"name": "other lab"}, "first_bad": first_bad}
    world.ingest(world.result("b" * 40, "mm: b", **other))
    world.ingest(world.result("b" * 40, "mm: b", **{**other, "id": "other-2"}))
    culprit = Report.objects.get(pk=report.pk).culprit
    assert (culprit.title, culprit.author_email, culprit.trailers) == ("mm: b", "dana@dev.example", [])


def test_a_mail_sends_nobody_to_the_tree_that_another_lab_names(world: World) -> None:
    """Trees of the same name are one row; a lab's own URL is in its own mail."""
    tree = {"name": "next", "branch": "master"}
    theirs, ours = "https://evil.example.net/linux.git", "https://git.example.org/next.git"
    named = {"tree": {**tree, "url": theirs}, "producer": {"name": "other lab"}}
    world.ingest(world.result("d" * 40, "mm: d", **named))

    def body(report: Report) -> str:
        return OutgoingMail.objects.get(report=report, purpose="report").body

    mail = body(world.report("mm: b", sha="b" * 40, tree=tree))
    assert (theirs in mail, "in tree next master" in mail) == (False, True)
    assert f"{ours} master" in body(world.report("mm: c", sha="c" * 40, tree={**tree, "url": ours}))
