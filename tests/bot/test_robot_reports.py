"""The kernel test robot's reports: every one found, with its headline; nothing else taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.archive.mbox import read_mbox
from bot.ingest.robot_mail.report import find_report
from bot.replies.mail import parse

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
    told = find_report(parse(INVENTED.encode("latin-1")))
    assert told
    assert (told.culprit[:10], told.culprit_title) == ("3b1f0c9d2e", "mm/vmscan: walk cold folios first")
    assert (told.tree, told.branch, told.subsystem) == ("linus", "master", "mm/vmscan")
    assert (told.metric, told.verdict, told.change_pct) == ("vm-scan.ops_per_sec", "regression", -12.4)
    assert (told.suite, told.machine, dict(told.parameters)["nr_task"]) == ("vm-scan", "lkp-icl-2sp2", "50%")
    assert told.old
    assert told.new
    assert (told.old.mean, told.old.stddev_pct, told.new.mean, told.new.stddev_pct) == (778685, 3, 682128, None)
    assert told.parent == "aaaaaaaaaaaaaaaa"
    assert [(each.metric, each.change_pct) for each in told.additional] == [("fs-create.files_per_sec", 3.1)]
    assert [each.ref for each in told.rechecks] == ["linus/master"]
    assert not told.problems


def test_a_quoted_report_is_no_report() -> None:
    head, _, body = INVENTED.partition("\n\n")
    quoted = "\n".join(f"> {line}" for line in body.split("\n"))
    assert find_report(parse(f"{head}\n\nOn x, robot wrote:\n{quoted}\nYes.".encode())) is None


def test_the_sentence_without_a_commit_is_no_report() -> None:
    assert find_report(parse(INVENTED.replace("commit: 3b1f", "commit: zzzz").encode())) is None


@given(st.integers(0, len(INVENTED) - 1), st.integers(1, 400), st.sampled_from(["", "\x00", "%", "9" * 400, "\n"]))
def test_a_damaged_report_raises_nothing(start: int, length: int, patch: str) -> None:
    find_report(parse((INVENTED[:start] + patch + INVENTED[start + length :]).encode("latin-1", "replace")))


@pytest.mark.parametrize("name", ["reports-dev", "reports-in-patch-threads-dev"])
def test_every_real_report_is_read(shared: Path, name: str) -> None:
    truth = {each["message_id"]: each for each in json.loads((shared / f"{name}.json").read_text())}
    for raw in read_mbox(shared / f"{name}.mbox"):
        mail = parse(raw.raw)
        told, true = find_report(mail), truth.pop(mail.message_id)
        assert told, mail.message_id
        assert told.culprit == true["full_sha"]
        assert told.culprit_title == true["commit_subject"]
        assert (told.metric, told.verdict) == (true["metric"], true["verdict"])
        assert (told.change_pct, told.change_pct_raw) == (true["change_pct"], true["change_pct_raw"])
        assert (told.tree or None, told.branch or None) == (true["tree"], true["tree_branch"])
        assert (told.subsystem or None, told.suite) == (true["subsystem"], true["testcase"])
        assert (told.machine or None, told.machine_text or None) == (true["tbox_group"], true["machine"])
        assert dict(told.parameters) == true["parameters"]
        assert (told.parent or None) == true["parent_sha16"]
        assert (told.old.mean if told.old else None) == true["old_value"]
        assert (told.new.mean if told.new else None) == true["new_value"]
        assert len(told.additional) == true["n_additional_impact"]
        assert (told.closes or None) == true["closes"]
    assert not truth


def test_no_other_mail_of_the_robot_is_taken_for_a_report(shared: Path) -> None:
    mails = [parse(raw.raw) for raw in read_mbox(shared / "not-performance-reports-dev.mbox")]
    assert len(mails) == 50
    assert [mail.message_id for mail in mails if find_report(mail)] == []
