"""`git bisect log` with samples: the output of old and new versions of git, and what is rejected."""

from __future__ import annotations

import contextlib
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results.formats import bisect_log
from bot.results.recognise import Input, read_bytes, read_path, reread
from bot.results.values import RejectedInput, Result
from tests.bot.results.test_recognise import JSON

BASE, GOOD, BAD, HEAD = "1" * 40, "a" * 40, "b" * 40, "2" * 40
LOG = f"""\
git bisect start
# status: waiting for both good and bad commits
# good: [{BASE}] mm: begin
git bisect good {BASE}
# status: waiting for bad commit, 1 good commit known
# bad: [{HEAD}] mm: end
git bisect bad {HEAD}
# good: [{GOOD}] mm: prepare
git bisect good {GOOD}
# bad: [{BAD}] mm: walk cold folios first
git bisect bad {BAD}
# first bad commit: [{BAD}] mm: walk cold folios first
"""
CSV = """\
# suite: vm-scan
# machine: lab7-m1
# cpus: 64
# tree: linus
# branch: master
# author: Dana Brook <dana@dev.example>
# date: 2026-03-01T09:12:44Z
# nr_task: 50%
sha,metric,value
aaaaaaaaaa,vm-scan.ops_per_sec,1000
aaaaaaaaaa,vm-scan.ops_per_sec,1010
aaaaaaaaaa,vm-scan.ops_per_sec,990
bbbbbbbbbb,vm-scan.ops_per_sec,700
bbbbbbbbbb,vm-scan.ops_per_sec,705
bbbbbbbbbb,vm-scan.ops_per_sec,695
aaaaaaaaaa,vm-scan.p99_ms,3
bbbbbbbbbb,vm-scan.p99_ms,4
1111111111,vm-scan.ops_per_sec,1005
"""


def parsed(log: str = LOG, samples: str = CSV) -> Result:
    return bisect_log.parse({"log": log, "samples": samples}, "in")


def rejection(log: str = LOG, samples: str = CSV) -> str:
    with pytest.raises(RejectedInput) as caught:
        parsed(log, samples)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write_files(folder: Path, log: str = LOG, samples: str = CSV) -> Input:
    (folder / "cold.log").write_text(log)
    (folder / "cold.csv").write_text(samples)
    (only,) = read_path(folder / "cold.log")
    return only


def test_what_lands_where() -> None:
    result = parsed()
    assert result.outcome == "conclusive"
    assert result.culprit
    assert result.parent
    assert (result.culprit.sha, result.culprit.title) == (BAD, "mm: walk cold folios first")
    assert (result.culprit.author_name, result.culprit.author_email) == ("Dana Brook", "dana@dev.example")
    assert (result.parent.sha, result.parent.title) == (GOOD, "mm: prepare")
    assert (result.good.sha, result.bad.sha) == (BASE, HEAD)
    assert result.created_at == datetime(2026, 3, 1, 9, 12, 44, tzinfo=UTC)
    (run,) = result.runs
    assert (run.suite, run.params, run.machine.id, run.machine.cpus) == ("vm-scan", {"nr_task": "50%"}, "lab7-m1", 64)
    assert [(each.metric, each.role, each.old_samples, each.new_samples) for each in run.measurements] == [
        ("vm-scan.ops_per_sec", "headline", (1000, 1010, 990), (700, 705, 695)),
        ("vm-scan.p99_ms", "kpi", (3,), (4,)),
    ]
    assert (result.tree, result.branch, result.uncertainty) == ("linus", "master", "")


@pytest.mark.parametrize(
    "log",
    [
        LOG.replace("# first bad commit:", "# first 'bad' commit:"),
        LOG.replace("# bad:", "# new:").replace("# good:", "# old:").replace("first bad", "first 'new'"),
        LOG.replace("bisect start", "bisect start '--term-new=slow' '--term-old=fast'")
        .replace("# bad:", "# slow:")
        .replace("# good:", "# fast:")
        .replace("first bad", "first 'slow'"),
        LOG.replace("bisect start", "bisect start '--term-old' 'fast' '--term-new' 'slow'")
        .replace("# bad:", "# slow:")
        .replace("# good:", "# fast:")
        .replace("first bad", "first slow"),
        LOG.replace("\n", "\r\n"),
    ],
)
def test_the_ways_in_which_git_says_it(log: str) -> None:
    result = parsed(log)
    assert (result.outcome, result.culprit and result.culprit.sha) == ("conclusive", BAD)
    assert result.parent
    assert result.parent.sha == GOOD


@pytest.mark.parametrize("first_bad", ["possible first bad commit", "possible first 'bad' commit"])
def test_skipped_commits_leave_it_inconclusive(first_bad: str) -> None:
    log = LOG.replace(f"# first bad commit: [{BAD}]", f"# {first_bad}: [{HEAD}] mm: end\n# {first_bad}: [{BAD}]")
    result = parsed(log)
    assert (result.outcome, result.culprit) == ("inconclusive", None)


def test_a_bisection_that_is_not_over_is_inconclusive() -> None:
    assert parsed(LOG[: LOG.index("# first")]).outcome == "inconclusive"


def test_a_parent_without_samples_is_a_doubt() -> None:
    result = parsed(samples="\n".join(line for line in CSV.splitlines() if not line.startswith("aaaa")))
    assert result.uncertainty == "the last good commit has no samples; 1111111111 is used as the parent"


def test_without_any_telling_the_name_of_the_metric_tells_the_suite() -> None:
    result = parsed(samples=CSV[CSV.index("sha,") :])
    assert (result.runs[0].suite, result.runs[0].machine.id, result.tree) == ("vm-scan", "unknown", "unknown")
    assert (result.producer, len(result.id), result.created_at) == ("git-bisect", 20, None)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ("", "in, its CSV: expected samples, found none"),
        (
            "sha;metric;value\n",
            "in, its CSV, line 1: expected the header sha,metric,value, found 'sha;metric;value'",
        ),
        ("sha,metric,value\nHEAD,m,1\n", "line 2: expected a sha, a metric and a value, found 'HEAD,m,1'"),
        ("sha,metric,value\nbbbbbbb,m\n", "line 2: expected a sha, a metric and a value"),
        ("sha,metric,value\nbbbbbbb,m,fast\n", "line 2: expected a finite number, found 'fast'"),
        ("sha,metric,value\nbbbbbbb,m,nan\n", "line 2: expected a finite number, found 'nan'"),
        ("sha,metric,value\nbbbbbbb,m,1e999\n", "line 2: expected a finite number, found '1e999'"),
        ("sha,metric,value\nccccccc,m,1\n", "expected samples of bbbbbbbbbbbb, the first bad commit of the log"),
        ("sha,metric,value\nbbbbbbb,m,1\n", "expected samples of a commit that was marked good, found none"),
        ("sha,metric,value\naaaaaaa,m,1\n", "expected samples of bbbbbbbbbbbb, the first bad commit of the log"),
        ("sha,metric,value\nbbbbbbb,m,1\naaaaaaa,n,1\n", "expected samples of one metric for both aaaaaaaaaa and"),
        ("sha,metric,value\nbbbbbbb,m,1\nbbbbbbbb,m,1\naaaaaaa,m,1\n", "bbbbbbbbbbbb is written in two ways"),
        (CSV.replace("cpus: 64", "cpus: many"), "in, its CSV: expected # cpus: a number, found 'many'"),
        (CSV.replace("2026-03-01T09:12:44Z", "today"), "expected # date: a date (ISO 8601), found 'today'"),
        (CSV + "bbbbbbbbbb,m,1\0\n", "in, its CSV: expected text, found a NUL"),
    ],
)
def test_what_is_refused(samples: str, expected: str) -> None:
    assert expected in rejection(samples=samples)


def test_a_log_without_marks_is_refused() -> None:
    assert "expected a commit marked good (`# good: [sha] title`), found none" in rejection(log="git bisect start\n")


def test_a_log_and_its_samples_find_each_other(tmp_path: Path) -> None:
    assert write_files(tmp_path).result == parsed()
    (by_samples,) = read_path(tmp_path / "cold.csv")
    (by_folder,) = read_path(tmp_path)
    assert by_samples.result == by_folder.result == parsed()


def test_a_csv_of_measured_commits_is_no_half_of_a_bisection(tmp_path: Path) -> None:
    """Notes of the same name stand beside it: it was passed over as if they were its log."""
    text = "commit,date,machine,suite,metric,value,direction\n"
    text += f"{'a' * 40},2026-03-01T00:00:00Z,m,s,t,1,higher\n"
    (tmp_path / "x.csv").write_text(text)
    (tmp_path / "x.txt").write_text("what I did that day\n")
    (found,) = read_path(tmp_path)
    assert found.rejection is None
    (piped,) = read_bytes(text.encode(), "standard input")
    assert "a CSV of measured commits is read from a file" in str(piped.rejection)


def test_one_without_the_other_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cold.log").write_text(LOG)
    (alone,) = read_path(tmp_path / "cold.log")
    assert "expected its samples (NAME.csv) beside it" in str(alone.rejection)
    (piped,) = read_bytes(LOG.encode(), "standard input")
    assert "a git bisect log needs its samples" in str(piped.rejection)
    (tmp_path / "cold.log").rename(tmp_path / ".hidden")
    (tmp_path / "cold.csv").write_text(CSV)
    (alone,) = read_path(tmp_path / "cold.csv")
    assert "expected its git bisect log (NAME.log) beside it" in str(alone.rejection)


def test_a_stored_payload_is_read_again() -> None:
    assert reread(parsed().format, parsed().payload, parsed().bad.sha, "stored") == parsed()


def test_what_git_itself_prints(tmp_path: Path) -> None:
    """A real bisection, with an own word for bad, of a line of eight commits."""

    def git(*arguments: str) -> str:
        options = ("-c", "user.name=Dana", "-c", "user.email=dana@dev.example", "-C", str(tmp_path))
        return subprocess.run(["git", *options, *arguments], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    shas = []
    for number in range(8):
        git("commit", "-q", "--allow-empty", "-m", f"step {number}")
        shas.append(git("rev-parse", "HEAD").strip())
    git("bisect", "start", "--term-new=slow", "--term-old=fast")
    git("bisect", "fast", shas[0])
    git("bisect", "slow", shas[7])
    while "first slow commit" not in (log := git("bisect", "log")) and "first 'slow' commit" not in log:
        head = git("rev-parse", "HEAD").strip()
        git("bisect", "slow" if shas.index(head) >= 5 else "fast")
    lines = [f"{sha[:12]},m.x,{100 + shas.index(sha)}" for sha in shas for _ in range(2)]
    result = parsed(log, "sha,metric,value\n" + "\n".join(lines))
    assert result.culprit
    assert result.parent
    assert (result.culprit.sha, result.culprit.title, result.parent.sha) == (shas[5], "step 5", shas[4])


@given(JSON, JSON)
def test_any_value_is_a_result_or_a_refusal(one: Any, other: Any) -> None:
    for data in (one, {"log": one, "samples": other}):
        with contextlib.suppress(RejectedInput):
            assert bisect_log.parse(data, "x").runs


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_a_result_or_a_refusal(log: str, samples: str) -> None:
    for pair in ((log, samples), (LOG, "sha,metric,value\n" + samples), (LOG, samples + CSV), (LOG + log, CSV)):
        with contextlib.suppress(RejectedInput):
            assert parsed(*pair).runs


def test_a_bug_of_an_adapter_refuses_its_input_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(texts: object, where: str) -> Never:
        raise ValueError("unexpected")

    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.json").write_text("[]")
    monkeypatch.setattr(bisect_log, "parse", broken)
    first, second = read_path(tmp_path)
    assert "a bug, please report it: unexpected" in str(first.rejection)
    assert "found an empty array" in str(second.rejection)


# --- Logs as people paste them ---

PLAIN = "\n".join(line for line in LOG.splitlines() if not line.startswith("#") or "first bad" in line)


@pytest.mark.parametrize(
    "pasted",
    [
        "".join(f"> {line}\n" for line in LOG.splitlines()),
        "".join(f">> > {line}\n" for line in LOG.splitlines()),
        "".join(f"    {line}\n" for line in LOG.splitlines()),
        f"Hi,\n\nhere is the log:\n\n{LOG}\nThanks\n",
        PLAIN,
        PLAIN.replace(f"git bisect good {GOOD}", f"git bisect good {GOOD} {'9' * 40}"),
        PLAIN.replace(f"# first bad commit: [{BAD}] mm: walk cold folios first", f"{BAD} is the first bad commit"),
        LOG.replace("git bisect good", "git bisect fast")
        .replace("# good:", "# fast:")
        .replace("bisect bad", "bisect slow")
        .replace("# bad:", "# slow:")
        .replace("first bad", "first slow"),
    ],
)
def test_a_log_is_read_as_people_paste_it(pasted: str) -> None:
    assert bisect_log.is_log(pasted)
    result = bisect_log.parse({"log": pasted, "samples": CSV}, "x")
    assert result.culprit
    assert (result.culprit.sha, result.good.sha, result.bad.sha) == (BAD, BASE, HEAD)
    assert result.parent
    assert result.parent.sha == GOOD


def test_the_ends_and_steps_of_a_log_are_counted() -> None:
    assert bisect_log.steps_of(LOG) == (BASE[:12], HEAD[:12], 2)
    assert bisect_log.steps_of("hello") == ("", "", 0)


def test_a_start_of_a_megabyte_has_no_terms() -> None:
    start = time.process_time()
    assert list(bisect_log._terms("a" * 1_000_000)) == []
    assert time.process_time() - start < 3  # seconds; fifteen, when shlex read it
