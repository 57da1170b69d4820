"""From a benchmark's files to a report: by command, over the network, with the client, and from a bisection."""

from __future__ import annotations

import io
import json
import os
import random
import statistics
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.conftest import ROOT
from tests.support.needs import need
from tests.support.world import World
from tracker.models import BisectResult, Finding, Measurement, OutgoingMail, Report
from tracker.services.accounts import ANY_PRODUCER, Scope, create_api_key

FOLDER = ROOT / "fixtures" / "benchmarks"
SUBMIT, BISECT = ROOT / "deploy" / "perfwork-submit", ROOT / "deploy" / "perf-bisect"
OLD, NEW = (50120.0, 50098, 50155, 50101, 50133), (44020.0, 44101, 43988, 44075, 44043)


def fio(speed: float) -> str:
    read = {"total_ios": 9, "bw": speed * 4, "iops": speed}
    job = {
        "jobname": "j",
        "error": 0,
        "job options": {"rw": "read", "bs": "4k"},
        "read": read,
        "write": {"total_ios": 0},
    }
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]})


def runs(folder: Path, speeds: tuple[float, ...]) -> list[str]:
    folder.mkdir(exist_ok=True)
    for number, speed in enumerate(speeds):
        (folder / f"run{number}.json").write_text(fio(speed))
    return [str(path) for path in sorted(folder.iterdir())]


def ingest(*arguments: str) -> str:
    out = io.StringIO()
    call_command("ingest", *arguments, stdout=out, stderr=out)
    return out.getvalue()


# --- By command ---


def test_files_of_two_kernels_make_a_report_and_its_mail(world: World, settings: Any, tmp_path: Path) -> None:
    settings.PERFWORK_TREES = {"linus": str(world.git.path)}
    parent, culprit = world.commit("mm: prepare"), world.commit("mm: walk cold folios first")
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    told = ingest("--parent", *old, "--culprit", *new, "--commit", culprit[:12], "--machine", "laptop")
    assert "1 new; 1 mail composed" in told
    report = Report.objects.get()
    assert (report.culprit.sha, report.culprit.title) == (culprit, "mm: walk cold folios first")
    finding = Finding.objects.get(headline=True)
    assert finding.parent
    assert finding.parent.sha == parent
    assert finding.change_pct_raw == pytest.approx((statistics.mean(NEW) / statistics.mean(OLD) - 1) * 100)
    assert "fio" in OutgoingMail.objects.get().body
    again = ingest("--parent", *old, "--culprit", *new, "--commit", culprit, "--machine", "laptop")
    assert "1 duplicate; 0 mails composed" in again


def test_without_a_tree_the_commit_must_be_described(db: None, tmp_path: Path) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    sides = ["--parent", *old, "--culprit", *new, "--machine", "laptop"]
    for options, words in (
        ([], "expected the commit that is to blame"),
        (["--commit", "a" * 40], "expected the commit's title"),
        (["--commit", "A" * 40], "expected the commit's title"),
        (["--commit", "a" * 10], "expected its full sha"),
        (["--commit", "; rm -rf /"], "expected a sha, a tag or a version"),
    ):
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("ingest", *sides, *options, stdout=out, stderr=out)
        assert words in out.getvalue()
    described = ["--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a", "--author", "Dana <dana@dev.example>"]
    assert "1 new; 1 mail composed" in ingest(*sides, *described)


def test_the_same_files_count_once_whatever_they_are_called(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    described = ["--machine", "laptop", "--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a"]
    assert "1 new" in ingest("--parent", *old, "--culprit", *new, *described)
    assert "1 new" in ingest("--kernel", "v6.12", "--machine", "laptop", *new)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").rename(tmp_path / "renamed")
    renamed = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "renamed").iterdir())[::-1]
    assert "1 duplicate; 0 mails" in ingest("--parent", *old, "--culprit", *renamed, *described)
    assert "1 duplicate; 0 mails" in ingest("--kernel", "v6.12", "--machine", "laptop", *renamed)
    versions = ["--base", "v6.11", "--commit", "v6.12", "--machine", "laptop"]
    assert "1 new, 1 duplicate" in ingest("--parent", *old, "--culprit", *renamed, *versions)


def test_a_directory_that_grows_is_handed_in_again(db: None, tmp_path: Path) -> None:
    """As the cron line of docs/results.md does every night: each run counts once, whatever else comes with it."""
    files = runs(tmp_path / "out", NEW)
    for number, told in ((2, "1 new"), (5, "3 of them"), (5, "1 duplicate"), (4, "1 duplicate")):
        said = ingest("--kernel", "6.12.0", "--machine", "laptop", *files[:number])
        assert told.replace("3 of them", "2 of the files are stored already") in said
    iops = Measurement.objects.filter(kernel__name="v6.12", metric__name="fio.read_iops").order_by("pk")
    assert [sample for row in iops for sample in row.samples] == list(NEW)
    assert "1 new" in ingest("--kernel", "v6.12", "--machine", "desk", *files)  # it was another machine's
    assert "1 new" in ingest("--kernel", "v6.13", "--machine", "laptop", *files)


def test_what_the_other_files_say_of_the_machine_counts_for_new_ones(db: None, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.txt"
    first.write_text((FOLDER / "google-benchmark.json").read_text())  # which names its machine
    second.write_text((FOLDER / "perf-bench-sched-pipe.txt").read_text())
    assert "1 new" in ingest("--kernel", "v6.12", str(first))
    assert "1 of the files is stored already" in ingest("--kernel", "v6.12", str(first), str(second))


def test_a_name_counts_where_it_names_the_test(db: None, tmp_path: Path) -> None:
    """will-it-scale's CSV says nowhere which test it is of: its file does."""
    head = "tasks,processes,processes_idle,threads,threads_idle,linear\n"
    for side, numbers in (("old", (1000, 3000)), ("new", (900, 3100)), ("swapped", (3100, 900))):
        (tmp_path / side).mkdir()
        for name, number in zip(("page_fault1", "malloc1"), numbers, strict=True):
            (tmp_path / side / f"{name}.csv").write_text(f"{head}1,{number},90,{number},90,{number}\n")
    described = ["--machine", "laptop", "--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a"]
    for side in ("swapped", "new"):
        sides = ["--parent", str(tmp_path / "old"), "--culprit", str(tmp_path / side)]
        assert "1 new" in ingest(*sides, *described), side
        assert "1 new" in ingest("--kernel", "v6.12", "--machine", "laptop", str(tmp_path / side)), side


def test_a_file_given_twice_is_refused(db: None, tmp_path: Path) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    long = [tmp_path / "one.txt", tmp_path / "copy.txt"]
    for path in long:
        path.write_text((FOLDER / "sysbench-cpu.txt").read_text())
    copied = ["--parent", *map(str, long), "--culprit", str(long[0])]
    described = ["--machine", "laptop", "--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a"]
    for sides in (["--parent", old[0], *old, "--culprit", *new], ["--parent", *old, "--culprit", *new, new[2]], copied):
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("ingest", *sides, *described, stdout=out, stderr=out)
        assert "expected each run once, found this one twice" in out.getvalue()


def test_two_versions_make_curves_and_no_report(db: None, tmp_path: Path) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    told = ingest("--parent", *old, "--culprit", *new, "--base", "v6.11", "--commit", "v6.12", "--machine", "laptop")
    assert "2 new; 0 mails composed" in told
    assert "a report needs a culprit, which deploy/perf-bisect finds" in told
    assert not Report.objects.exists()


def test_one_version_is_not_compared_with_itself(db: None, tmp_path: Path) -> None:
    sides = ["--parent", *runs(tmp_path / "old", OLD), "--culprit", *runs(tmp_path / "new", NEW), "--machine", "laptop"]
    for name in ("v6.12-rc3", "a" * 40):
        assert "base: expected two kernels" in refused(*sides, "--base", name, "--commit", name, "--title", "mm: a")


def refused(*arguments: str) -> str:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("ingest", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def plain(folder: Path, unit: str, better: str, values: tuple[float, ...]) -> list[str]:
    folder.mkdir()
    for number, value in enumerate(values):
        (folder / f"{number}.csv").write_text(f"metric,unit,better,value\nmyapp.lat,{unit},{better},{value}\n")
    return [str(path) for path in sorted(folder.iterdir())]


def test_sides_in_different_units_or_directions_are_refused(db: None, tmp_path: Path) -> None:
    described = ["--machine", "laptop", "--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a"]
    old = plain(tmp_path / "us", "us", "lower", (100.1, 100.2, 100.3, 100.4))
    new = plain(tmp_path / "ms", "ms", "lower", (109.1, 109.2, 109.3, 109.4))
    said = refused("--parent", *old, "--culprit", *new, *described)
    assert "lat: expected one unit, found us (the parent) and ms (the culprit)" in said
    turned = plain(tmp_path / "turned", "usec", "higher", (109.1, 109.2, 109.3, 109.4))
    said = refused("--parent", *old, "--culprit", *turned, *described)
    assert "lat: expected one direction that is better, found lower (the parent) and higher (the culprit)" in said
    ingest("--kernel", "v6.12", "--machine", "laptop", *old)
    said = refused("--kernel", "v6.13", "--machine", "laptop", *new)
    assert "myapp.lat: expected it in us, as it is stored here; found ms" in said


def test_another_machine_of_the_same_name_holds_the_result(world: World, tmp_path: Path, admin_client: Client) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    described = ["--base", "b" * 40, "--title", "mm: a", "--author", "Dana <dana@dev.example>", "--machine", "box"]
    ingest("--parent", *old, "--culprit", *new, "--commit", "a" * 40, "--cpus", "64", *described)
    told = ingest("--parent", *old, "--culprit", *new, "--commit", "c" * 40, "--cpus", "8", *described)
    assert "the result says that box has 8 CPUs; stored here: 64 CPUs: another machine of this name?" in told
    assert Report.objects.get(culprit__sha="c" * 40).held
    page, anybody = (client.get(f"/report/{'c' * 40}/").content.decode() for client in (admin_client, Client()))
    way = f'<a href="/admin/tracker/report/?q={"c" * 40}">Lift the hold in the admin</a>'
    assert (way in page, way in anybody) == (True, False)
    assert "1 report" in admin_client.get(f"/admin/tracker/report/?q={'c' * 40}").content.decode()


def test_a_metric_in_another_unit_holds_the_result(world: World) -> None:
    world.ingest(world.result("c" * 40, "mm: a"))
    other = world.result("d" * 40, "mm: b")
    measurement = other["measurements"][0]
    measurement["unit"] = f"k{measurement['unit']}"
    (receipt,) = world.ingest(other)
    assert f"the result gives {measurement['metric']} in {measurement['unit']}, but it is stored in" in receipt.summary


def test_benchmark_files_in_a_directory_of_results_are_not_passed_over(db: None, tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("what this is\n")
    (tmp_path / "run-0.txt").write_text((FOLDER / "hackbench.txt").read_text())
    (tmp_path / "result.json").write_text((ROOT / "fixtures/results/03-block.json").read_text())
    (tmp_path / "other.json").write_text('{"bad": 1, "good": 2}')
    said = refused(str(tmp_path))
    assert "1 new" in said
    assert "run-0.txt: hackbench of one kernel: expected --kernel VERSION" in said
    assert said.count("other.json") == 1
    assert "other.json: expected a result with its schema, perf-bisect-result/1, say; found none" in said
    assert "README" not in said


def test_every_fault_of_every_file_is_printed_on_a_line_of_its_own(db: None, tmp_path: Path) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    Path(old[0]).write_text(fio(OLD[0]).replace("50120.0", "NaN").replace('"error": 0', '"error": 5'))
    Path(new[1]).write_text("{")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 of 1 refused"):
        call_command(
            *("ingest", "--parent", *old, "--culprit", *new, "--commit", "a" * 40, "--base", "b" * 40, "--title", "x"),
            stdout=out,
            stderr=out,
        )
    lines = out.getvalue().splitlines()
    assert [line for line in lines if f"{old[0]}, /jobs/0/error: the job failed with error 5" in line]
    assert [line for line in lines if f"{old[0]}, /jobs/0/read/iops: expected a finite number" in line]
    assert [line for line in lines if f"{new[1]}, line 1: not JSON, or cut short" in line]
    assert not BisectResult.objects.exists()


@pytest.mark.parametrize("path", sorted(path.name for path in FOLDER.iterdir() if path.name != "README.md"))
def test_a_file_by_itself_is_told_what_it_needs(db: None, path: str) -> None:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("ingest", str(FOLDER / path), stdout=out, stderr=out)
    assert "of one kernel: expected --kernel VERSION" in out.getvalue()
    if path not in ("kselftest.tap",):  # whose metrics have no known direction
        assert "1 new" in ingest("--kernel", "v6.12", "--machine", "m1", str(FOLDER / path))


# --- Over the network ---


def token(producer: str = ANY_PRODUCER) -> str:
    return create_api_key(f"lab for {producer}", [Scope.RESULTS], producer, timezone.now())[1]


def form(speeds: dict[str, tuple[float, ...]], **fields: object) -> dict[str, object]:
    files = {
        side: [SimpleUploadedFile(f"{side}{number}.json", fio(speed).encode()) for number, speed in enumerate(values)]
        for side, values in speeds.items()
    }
    return {**files, **fields}


def post(data: dict[str, object], key: str) -> tuple[int, dict[str, object]]:
    answer = Client().post("/api/v1/files", data, headers={"Authorization": f"Bearer {key}"})
    return answer.status_code, answer.json()


CULPRIT = {"commit": "a" * 40, "base": "b" * 40, "title": "mm: a", "author": "Dana <dana@dev.example>", "machine": "m1"}


def test_files_come_as_a_form(db: None) -> None:
    key = token()
    data = {"parent": OLD, "culprit": NEW}
    assert post(form(data, **CULPRIT, param="nr=4", cpus="8"), key)[0] == 202
    assert post(form(data, **CULPRIT, param="nr=4", cpus="8"), key)[0] == 200
    assert Finding.objects.filter(headline=True, machine__cpus=8).count() == 1
    for status in (202, 200):  # the same files again are known, whenever they come
        assert post(form({"file": OLD}, kernel="v6.12", machine="m1"), key)[0] == status
    assert post(form({"file": OLD}, kernel="v6.12", machine="m2"), key)[0] == 202


def test_a_form_is_refused_with_its_faults(db: None) -> None:
    key = token()
    status, answer = post(form({"parent": OLD, "culprit": (float("nan"),)}, **{**CULPRIT, "machine": ""}), key)
    assert status == 400
    faults = answer["faults"]
    assert isinstance(faults, list)
    assert {fault["pointer"].split(",")[0] for fault in faults} >= {"culprit0.json", "machine"}
    for data, words in (
        ({"kernel": "v6.12"}, "expected files as `parent` and `culprit`"),
        (form({"file": OLD}, kernel="v6.12", machine="m1", param="x"), "NAME=VALUE"),
        (form({"file": OLD}, kernel="v6.12", colour="red"), "suite, title, tree; found colour"),
    ):
        status, answer = post(data, key)
        assert (status, words in str(answer)) == (400, True), answer
    assert post(form({"parent": OLD, "culprit": NEW}, **CULPRIT, producer="other"), token("lab7"))[0] == 400
    assert post(form({"parent": OLD, "culprit": NEW}, **CULPRIT), "guessed")[0] == 401
    assert Client().post("/api/v1/files", "{}", content_type="application/json").status_code == 401


def test_a_file_posted_as_a_result_is_told_where_it_belongs(db: None) -> None:
    headers = {"Authorization": f"Bearer {token()}"}
    for name in ("fio-1.json", "sysbench-cpu.txt"):
        body = (FOLDER / name).read_bytes()
        answer = Client().post("/api/v1/results", body, content_type="application/json", headers=headers)
        assert (answer.status_code, "post it to /api/v1/files" in answer.json()["error"]) == (400, True)


# --- The client ---


class _Server(BaseHTTPRequestHandler):
    """Answers with the statuses that it was given, and keeps what was posted."""

    statuses: list[int]
    seen: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Authorization"], body))
        self.send_response(self.statuses.pop(0) if self.statuses else 202)
        self.end_headers()
        self.wfile.write(b'{"status": "new"}')

    def log_message(self, *arguments: object) -> None: ...


def submit(
    tmp_path: Path, statuses: list[int], *arguments: str
) -> tuple[subprocess.CompletedProcess[str], list[tuple[str, str, bytes]]]:
    need("curl")
    handler = type("Handler", (_Server,), {"statuses": statuses, "seen": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin" / "sleep").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "sleep").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "PERFWORK_URL": f"http://127.0.0.1:{server.server_port}/",
        "PERFWORK_KEY": "secret",
    }
    done = subprocess.run([str(SUBMIT), *arguments], capture_output=True, text=True, env=env, cwd=tmp_path, check=False)
    server.shutdown()
    server.server_close()
    return done, handler.seen


def test_the_client_sends_files_and_options(tmp_path: Path) -> None:
    odd = tmp_path / 'a;b,c "d".json'
    odd.write_text(fio(1))
    done, seen = submit(
        tmp_path, [], "--title", "mm: a; b", "--parent", odd.name, "--culprit", odd.name, "--param", "n=1"
    )
    assert done.returncode == 0, done.stderr
    [(path, key, body)] = seen
    assert (path, key) == ("/api/v1/files", "Bearer secret")
    for part in (b'name="parent"', b'name="culprit"', b"mm: a; b", b"n=1", b"fio-3.33"):
        assert part in body


@pytest.mark.parametrize(
    ("statuses", "code", "tries"),
    [([503, 429, 202], 0, 3), ([500] * 9, 69, 5), ([400], 65, 1), ([409], 65, 1), ([401], 77, 1), ([200], 0, 1)],
)
def test_the_client_tries_again_and_says_how_it_ended(
    tmp_path: Path, statuses: list[int], code: int, tries: int
) -> None:
    (tmp_path / "a.json").write_text(fio(1))
    done, seen = submit(tmp_path, statuses, "--kernel", "v6.12", "a.json")
    assert (done.returncode, len(seen)) == (code, tries)
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [(), ("--kernel",), ("--colour", "red"), ("--kernel", "v6.12", "missing.json"), ("--finish",)]
)
def test_the_client_explains_wrong_usage(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done, seen = submit(tmp_path, [], *arguments)
    assert (done.returncode, seen) == (64, [])
    assert done.stderr.startswith("perfwork-submit: ")


# --- A bisection ---


def toy_repository(folder: Path, slow: int, commits: int = 40) -> list[str]:
    """Return the shas of a repository in which `speed` drops by a tenth in one commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=Dana", "-c", "user.email=dana@dev.example"]
    folder.mkdir()
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for number in range(commits):
        (folder / "speed").write_text(f"{900 if number >= slow else 1000}\n")
        (folder / "step").write_text(f"{number}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"mm: step {number}"], check=True)
    shas = subprocess.run([*git, "log", "--reverse", "--format=%H"], check=True, capture_output=True, text=True).stdout
    return shas.split()


# The noise is that of the number of the run: by chance, one repository in a hundred would differ where none does.
BENCH = """import os, random, sys
with open(__file__ + ".runs", "a") as runs:
    runs.write(".")
    random.seed(runs.tell())
print(float(open("speed").read()) + random.gauss(0, float(sys.argv[1])))
"""


def bisect(folder: Path, shas: list[str], spread: float, *options: str) -> subprocess.CompletedProcess[str]:
    (folder.parent / "bench.py").write_text(BENCH)
    return subprocess.run(
        [
            *(sys.executable, str(BISECT), "--good", shas[0], "--bad", shas[-1], "--better", "higher", *options),
            "--metric",
            "toy.ops_per_sec",
            "--unit",
            "ops/s",
            "--machine",
            "laptop",
            *("--", sys.executable, "-I", "-S", str(folder.parent / "bench.py"), str(spread)),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.long
def test_a_slowdown_is_found_under_noise_ten_times(tmp_path: Path) -> None:
    """The drop is 10 %, the noise 3 %: the right commit, or a reason why it can't be told."""
    outcomes = []
    for number in range(10):
        slow = random.Random(number).randrange(1, 40)
        shas = toy_repository(tmp_path / f"toy{number}", slow)
        done = bisect(tmp_path / f"toy{number}", shas, 30)
        if done.returncode == 0:
            assert f"first bad commit: {shas[slow][:12]}" in done.stdout, (done.stdout, slow)
        else:
            assert "too noisy" in done.stderr, done.stderr
        outcomes.append(done.returncode)
    assert outcomes.count(0) >= 9


@pytest.mark.slow
def test_a_bisection_makes_a_report(world: World, tmp_path: Path) -> None:
    shas = toy_repository(tmp_path / "toy", 5, commits=12)
    done = bisect(tmp_path / "toy", shas, 5)
    assert done.returncode == 0, done.stderr
    assert f"first bad commit: {shas[5][:12]} mm: step 5: -" in done.stdout
    assert "not handed in" in done.stdout
    folder = tmp_path / "toy" / ".git" / "perf-bisect"
    sides = [str(folder / shas[number] / "samples.csv") for number in (4, 5)]
    # what perf-bisect gives to ingest or perfwork-submit
    told = ingest(
        *("--parent", sides[0], "--culprit", sides[1], "--commit", shas[5], "--base", shas[4], "--machine", "laptop"),
        "--title", "mm: step 5", "--author", "Dana <dana@dev.example>",
    )  # fmt: skip
    assert "1 new; 1 mail composed" in told
    assert Finding.objects.get().change_pct_raw == pytest.approx(-10, abs=1.5)


@pytest.mark.slow
def test_a_bisection_without_a_difference_says_so(tmp_path: Path) -> None:
    shas = toy_repository(tmp_path / "toy", 99, commits=3)
    done = bisect(tmp_path / "toy", shas, 30, "--most", "10")
    assert done.returncode == 1
    assert done.stderr.startswith("perf-bisect: too noisy, or no difference: ")
    (tmp_path / "toy" / "speed").write_text("7\n")
    assert "the tree has changes" in bisect(tmp_path / "toy", shas, 30).stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--ingest", "/nowhere/manage.py"), "--ingest /nowhere/manage.py: there is no such file"),
        (("--ingest", str(ROOT / "manage.py")), "its database is not migrated: run `manage.py migrate`"),
        (("--good", "v6.8"), "v6.8: this repository has no such commit; `git fetch --tags` may bring it"),
        (("--setup", "chmod 0 bench; ./bench"), "'chmod 0 bench; ./bench' failed"),
    ],
)
def test_what_would_fail_in_the_end_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/empty.sqlite3")
    done = bisect(tmp_path / "toy", toy_repository(tmp_path / "toy", 2, commits=3), 5, *options)
    assert done.returncode in (1, 64, 69)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "good:" not in done.stdout, "nothing was measured in vain"


@pytest.mark.slow
def test_a_command_that_is_missing_and_a_key_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shas = toy_repository(tmp_path / "toy", 2, commits=3)
    command = [sys.executable, str(BISECT), "--good", shas[0], "--bad", shas[-1], "--better", "higher", "--", "./bnch"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path / "toy", check=False)
    assert (done.returncode, done.stderr) == (64, "perf-bisect: ./bnch: can't be run: No such file or directory\n")
    monkeypatch.setenv("PERFWORK_URL", "http://127.0.0.1:9")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path / "toy", check=False)
    assert (done.returncode, "PERFWORK_KEY is not" in done.stderr) == (64, True)


def test_the_same_files_on_both_sides_are_held(world: World, tmp_path: Path) -> None:
    files = runs(tmp_path / "old", OLD)
    described = ["--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a", "--author", "Dana <dana@dev.example>"]
    ingest("--parent", *files, "--culprit", *files, "--machine", "m1", *described)
    assert "both sides are the very same files" in Report.objects.get().held


@pytest.mark.slow
def test_steps_of_git_bisect_are_kept_and_handed_in(tmp_path: Path) -> None:
    shas = toy_repository(tmp_path / "toy", 5, commits=9)
    script = (
        f'cp speed out.txt; {SUBMIT} --step "$(test "$(cat speed)" = 1000 && echo good || echo bad)" out.txt;'
        ' test "$(cat speed)" = 1000'
    )
    toy = tmp_path / "toy"
    subprocess.run(["git", "bisect", "start", shas[-1], shas[0]], cwd=toy, check=True, capture_output=True)
    subprocess.run(["git", "bisect", "run", "sh", "-c", script], cwd=toy, check=True, capture_output=True)
    done, seen = submit(toy, [], "--finish", "--machine", "m1")
    assert done.returncode == 0, done.stderr
    [(path, _, body)] = seen
    assert path == "/api/v1/files"
    for part in (shas[5].encode(), shas[4].encode(), b"mm: step 5", b"Dana <dana@dev.example>", b"git bisect start"):
        assert part in body


@pytest.mark.slow
def test_the_toy_of_the_documentation_gets_slower_in_one_commit(tmp_path: Path) -> None:
    subprocess.run([str(ROOT / "fixtures" / "toy.sh"), str(tmp_path / "toy")], check=True, capture_output=True)
    command = ["git", "-C", str(tmp_path / "toy"), "log", "--format=%s", "--", "thinktime"]
    log = subprocess.run(command, check=True, capture_output=True, text=True)
    assert log.stdout.splitlines() == ["mm/readahead: look twice before reading", "mm: step 0"]


# --- What goes out again ---


def test_findings_go_out_in_benchers_format(world: World, tmp_path: Path) -> None:
    old, new = runs(tmp_path / "old", OLD), runs(tmp_path / "new", NEW)
    described = ["--commit", "a" * 40, "--base", "b" * 40, "--title", "mm: a", "--author", "Dana <dana@dev.example>"]
    ingest("--parent", *old, "--culprit", *new, "--machine", "m1", *described)
    out = io.StringIO()
    call_command("export", "findings", "--format", "bmf", stdout=out)
    value = json.loads(out.getvalue())
    measure = value["fio bs=4k rw=read test=j on m1"]["read_iops"]
    assert measure["value"] == pytest.approx(statistics.mean(NEW))
    assert measure["lower_value"] < measure["value"] < measure["upper_value"]
    (tmp_path / "again.json").write_text(out.getvalue())
    assert "1 new" in ingest("--kernel", "v6.12", "--machine", "m1", str(tmp_path / "again.json"))
    with pytest.raises(CommandError, match="bmf is for findings"):
        call_command("export", "events", "--format", "bmf")


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("throughput: 797,424 ops/s", " 797424 ±"),
        ("throughput: 797,424.5 ops/s", " 797424 ±"),
        ("took 1,2 and 7", " 7 ±"),
        ("8,512", " 512 ±"),
        ("1.5e6", " 1.5e+06 ±"),
        ("it took a while", "expected a number in the output"),
    ],
)
def test_a_bisection_reads_the_number_that_was_printed(tmp_path: Path, printed: str, says: str) -> None:
    shas = toy_repository(tmp_path / "toy", 99, commits=2)
    ends = ("--good", shas[0], "--bad", shas[-1], "--better", "higher", "--runs", "3", "--most", "3")
    done = subprocess.run(
        [sys.executable, str(BISECT), *ends, "--", "echo", printed],
        capture_output=True, text=True, cwd=tmp_path / "toy", check=False,
    )  # fmt: skip
    assert says in done.stderr


def test_a_bisection_takes_no_number_that_is_none(tmp_path: Path) -> None:
    shas = toy_repository(tmp_path / "toy", 99, commits=2)
    ends = ("--good", shas[0], "--bad", shas[-1], "--better", "higher", "--json", "ops")
    done = subprocess.run(
        [sys.executable, str(BISECT), *ends, "--", "echo", '{"ops": NaN}'],
        capture_output=True, text=True, cwd=tmp_path / "toy", check=False,
    )  # fmt: skip
    assert (done.returncode, "expected a finite number in the output, found nan" in done.stderr) == (64, True)


@pytest.mark.slow
def test_commits_that_do_not_build_are_not_called_noise(tmp_path: Path) -> None:
    shas = toy_repository(tmp_path / "toy", 4, commits=8)
    done = bisect(tmp_path / "toy", shas, 0.5, "--setup", f"test $(git rev-parse HEAD) != {shas[3]}")
    assert done.returncode == 1
    assert "too noisy" not in done.stderr
    assert f"{shas[3][:12]}: 'test $(git rev-parse HEAD) != {shas[3]}' failed" in done.stderr
