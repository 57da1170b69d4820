"""The kernel test robot's reports: all are found, with their headline; no other mail is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.files import read_mbox
from bot.explain import report_json
from bot.mail.message import parse
from bot.robot_reports.fields import ReportSubject, read_subject
from bot.robot_reports.report import Recogniser, RobotReport, find_report
from bot.robot_reports.tables import parse_row
from tests.conftest import ROBOTS

# --- The kernel test robot's reports: all are found, with their headline; no other mail is taken for one ---

INVENTED = """\
From: kernel test robot <lkp@intel.com>
To: Dana Brook <dana@dev.example>
Subject: [linus:master] [mm/vmscan]  3b1f0c9d2e:  vm-scan.ops_per_sec -12.4% regression
Message-ID: <202603110412.3b1f0c9d-lkp@intel.com>
Content-Type: text/plain; charset="iso-8859-1"

hi Dana, we are not sure about this one:

       v7.0-rc1 %change
  commit: 1111111111111111111111111111111111111111 ("another one")

Hello,

kernel test robot noticed a -12.4% regression of vm-scan.ops_per_sec on:


commit: 3b1f0c9d2e440000000000000000000000000000 ("mm/vmscan: walk cold folios first")
https://git.kernel.org/cgit/linux/kernel/git/torvalds/linux.git master

[still regression on linus/master 2222222222222222222222222222222222222222]

testcase: vm-scan
config: x86_64-rhel-9.4
compiler: gcc-14
test machine: 64 threads 2 sockets Example CPU with 256G memory
parameters:

	nr_task: 50%
	runtime: 30s


In addition to that, the commit also has significant impact on the following tests:

+------------------+------------------------------------------------------+
| testcase: change | fs-create: fs-create.files_per_sec 3.1% improvement  |
| test machine     | 16 threads Example Core with 32G memory              |
| test parameters  | fs=ext9                                              |
+------------------+------------------------------------------------------+


| Reported-by: kernel test robot <lkp@intel.com>
| Closes: https://lore.kernel.org/oe-lkp/202603110412.3b1f0c9d-lkp@intel.com


Details are as below:
-------------------------------------------------------------------------------------------------->

=========================================================================================
nr_task/runtime/tbox_group/testcase:
  50%/30s/lkp-icl-2sp2/vm-scan

commit:
  aaaaaaaaaa ("mm: prepare")
  3b1f0c9d2e ("mm/vmscan: walk cold folios first")

aaaaaaaaaaaaaaaa 3b1f0c9d2e44000000000000000
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
      4752 ± 13%     -18.1%       3890 ± 11%  sched_debug.cpu.avg_idle.min
    778685 ±  3%     -12.4%     682128        vm-scan.ops_per_sec
"""


def test_an_invented_report_is_read_field_by_field() -> None:
    report = find_report(parse(INVENTED.encode("latin-1")))
    assert report
    assert (report.culprit[:10], report.culprit_title) == ("3b1f0c9d2e", "mm/vmscan: walk cold folios first")
    assert (report.subject.tree, report.subject.branch, report.subject.subsystem) == ("linus", "master", "mm/vmscan")
    assert (report.metric, report.verdict, report.change_pct) == ("vm-scan.ops_per_sec", "regression", -12.4)
    assert (report.suite, report.machine, dict(report.test.parameters)["nr_task"]) == ("vm-scan", "lkp-icl-2sp2", "50%")
    assert report.old
    assert report.new
    assert (report.old.mean, report.old.stddev_pct, report.new.mean, report.new.stddev_pct) == (778685, 3, 682128, None)
    assert report.parent == "aaaaaaaaaaaaaaaa"
    assert [(each.metric, each.change_pct) for each in report.additional] == [("fs-create.files_per_sec", 3.1)]
    assert [each.ref for each in report.rechecks] == ["linus/master"]
    assert report.problems == ("other_commit_above: 1111111111", "impact_without_row: fs-create.files_per_sec")


def test_a_quoted_report_is_no_report() -> None:
    head, _, body = INVENTED.partition("\n\n")
    quoted = "\n".join(f"> {line}" for line in body.split("\n"))
    assert find_report(parse(f"{head}\n\nOn x, robot wrote:\n{quoted}\nYes.".encode())) is None


def test_the_sentence_without_a_commit_is_no_report() -> None:
    assert find_report(parse(INVENTED.replace("commit: 3b1f", "commit: zzzz").encode())) is None


@given(st.integers(0, len(INVENTED) - 1), st.integers(1, 400), st.sampled_from(["", "\x00", "%", "9" * 400, "\n"]))
def test_a_damaged_report_raises_nothing(start: int, length: int, patch: str) -> None:
    find_report(parse((INVENTED[:start] + patch + INVENTED[start + length :]).encode("latin-1", "replace")))


def test_no_other_mail_of_the_robot_is_taken_for_a_report(shared: Path) -> None:
    mails = [parse(raw.raw) for raw in read_mbox(shared / "not-performance-reports-dev.mbox")]
    assert len(mails) == 50
    assert [mail.message_id for mail in mails if find_report(mail)] == []


# --- doubts: what is sound is taken, what is not is named ---


def read(text: str) -> RobotReport:
    report = find_report(parse(text.encode("latin-1")))
    assert report
    return report


@pytest.mark.parametrize(
    ("sound", "broken", "problem", "unsure"),
    [
        ("test machine: 64 threads 2 sockets Example CPU with 256G memory\n", "", "no_machine", False),
        ("testcase: vm-scan\n", "", "no_testcase", False),
        ("        682128        vm-scan.ops_per_sec\n", "", "cut_table: table 1 is truncated", False),
        ("\n  50%/30s/", "\n  50%/30s/more/", "axes_unread: table 1", False),
        ("778685 ±  3%     -12.4%", "778685 ±  3%     -19.4%", "headline_disagrees: vm-scan", False),
        ("      4752 ± 13%     -18.1%", "      4752 ± 13%     -x-", "rows_unread: 1 of table 1", False),
        ("  3b1f0c9d2e (", "  99990c9d2e (", "culprit_disagrees: the table names 99990c9d2e", True),
        ("[mm/vmscan]  3b1f0c9d2e:", "[mm/vmscan]  77770c9d2e:", "culprit_disagrees: the subject names 7", True),
        (":  vm-scan.ops_per_sec -12", ":  vm-scan.latency -12", "metric_disagrees: the subject names vm-s", True),
        ("-12.4% regression\nM", "-12.4% improvement\nM", "verdict_disagrees: the subject says impr", True),
        ("682128        vm-scan.ops_per_sec", "682128        vm-scan.other", "no_headline_row", False),
        (": fs-create.files_per_sec 3.1% impr", ": fs-create.files_per_sec three impr", "impact_unread: fs-cr", False),
    ],
)
def test_doubts(sound: str, broken: str, problem: str, unsure: bool) -> None:
    before, after = read(INVENTED), INVENTED.replace(sound, broken)
    if problem.startswith("cut_table"):
        after = after.rstrip("\n")
    report = read(after)
    assert (report.culprit, report.metric, report.change_pct) == (before.culprit, before.metric, before.change_pct)
    new = [each for each in report.problems if each not in before.problems]
    assert len(new) == 1
    assert new[0].startswith(problem)
    assert bool(report.unsure) is unsure


def test_a_metric_that_only_the_sentence_names_is_unsure() -> None:
    answer = INVENTED.replace("Subject: [linus:master] [mm/vmscan]  3b1f0c9d2e:", "Subject: Re: [PATCH] mm:")
    assert not read(answer).unsure
    assert read(answer.replace("682128        vm-scan.ops_per_sec", "682128        vm-scan.other")).unsure


def test_a_commit_of_the_preamble_is_no_culprit() -> None:
    report = read(INVENTED.replace("Hello,", "commit 2222222222222222 is not the one.\n\nHello,"))
    assert report.culprit.startswith("3b1f0c9d2e")
    assert "other_commit_above: 1111111111, 2222222222" in report.problems
    assert not report.unsure


EARLIER = """\
we noticed a -3.0% regression of vm-scan.faults on:

commit: 5555555555555555555555555555555555555555 ("mm: an earlier one")

"""


def test_of_two_claims_the_subject_chooses_and_else_an_operator() -> None:
    two = INVENTED.replace("kernel test robot noticed", f"{EARLIER}kernel test robot noticed")
    report = read(two)
    assert (report.culprit[:4], report.metric, report.unsure) == ("3b1f", "vm-scan.ops_per_sec", ())
    silent = read(two.replace("Subject: [linus:master] [mm/vmscan]  3b1f0c9d2e:", "Subject: Re: [PATCH] mm:"))
    assert "two_claims: the mail reports more than one commit" in silent.unsure


@pytest.mark.parametrize(
    "above",
    ["-----Original Message-----\n", "From: robot <lkp@intel.com>\nSent: Monday\nTo: Dana\nSubject: a report\n\n"],
)
def test_what_an_older_mail_said_is_quoted_without_marks_too(above: str) -> None:
    head, _, body = INVENTED.partition("\n\n")
    assert find_report(parse(f"{head}\n\nI think so, too.\n\n{above}{body}".encode())) is None


def test_an_axis_value_with_a_slash_is_one_value() -> None:
    text = INVENTED.replace("\tnr_task: 50%", "\tnr_task: 50%\n\tdisk: 1HDD/raid").replace(
        "nr_task/runtime/tbox_group/testcase:\n  50%/", "disk/nr_task/runtime/tbox_group/testcase:\n  1HDD/raid/50%/"
    )
    report = read(text)
    assert report.machine == "lkp-icl-2sp2"
    assert dict(report.tables[0].axes)["disk"] == "1HDD/raid"
    spaced = read(INVENTED.replace("50%/30s", "50 per cent/30s"))
    assert dict(spaced.tables[0].axes)["nr_task"] == "50 per cent"


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        (
            "     37389 ±  2%     +12.7%      42124        will-it-scale.per_thread_ops",
            (37389, 2, "+12.7%", 42124, None),
        ),
        ("      4752 ±1234%     -18.1%       3890 ± 11%  sched.x", (4752, 1234, "-18.1%", 3890, 11)),
        ("      4752 ±1234%-123456.1%       3890 ± 11%  sched.x", (4752, 1234, "-123456.1%", 3890, 11)),
        (" 1.234e+12 ± 99%+1234567.9%  2.3e+15 ±100%  perf-stat.i", (1.234e12, 99, "+1234567.9%", 2.3e15, 100)),
        ("      0.12 ±106%      -0.1        0.01        fio.latency_100us%", (0.12, 106, "-0.1", 0.01, None)),
        ("     18.58            -0.2%      18.55        fsmark.files/s", (18.58, None, "-0.2%", 18.55, None)),
    ],
)
def test_rows(line: str, numbers: tuple[object, ...]) -> None:
    row = parse_row(line)
    assert row
    assert (row.old.mean, row.old.stddev_pct, row.change, row.new.mean, row.new.stddev_pct) == numbers


@pytest.mark.parametrize("line", ["", "%stddev     %change", "  0:4  -1%  0:4  perf", "1 2 3 x", "1 +2% x", "±" * 300])
def test_lines_that_are_no_rows(line: str) -> None:
    assert parse_row(line) is None


@given(st.text(alphabet="0123456789.+-%±e: x", max_size=80))
def test_any_line_is_a_row_or_none(line: str) -> None:
    row = parse_row(line)
    assert row is None or row.name.strip()


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("[f2fs-dev] [linus:master] [f2fs] 3b1f0c9d2e: a.b 5.0% regression", ReportSubject(
            "f2fs-dev", "linus:master", "linus", "master", "f2fs", "3b1f0c9d2e", "a.b", "5.0", "regression")),
        ("[LKP] [mm] 3b1f0c9d2e: -5.0% regression", ReportSubject(
            subsystem="mm", sha="3b1f0c9d2e", percent="-5.0", verdict="regression")),
        ("3b1f0c9d2e: a.b% 5% improvement", ReportSubject(
            sha="3b1f0c9d2e", metric="a.b%", percent="5", verdict="improvement")),
        ("[driver-core:driver-core-testing] [kernfs] 3b1f0c9d2e: a.b 5.0% regression", ReportSubject(
            "", "driver-core:driver-core-testing", "driver-core", "driver-core-testing", "kernfs", "3b1f0c9d2e", "a.b",
            "5.0", "regression")),
        ("[core:x] [re: y] 3b1f0c9d2e: a.b 5.0% regression", ReportSubject(
            "", "core:x", "core", "x", "re: y", "3b1f0c9d2e", "a.b", "5.0", "regression")),
        ("Re: [PATCH 1/2] mm: 5.0% regression", ReportSubject()),
        ("", ReportSubject()),
    ],
)  # fmt: skip
def test_subjects(subject: str, expected: ReportSubject) -> None:
    assert read_subject(subject) == expected


@given(st.text(alphabet="[]: abc019%-.", max_size=80))
def test_any_subject_is_read(subject: str) -> None:
    assert read_subject(subject).tree in subject


# --- the recogniser ---


def test_the_recogniser_never_refuses_a_real_report(shared: Path) -> None:
    recogniser = Recogniser(ROBOTS)
    for name in ("reports-dev", "reports-in-patch-threads-dev"):
        for mail in read_mbox(shared / f"{name}.mbox"):
            assert recogniser.may_be_report(mail.raw.partition(b"\n\n")[0].lower(), mail.raw)


def test_the_recogniser_refuses_most_other_mail_of_robots(shared: Path) -> None:
    recogniser = Recogniser(ROBOTS)
    mails = [mail.raw for mail in read_mbox(shared / "not-performance-reports-dev.mbox")]
    passed = [raw for raw in mails if recogniser.may_be_report(raw.partition(b"\n\n")[0].lower(), raw)]
    assert len(passed) < len(mails) / 2


# --- rarer spellings ---


def field(report: RobotReport, name: str) -> object:
    return report_json(report, parse(INVENTED.encode("latin-1")))[name]


RECHECK = "[still regression on linus/master 2222222222222222222222222222222222222222]"


@pytest.mark.parametrize(
    ("sound", "spelled", "name", "expected"),
    [
        ("noticed a -12.4% regression of", "noticed\na -12.4% regression\nof", "metric", "vm-scan.ops_per_sec"),
        ("vm-scan.ops_per_sec on:", "vm-scan.ops_per_sec, due to commit:", "metric", "vm-scan.ops_per_sec"),
        ("noticed a -12.4%", "noticed a 1.2e+03%", "change_pct", -1200.0),
        ("commit: 3b1f", "commit:  3b1f", "short_sha", "3b1f0c9d2e"),
        ("walk cold folios first\")\nhttps", "walk cold\nfolios first\")\nhttps", "culprit_title",
         "mm/vmscan: walk cold folios first"),
        ("linux.git master", "linux.git", "repo_branch", None),
        ("https://git.kernel.org/cgit/linux/kernel/git/torvalds/linux.git master",
         "base:   https://git.example.org/vm.git mm-everything", "base_branch", "mm-everything"),
        (RECHECK, RECHECK.replace("still regression on", "regression still  on"), "rechecks",
         [{"state": "regression still", "ref": "linus/master", "ref_text": "linus/master", "sha": "2" * 40}]),
        (RECHECK, "[the fix is known]", "rechecks_other", ["the fix is known"]),
        ("\tnr_task: 50%\n", "\tsysctl vm: 3\n\tfoo/bar: 4\n\tnr_task: 50%\n", "parameters",
         {"sysctl vm": "3", "foo/bar": "4", "nr_task": "50%", "runtime": "30s"}),
        ("\tnr_task: 50%\n", "\tnr_task: 50%\n\t  and more\n", "parameters",
         {"nr_task": "50% and more", "runtime": "30s"}),
        ("64 threads 2 sockets Example CPU with 256G memory", "1 thread 1 socket Example CPU with 1.5T memory",
         "machine_parsed",
         {"threads": 1, "sockets": 1, "cpu": "Example CPU", "codename": None, "memory": "1.5T"}),
        ("files_per_sec 3.1% improvement  |", "files_per_sec +3.1% improvement", "n_additional_impact", 1),
        ("| Reported-by: kernel", "|                Reported-By: kernel", "reported_by",
         "kernel test robot <lkp@intel.com>"),
        ("778685 \u00b1  3%     -12.4%", "778685 \u00c2\u00b1  3%     -12.4%", "old",
         {"mean": 778685.0, "stddev_pct": 3.0}),
        ("778685 \u00b1  3%     -12.4%", "778685 \u00b1 -3%     -12.4%", "old", {"mean": 778685.0, "stddev_pct": 3.0}),
        ("682128        vm-scan", "   nan \u00b1 nan%  vm-scan", "new", {"mean": None, "stddev_pct": None}),
        ("aaaaaaaaaaaaaaaa 3b1f", "next-20260301    3b1f", "parent_is_tag", True),
        ("[linus:master] [mm/vmscan]", "Re: [linus:master] [mm/vmscan]", "tree", "linus"),
        ("[linus:master] [mm/vmscan]", "[oe-lkp] [linus:master]", "list_tag", "oe-lkp"),
        ("[linus:master] [mm/vmscan]", "[lkp-robot] [iommu: amd]", "subsystem", "iommu: amd"),
    ],
)  # fmt: skip
def test_rarer_spellings(sound: str, spelled: str, name: str, expected: object) -> None:
    text = INVENTED.replace(sound, spelled)
    assert text != INVENTED
    report = find_report(parse(text.encode("latin-1")))
    assert report
    found = field(report, name)
    assert found == expected
    json.dumps(report_json(report, parse(text.encode("latin-1")), rows=True), allow_nan=False)


# --- Lines that no robot writes, in a mail that anybody may send in its name: reading them takes no longer than
# others ---
# Before, one line of 20,000 blanks kept the reader busy for an hour, and with it all other mail.

CLAIM = """\
kernel test robot noticed a {percent}% regression of a.b on:

commit: 3b1f0c9d2e7f3b1f0c9d2e7f3b1f0c9d2e7f3b1f ("mm: a")
"""


def report(lines: str, percent: str = "-5.0") -> bytes:
    head = "From: kernel test robot <lkp@intel.com>\nSubject: 3b1f0c9d2e: a.b -5.0% regression\nMessage-ID: <a@b>\n\n"
    return f"{head}{CLAIM.format(percent=percent)}{lines}\n".encode()


@pytest.mark.parametrize(
    "line",
    [
        "|a|" + " " * 50_000 + "x",
        "| " + " " * 50_000 + "| x",
        "+" + "-" * 50_000 + "x",
        "patch link: a" + " " * 50_000 + "\tx\x0b",
        "Closes: a" + " \t" * 25_000 + "x\x0c",
        "https://a.example/" + "x" * 20_000 + " " * 20_000 + "y z",
        "1.0 " * 15_000,
        "a" * 50_000 + " threads, with " + " " * 30_000,
    ],
)
def test_a_line_of_junk_takes_no_time(line: str) -> None:
    found = find_report(parse(report("\n".join([line] * 3))))
    assert found
    assert found.culprit_title == "mm: a"


def test_the_box_is_read_as_before() -> None:
    box = (
        "+------------------+------------------------------------------+\n"
        "| testcase: change | c: c.d 12.0% improvement                 |\n"
        "| test machine     | 8 threads                                |\n"
        "| test parameters  | nr=1                                     |\n"
        "|                  | runtime=2                                |\n"
        "+------------------+------------------------------------------+\n"
    )
    found = find_report(parse(report(box)))
    assert found
    [impact] = found.additional
    assert (impact.metric, impact.change_pct, impact.machine) == ("c.d", 12.0, "8 threads")
    assert impact.parameters == (("nr", "1"), ("runtime", "2"))


def test_a_number_that_is_none_is_no_report() -> None:
    assert find_report(parse(report("", percent="9e+999"))) is None


def test_a_change_from_zero_is_a_report_without_a_percentage() -> None:
    """Some robots print "+inf%"."""
    changed = INVENTED.replace("-12.4% regression", "+inf% regression")
    for text in (changed, changed.replace("+inf% regression\nM", "0.00 -> 412.00 regression\nM")):
        report = find_report(parse(text.encode()))
        assert report
        assert (report.change_pct, report.change_pct_raw, report.verdict) == (None, None, "regression")
        assert report.subject.verdict == "regression"
