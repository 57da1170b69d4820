"""docs/results.md, executed as written: by command, through a pipe, and with curl against `up`."""

from __future__ import annotations

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

import pytest

from tests.conftest import ROOT
from tests.needs import need

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
    assert refused.returncode == 1
    assert refused.stderr.startswith("refused: standard input, line 1: 'bad' is a required property")
    assert "Traceback" not in refused.stderr
    (kept,) = (tmp_path / "drop" / "refused").glob("*.json")
    assert json.loads(kept.read_bytes()) == {"schema": "perf-bisect-result/1"}


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
