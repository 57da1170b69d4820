"""The report mail: the content of its first screen and below, and that hostile values cannot break it."""

from __future__ import annotations

import email.policy
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from email import message_from_bytes
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.compose import report_data
from bot.compose.conventions import WIDTH, Attached, Conventions, SubjectForm, escape_directives, is_directive
from bot.compose.lint import faults
from bot.compose.mail import ComposedMail, edited, to_bytes
from bot.compose.report_data import BuildInfo, FindingData, ReportData
from bot.compose.report_mail import compose, height, report_subject, warnings_of
from bot.explain import explain
from bot.mail.addresses import Address
from bot.mail.message import parse
from bot.mail.patches import subsystem_of
from bot.notifications.follow_ups import compose_withdrawal
from bot.notifications.thread import ThreadData, ThreadMails
from bot.robot_reports.fields import read_subject
from bot.robot_reports.tables import parse_row
from tests.conftest import NOW
from tests.support.composed import AT, DIRECTORY, REPORTS, composed
from tests.support.outbox import BOT, FINDING, REPORT, SLOWER
from tracker.domain.events import Grade, Verdict
from tracker.domain.metrics import ENTRIES, in_words, meaning
from tracker.domain.statistics import change_pct, verdict_of

# --- The report mail: the content of its first screen and below, and that hostile values cannot break it ---


def sent(conventions: Conventions = Conventions(), **changes: Any) -> tuple[ComposedMail, str]:  # noqa: B008
    mail = compose(replace(REPORT, **changes), BOT, NOW, "", conventions)
    return mail, to_bytes(mail).decode()


def screen(mail: ComposedMail) -> str:
    """What a terminal of 24 lines and 78 columns shows first."""
    shown = [line[at : at + 78] for line in mail.body.splitlines() for at in range(0, max(1, len(line)), 78)]
    return "\n".join(shown[:24])


# --- the subject ---


@pytest.mark.parametrize(
    ("title", "change", "verdict", "expected"),
    [
        ("mm/vmscan: walk", -12.44, Verdict.REGRESSION, "[LKP] [mm/vmscan] 3b1f0c9d2e: -12.4% regression"),
        ("mm/vmscan: walk", 136.14, Verdict.IMPROVEMENT, "[LKP] [mm/vmscan] 3b1f0c9d2e: 136.1% improvement"),
        ("net/relay: spin", 32.49, Verdict.REGRESSION, "[LKP] [net/relay] 3b1f0c9d2e: 32.5% regression"),
        ("no prefix here", -0.04, Verdict.REGRESSION, "[LKP] 3b1f0c9d2e: -0.0% regression"),
        ("mm: a", None, Verdict.REGRESSION, "[LKP] [mm] 3b1f0c9d2e: regression"),
    ],
)
def test_subjects(title: str, change: float | None, verdict: Verdict, expected: str) -> None:
    assert report_subject(title, REPORT.sha, change, verdict) == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (SubjectForm.SEED, "[LKP] [mm/vmscan] 3b1f0c9d2e: -12.4% regression"),
        (SubjectForm.METRIC, "[LKP] [mm/vmscan] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression"),
        (SubjectForm.TREE, "[linus:master] [mm/vmscan] 3b1f0c9d2e: vm-scan.ops_per_sec -12.4% regression"),
    ],
)
def test_the_forms_of_a_subject(form: SubjectForm, expected: str) -> None:
    assert sent(Conventions(subject=form))[0].subject == expected


@pytest.mark.parametrize(
    ("title", "subsystem"),
    [
        ("mm: slub: add missing TID bump in kmem_cache_alloc_bulk()", "mm"),
        ("perf/x86/amd: Constrain Large Increment per Cycle events", "perf/x86/amd"),
        ('Revert "mm/vmscan: walk cold folios first"', "mm/vmscan"),
        ('Revert "Revert "net: a""', "net"),
        ("[PATCH v3 2/7] ext4: a", "ext4"),
        ("drm/i915: a: b", "drm/i915"),
        ("Linux 9.1-rc1", ""),
        ("See https://x: it is no prefix", ""),
        ("", ""),
    ],
)
def test_subsystems(title: str, subsystem: str) -> None:
    assert subsystem_of(title) == subsystem


# --- the first screen ---


def test_the_first_screen_answers_what_readers_ask() -> None:
    mail, raw = sent(rechecks=(("v9.1-rc4", "still-bad"), ("v9.1-rc3", "good-after-revert")))
    for answer in (
        "a -12.4% regression of vm-scan.ops_per_sec",
        f"commit: {REPORT.sha}",
        "184200 -> 161290 1/s, -12.4% (95% CI -15.7 to -9.1%)",
        "work completed per second; in 1/s, higher is better",
        "vm-scan on lab7-m1: 64 CPUs",
        'the parent aaaaaaaaaa ("mm: prepare"), on top of v9.1-rc1',
        "strong: 6 runs before, 5 after; stddev 3.2% and 0.4%; p = 0.0002;",
        "11.3x the usual noise here (1.1%)",
        "bisected:  v9.1-rc1 (good) to v9.1-rc2 (bad) in 7 steps\n",
        "rechecked: reverting it on v9.1-rc3 cures it; v9.1-rc4 is still bad",
        "also:      +22.0% vm-scan.p99_ms (worse)",
        "author:    Dana Brook",
        "please:    say if this is expected; if not, fix or revert it.",
        "reproduce: no script was provided; the parameters are below",
        'plain words, or with "#lkp expected" or "#lkp fix: <title>"',
    ):
        assert answer in screen(mail), answer
    assert mail.message_id == "202611211200.7d3e91c0-perfbot@bot.example.org"
    assert f"| Closes: https://lore.kernel.org/r/{mail.message_id}" in mail.body
    assert "Auto-Submitted: auto-generated" in raw
    assert "Reply-To: Perfwork <perfbot+7d3e91c0a45b28f6@bot.example.org>" in raw


def others(number: int) -> tuple[FindingData, ...]:
    return tuple(replace(SLOWER, metric=f"vm-scan.p{each}_ms", change_pct=float(each)) for each in range(1, number))


def test_however_much_there_is_to_tell_the_way_to_answer_is_on_the_first_screen() -> None:
    long_one = replace(
        FINDING,
        machine_text="8 sockets of an " + "exceedingly long-named " * 9 + "CPU",
        metric="vm-scan." + "m" * 60,
        overlap=True,
        unit="u" * 40,
    )
    mail, _ = sent(
        title="mm/vmscan: " + "walk " * 14,
        parent_title="a title " * 30,
        findings=(long_one, *others(40)),
        rechecks=tuple((f"v9.1-rc{each}-" + "x" * 30, "still-bad") for each in range(9)),
        artifacts=(("reproduce.sh", "https://lab.example/" + "x" * 200),),
    )
    assert "please:    say if this is expected; if not, fix or revert it." in screen(mail)
    assert "also:      39 regressions" in screen(mail)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (8.84, "an 8.8% regression of"),
        (11.0, "an 11.0% regression of"),
        (80.0, "an 80.0%"),
        (1.1, "a 1.1%"),
        (-8.84, "a -8.8% regression of"),
        (None, "a regression of"),
    ],
)
def test_the_first_sentence_is_english(change: float | None, words: str) -> None:
    mail, _ = sent(findings=(replace(FINDING, change_pct=change),))
    assert f"On lab7-m1, Perfwork noticed {words}" in mail.body


@pytest.mark.parametrize(
    ("metric", "suite", "says"),
    [
        ("fsmark.app_overhead", "fsmark", "microseconds that fs_mark spends outside of the file system's calls"),
        ("aim7.jobs-per-min", "aim7", "mixed jobs that AIM's load completes per minute"),
        ("will-it-scale.per_process_ops", "will-it-scale", "system call loop, per process"),
        ("stress-ng.link.ops_per_sec", "stress-ng", "iterations of that stressor per second of real time"),
        ("fio.write_iops", "fio-basic", "reads or writes that fio completes per second"),
        ("demo.p95_ms", "demo", "latency percentile: all but the slowest few per cent"),
        ("perf-profile.self.cycles-pp.x", "vm-scan", "share of the sampled CPU time"),
        ("demo.widgets", "demo", ""),
    ],
)
def test_what_a_metric_is(metric: str, suite: str, says: str) -> None:
    assert says in meaning(metric, suite)
    assert bool(says) == bool(meaning(metric, suite))


def test_every_metric_gets_some_words() -> None:
    assert in_words("demo.widgets", "", "unknown", "demo") == (
        "widgets, as demo reports it (unit unknown); direction unknown"
    )
    assert in_words("x.elapsed_time", "s", "lower") == "real time that the test took; in s, lower is better"
    assert all(entry.description and not entry.description.endswith(".") for entry in ENTRIES)


# --- what must be said plainly ---

DEBUG = BuildInfo(kconfig="x86_64-rhel-9.4-kasan")
PROFILE = replace(
    FINDING,
    metric="perf-profile.self.cycles-pp.shrink_folio_list",
    unit="",
    direction="unknown",
    verdict=Grade.UNKNOWN,
    change_pct=24.0,
    old_mean=12.1,
    new_mean=15.0,
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"build": DEBUG}, "the config enables a sanitizer (kasan)"),
        ({"build": BuildInfo(cmdline="ro slub_debug=FZ quiet")}, "the kernel's command line enables memory debugging"),
        ({"build": BuildInfo(kconfig="x86_64-debug")}, "the config enables debug options (debug)"),
        (
            {"findings": (replace(FINDING, noise_pct=9.2),)},
            "rebuilding alone moves this metric by some 9.2% here",
        ),
        ({"findings": (replace(FINDING, noise_pct=None, old_stddev_pct=8.0),)}, "vary a lot (8.0%)"),
        ({"findings": (replace(FINDING, overlap=True),)}, "the ranges of the two sides overlap"),
        (
            {"findings": (replace(FINDING, verdict=Grade.NOT_TESTABLE),)},
            "not tested for significance: only one run per side",
        ),
        (
            {"findings": (FINDING, replace(SLOWER, verdict=Grade.IMPROVEMENT))},
            "the results are mixed: 1 regression and 1 improvement, this one included",
        ),
        (
            {"findings": (replace(FINDING, change_pct=-4.0), replace(PROFILE, new_mean=12.3))},
            "this may be an effect of code or data alignment",
        ),
    ],
)
def test_doubts_stand_on_the_first_screen(changes: dict[str, Any], words: str) -> None:
    mail, _ = sent(**changes)
    assert words in " ".join(screen(mail).split())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"build": BuildInfo(kconfig="x86_64-rhel-9.4", compiler="gcc-12", cmdline="ro quiet")},
        {"build": BuildInfo(kconfig="x86_64-rhel-9.4-debuginfo")},
        {"build": BuildInfo(cmdline="debug apic=debug kfence.sample_interval=0 page_poison=0 slub_debug=-")},
        {"findings": (replace(FINDING, change_pct=-4.0), PROFILE)},  # the profile shows where
        {"findings": (FINDING, *others(9), replace(SLOWER, verdict=Grade.IMPROVEMENT))},
    ],
)
def test_no_doubt_is_made_up(changes: dict[str, Any]) -> None:
    assert warnings_of(replace(REPORT, **changes)) == ()
    assert "but: " not in sent(**changes)[0].body


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"p_value": 0.00001, "noise_pct": None}, "strong"),
        ({"p_value": 0.00001, "change_pct": -12.0, "noise_pct": 4.0}, "strong"),
        ({"p_value": 0.00001, "change_pct": -12.0, "noise_pct": 4.1}, "moderate"),
        ({"p_value": 0.001, "noise_pct": None}, "moderate"),
        ({"p_value": 0.00001, "change_pct": -5.9, "noise_pct": 4.0}, "weak"),
        ({"p_value": 0.00001, "overlap": True}, "weak"),
        ({"p_value": 0.2, "verdict": Grade.NOT_SIGNIFICANT}, "weak"),
        ({"p_value": 0.00001, "change_pct": None, "noise_pct": 4.0}, "strong"),
        ({"p_value": None}, ""),
    ],
)
def test_one_word_says_how_strong_the_evidence_is(changes: dict[str, Any], word: str) -> None:
    finding = replace(FINDING, **changes)
    assert report_data.strength(finding) == word
    assert f"evidence:  {word}: 6 runs before, 5 after" in screen(sent(findings=(finding,))[0]) or not word


def test_every_doubt_is_said_once() -> None:
    noisy = replace(FINDING, noise_pct=9.2, overlap=True)
    mail, _ = sent(build=DEBUG, findings=(noisy,))
    assert "caveat:    the config enables a sanitizer (kasan); results may differ" in screen(mail)
    rebuilt = "\nPlease note: rebuilding alone moves this metric by some 9.2% here, so compare\nseveral builds when"
    assert f"{rebuilt} testing a fix.\n" in mail.body
    assert "\nPlease note: the ranges of the two sides overlap.\n" in mail.body
    assert mail.body.count("Please note") == 2


def test_of_mixed_results_the_best_is_named_too() -> None:
    better = replace(FINDING, metric="vm-scan.median", verdict=Grade.IMPROVEMENT, change_pct=40.0)
    shown = screen(sent(findings=(FINDING, SLOWER, better))[0])
    rows = "              +22.0%  vm-scan.p99_ms (worse)\n              +40.0%  vm-scan.median (better)\n"
    assert f"also:      1 regression, 1 improvement; the largest:\n{rows}repr" in shown
    assert "+40.0% vm-scan.median (better)" in screen(sent(findings=(FINDING, better))[0])


def test_what_moved_in_an_unknown_direction_is_not_nothing() -> None:
    unclear = replace(FINDING, metric="vm-scan.widgets", direction="unknown", verdict=Grade.UNKNOWN, change_pct=300.0)
    assert "also:      1 of unknown direction, in the tables below" in screen(sent(findings=(FINDING, unclear))[0])
    assert "also:      no other significant change" in screen(sent(findings=(FINDING, PROFILE))[0])
    many = (*others(13), *(replace(unclear, metric=f"vmstat.m{each}") for each in range(250)))
    untested = replace(SLOWER, metric="vm-scan.x", verdict=Grade.NOT_TESTABLE)
    shown = screen(sent(findings=(FINDING, *many, untested))[0])
    expected = (
        "also:      12 regressions, 250 of unknown direction, 1 not tested for\n           significance; the largest:\n"
    )
    assert expected in shown


# --- below it ---


def test_it_is_text_of_78_columns_but_for_what_must_not_be_broken() -> None:
    long_one = replace(
        FINDING,
        machine_text="8 sockets of an " + "exceedingly long-named " * 9 + "CPU",
        params={"test": "one" * 30},
        metric="vm-scan." + "m" * 60,
    )
    mail, _ = sent(parent_title="a title " * 30, findings=(long_one,))
    prose, _, tables = mail.body.partition("Details are as below")
    allowed = (
        "commit: ",
        "http",
        "| Closes:",
        "| Reported-by:",
        "\ttest: ",
        "On lab7-m1, Perfwork noticed ",
        "test machine: ",
    )
    assert [line for line in prose.splitlines() if len(line) > 78 and not line.startswith(allowed)] == []
    assert long_one.metric in tables


def test_a_table_has_what_matters_first() -> None:
    """What the suite is run for, then what moved most in terms of its noise; monitors are counted."""
    idle = replace(FINDING, metric="vm-scan.idle%", old_mean=3.0, new_mean=3.3, old_stddev_pct=30.0)
    mail, _ = sent(findings=(FINDING, idle, SLOWER, PROFILE))
    rows = mail.body.partition("-" * 27 + "\n")[2].split("\n")[2:7]
    assert rows == [
        "    184200 ±  3%      -12.4%    161290        vm-scan.ops_per_sec",
        "      3.10 ±  3%      +22.0%     3.782        vm-scan.p99_ms",
        "      3.00 ± 30%        +0.3      3.30        vm-scan.idle%",
        "",
        "Not shown, but in the full report: 1 metric of monitors.",
    ]
    assert "    +2.9   12.1 ->  15.0  shrink_folio_list (self)" in mail.body


def test_a_table_has_at_most_25_rows() -> None:
    many = [replace(SLOWER, metric=f"vm-scan.stage{number:02}_ms", change_pct=float(number)) for number in range(40)]
    mail, _ = sent(findings=(FINDING, *many))
    table = mail.body.partition("Details are as below:")[2]
    assert table.count("vm-scan.stage") == 24
    assert "vm-scan.stage39_ms" in table
    assert "vm-scan.stage15_ms" not in table
    assert "Not shown, but in the full report: 16 other metrics." in mail.body


def test_other_tests_stand_in_the_box_that_readers_of_reports_know() -> None:
    elsewhere = replace(FINDING, suite="fsmark", metric="fsmark.files_per_sec", params={"fs": "xfs"}, change_pct=-31.0)
    mail, _ = sent(findings=(FINDING, elsewhere))
    assert "| testcase: change | fsmark: fsmark.files_per_sec -31.0% regression        |" in mail.body
    assert "| test parameters  | fs=xfs " in mail.body
    assert "also:      -31.0% fsmark.files_per_sec (worse)" in screen(mail)


def test_an_improvement_is_shorter_and_has_no_tag_block() -> None:
    better = replace(FINDING, verdict=Grade.IMPROVEMENT, change_pct=12.0)
    mail, _ = sent(verdict=Verdict.IMPROVEMENT, findings=(better,), test_text="it scans")
    assert mail.subject.endswith(": 12.0% improvement")
    assert "Reported-by" not in mail.body
    assert "reproduce:" not in mail.body
    assert "it scans" not in mail.body
    assert "fix:" not in mail.body
    assert "reply:     not needed; replies are read" in screen(mail)
    assert len(mail.body.splitlines()) < len(sent(test_text="it scans")[0].body.splitlines())


def test_regzbot_is_told_of_regressions_where_that_is_wanted() -> None:
    conventions = Conventions(regzbot="regressions@lists.example.org")
    mail, _ = sent(conventions)
    assert f"\n#regzbot introduced: {REPORT.sha}\n" in mail.body
    assert "regressions@lists.example.org" in [each.email for each in mail.cc]
    better, _ = sent(conventions, verdict=Verdict.IMPROVEMENT)
    assert "regzbot" not in better.body
    assert "regressions@lists.example.org" not in better.envelope


@pytest.mark.parametrize(
    ("template", "artifacts", "words"),
    [
        ("", (), "no script was provided; the parameters are below"),
        ("", (("repro.sh", "https://lab.example/repro.sh"),), "curl -sO https://lab.example/repro.sh && sh repro.sh"),
        ("", (("x/job.yaml", "https://lab.example/j.yaml"),), "curl -sO https://lab.example/j.yaml && lkp run j.yaml"),
        (
            "",
            (("repro.sh", "https://l.example/repro.sh?h=1"),),
            "curl -sO 'https://l.example/repro.sh?h=1' && sh repro.sh",
        ),
        ("", (("repro.sh", "https://lab.example/x/"),), "no script was provided; the parameters are below"),
        ("", (("dmesg.xz", "https://lab.example/d"),), "no script was provided; the parameters are below"),
        ("", (("repro.sh", "javascript:alert(1)"),), "no script was provided; the parameters are below"),
        ("lab run {suite} {params}", (), "lab run vm-scan nr_task=50% test=anon-cold"),
        ("lab run {sha} on {machine}", (), f"lab run {REPORT.sha} on lab7-m1"),
        ("", (("repro.sh", f"https://lab.example/{'x' * 99}/repro.sh"),), "see the command below"),
    ],
)
def test_one_command_to_reproduce(template: str, artifacts: tuple[tuple[str, str], ...], words: str) -> None:
    mail, _ = sent(Conventions(reproduce=template), artifacts=artifacts)
    assert f"reproduce: {words}" in " ".join(screen(mail).split())


def test_a_command_that_is_wrapped_is_one_command_still() -> None:
    mail, _ = sent(Conventions(reproduce="lab run {suite} {params} --kernel {sha}"))
    shown = mail.body.partition("reproduce: ")[2].partition("\nplease:")[0]
    assert shown.split("\n")[0].endswith(" \\")
    assert shlex.split(shown.replace("\\\n", "")) == [
        "lab",
        "run",
        "vm-scan",
        "nr_task=50%",
        "test=anon-cold",
        "--kernel",
        REPORT.sha,
    ]


def test_a_long_command_stands_whole_below() -> None:
    command = "lab run {suite} " + "--with-an-option " * 12
    mail, _ = sent(Conventions(reproduce=command))
    assert "reproduce: see the command below" in screen(mail)
    assert f"\nto reproduce: lab run vm-scan {'--with-an-option ' * 12}".rstrip() + "\n" in mail.body


def test_a_test_without_parameters_has_no_heading_for_them() -> None:
    assert "parameters:" not in sent(findings=(replace(FINDING, params={}),))[0].body


def test_a_parameter_breaks_out_of_no_shell() -> None:
    odd = replace(FINDING, params={"test": "$(rm -rf ~); `id`"}, suite="a'; id; '")
    mail, _ = sent(Conventions(reproduce="lab run {suite} {params}"), findings=(odd,))
    assert """lab run 'a'"'"'; id; '"'"'' 'test=$(rm -rf ~); `id`'""" in mail.body


def test_attachments_only_where_they_are_asked_for() -> None:
    assert "multipart" not in sent()[1]
    conventions = Conventions(attach=frozenset(Attached), reproduce="lab run {suite}")
    message = message_from_bytes(sent(conventions)[1].encode(), policy=email.policy.default)
    files = {part.get_filename(): part.get_content() for part in message.iter_attachments()}
    assert files["reproduce.sh"].replace("\r", "") == "#!/bin/sh\nlab run vm-scan\n"
    assert "suite: vm-scan\n" in files["job.yaml"].replace("\r", "")
    body = message.get_body()
    assert body
    assert body.get_content().startswith("Hello,\r\n")


def test_the_same_report_at_the_same_time_is_the_same_bytes() -> None:
    assert sent() == sent()


# --- hostile values ---

PIECES = [
    *"ab :<>@,;\"'\r\n\t\x00\u202e\u2028é=?%{}[]|",
    "\nBcc: evil@x.example\n",
    "=?utf-8?q?a?=",
    "=?utf-8?q?x_=3Cevil=40x.example=3E?= ",
    "{{ report.sha }}",
    "\r\n\r\n",
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
HEADERS = {
    "Message-ID", "Date", "From", "Reply-To", "To", "Cc", "Subject", "Auto-Submitted", "X-Mailer",
    "X-Perfwork-Report",
    "Content-Type", "Content-Transfer-Encoding", "MIME-Version", "List-Unsubscribe",
}  # fmt: skip


@pytest.mark.slow
@given(name=HOSTILE, title=HOSTILE, metric=HOSTILE, param=HOSTILE, machine=HOSTILE, tree=HOSTILE)
def test_nothing_breaks_out_of_a_header(
    name: str, title: str, metric: str, param: str, machine: str, tree: str
) -> None:
    finding = replace(FINDING, metric=metric, params={param: param}, machine=machine, machine_text=machine, suite=param)
    report = replace(
        REPORT, author=Address(name, "dana@dev.example"), title=title, findings=(finding,), tree=tree, branch=param
    )
    for form in SubjectForm:
        raw = to_bytes(compose(report, BOT, NOW, "", Conventions(subject=form)))
        message = message_from_bytes(raw, policy=email.policy.default)
        assert set(message.keys()) <= HEADERS
        assert len(message.get_all("To", [])) == len(message.get_all("Subject", [])) == 1
        assert [each.email for each in parse(raw).to] == ["dana@dev.example"]
        assert "evil@x.example" not in [each.email for each in parse(raw).recipients]
        assert not set(parse(raw).subject) & set("\u202e\u2028\r\n\x00")
        assert "evil@x.example" not in message["To"].addresses[0].display_name or "evil@x.example" in name


def test_an_encoded_word_in_a_name_stays_what_it_looks_like() -> None:
    trap = "=?utf-8?q?Linus_=3Ctorvalds=40kernel.example=3E?="
    _, raw = sent(author=Address(trap, "dana@dev.example"), title=f"mm: {trap}")
    message = message_from_bytes(raw.encode(), policy=email.policy.default)
    assert "Linus <" not in str(message["To"])
    assert parse(raw.encode()).to[0].name == trap.replace("=?", "= ?")
    assert "Linus <" not in str(message["Subject"])


def test_three_hundred_recipients_are_one_header_of_forty() -> None:
    trailers = tuple(("Cc", f'"Person, {number}" <p{number}@dev.example>') for number in range(300))
    _, raw = sent(trailers=trailers)
    message = message_from_bytes(raw.encode(), policy=email.policy.default)
    assert len(message.get_all("Cc", [])) == 1
    assert len(message["Cc"].addresses) == 39
    assert message["Cc"].addresses[1].display_name == "Person, 0"
    assert max(map(len, raw.partition("\r\n\r\n")[0].split("\r\n"))) <= 998


def test_encoded_words_are_short_enough_for_every_reader() -> None:
    """RFC 2047 section 2: 75 letters."""
    _, raw = sent(author=Address("Дмитрий Константинопольский-Преображенский", "dana@dev.example"), title="mm: ä" * 30)
    words = re.findall(r"=\?[^?\s]+\?[bq]\?[^?\s]*\?=", raw.partition("\r\n\r\n")[0], re.I)
    assert len(words) >= 2
    assert max(map(len, words)) <= 75


def test_a_share_is_told_in_points_and_in_per_cent() -> None:
    idle = replace(FINDING, metric="mpstat.idle%", unit="%", old_mean=20.0, new_mean=17.49, change_pct=-12.55)
    assert "measured:  20.00 -> 17.49 %, -2.5 points, -12.6% (95% CI -15.7 to" in sent(findings=(idle,))[0].body


def test_what_was_not_tested_is_not_nothing() -> None:
    other = replace(SLOWER, verdict=Grade.NOT_TESTABLE, suite="fsmark")
    assert "also:      1 not tested for significance" in screen(sent(findings=(FINDING, other))[0])


def test_dates_are_those_of_composition() -> None:
    _, raw = sent()
    assert "Date: Sat, 21 Nov 2026 12:00:00 +0000" in raw


def test_a_long_line_takes_more_of_the_screen() -> None:
    assert height(["", "a", "a" * 78, "a" * 79, "a" * 200]) == 8


# --- The twelve mails of tests/mail/composed: still composed byte for byte, valid, and readable on one screen ---


def test_no_file_is_left_over() -> None:
    assert sorted(path.stem for path in DIRECTORY.glob("*.eml")) == sorted(REPORTS)
    assert len(REPORTS) == 12


@pytest.mark.parametrize("name", REPORTS)
def test_an_edit_changes_the_text_alone(name: str) -> None:
    raw = composed(name)
    body = body_of(raw)
    assert edited(raw, body) == raw
    changed = edited(raw, f"Ein größerer Rückschritt.\n\n{body}")
    assert body_of(changed) == f"Ein größerer Rückschritt.\n\n{body}"
    assert edited(changed, body) == raw


def body_of(raw: bytes) -> str:
    message = message_from_bytes(raw, policy=email.policy.SMTP)
    text = message.get_body(("plain",))  # type: ignore[attr-defined]
    return str(text.get_content()).replace("\r\n", "\n")


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_composed_as_it_was_read_and_found_good(name: str) -> None:
    assert composed(name) == (DIRECTORY / f"{name}.eml").read_bytes(), "if it is meant: make golden, and read the mail"


@pytest.mark.parametrize("name", REPORTS)
def test_it_may_go(name: str) -> None:
    report, conventions = REPORTS[name]
    assert faults(compose(report, BOT, AT, "", conventions), BOT, conventions, AT, report) == ()


@pytest.mark.parametrize("name", REPORTS)
def test_one_screen_tells_what_readers_ask(name: str) -> None:
    text = parse((DIRECTORY / f"{name}.eml").read_bytes()).text
    shown = [line[at : at + WIDTH] for line in text.split("\n") for at in range(0, max(1, len(line)), WIDTH)][:24]
    names = ("measured:", "metric:", "where:", "evidence:", "bisected:", "also:")
    assert [each for each in names if not any(line.startswith(each) for line in shown)] == []
    assert any(line.startswith(("please:", "reply:")) for line in shown)


# --- Lines of our mail that programs act on are always ours, whatever text comes from labs, trees and people ---

ORDERS = ["#regzbot invalid: nothing", "#lkp invalid", "Tested-by: Eve <eve@x.example>", "Closes: https://x.example/1"]
ELSEWHERE = replace(FINDING, suite="fsmark")
FOREIGN: dict[str, Callable[[str], ReportData]] = {
    "a parameter's name": lambda text: replace(REPORT, findings=(replace(FINDING, params={text: "x", "b": "y"}),)),
    "a parameter's value": lambda text: replace(REPORT, findings=(replace(FINDING, params={"a": text}),)),
    "an artifact's name": lambda text: replace(REPORT, artifacts=((text, "https://lab.example/x"),)),
    "a tree's name": lambda text: replace(REPORT, tree_url="", tree=text, branch=""),
    "a tree's address": lambda text: replace(REPORT, tree_url=text),
    "a machine's name": lambda text: replace(REPORT, findings=(FINDING, replace(ELSEWHERE, machine=text))),
    "a metric's name": lambda text: replace(REPORT, findings=(replace(FINDING, metric=text),)),
    "a suite's name": lambda text: replace(REPORT, findings=(FINDING, replace(ELSEWHERE, suite=text))),
    "a title": lambda text: replace(REPORT, title=text, parent_title=text),
    "a config's name": lambda text: replace(
        REPORT, build=BuildInfo(kconfig=f"{text} kasan lockdep " + "long " * 9 + text)
    ),
    "a test's description": lambda text: replace(REPORT, test_text=text),
}


def obeyed(body: str) -> list[str]:
    own = re.compile(rf'commit:( {REPORT.sha} \(".*"\))?')
    return [line for line in body.split("\n") if is_directive(line) and not own.fullmatch(line)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("report_with", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_value_begins_no_line_that_is_obeyed(report_with: Callable[[str], ReportData], order: str) -> None:
    assert obeyed(compose(report_with(order), BOT, NOW).body) == []


def test_nor_does_the_reason_of_a_withdrawal() -> None:
    thread = ThreadData(REPORT.tag, REPORT.sha, "mm: a", "regression", "a@b.example", (), "s", (REPORT.author,), ())
    mails = ThreadMails(BOT, NOW, {})
    for order in ORDERS:
        assert obeyed(compose_withdrawal(thread, f"{'word ' * 14}{order}", "p", mails).body) == []


def test_a_line_that_slipped_through_is_found() -> None:
    sound = compose(REPORT, BOT, NOW)
    odd = replace(sound, body=sound.body.replace("\nDetails", "\nTested-by: Eve <eve@x.example>\nDetails"))
    assert faults(odd, BOT, Conventions(), NOW, REPORT) == (
        "programs would act on a line that is not ours: Tested-by: Eve <eve@x.example>",
    )


@given(st.lists(st.sampled_from([*ORDERS, "plain", "", " #lkp fix: a", "commit:", "From: me"]), max_size=9))
def test_only_our_own_lines_are_obeyed(lines: list[str]) -> None:
    kept = escape_directives("\n".join(lines), ("commit:",)).split("\n")
    assert [line.removeprefix(" ") for line in kept] == [line.removeprefix(" ") for line in (lines or [""])]
    assert {line for line in kept if is_directive(line)} <= {"commit:"}


# --- Composed reports can be parsed again, by our and by common tools, without losing a number ---


def explained(report: ReportData, conventions: Conventions = Conventions()) -> dict[str, Any]:  # noqa: B008
    (line,) = explain([to_bytes(compose(report, BOT, NOW, "", conventions))], BOT, rows=True)
    return dict(line)


def test_our_own_mail_is_read_like_a_robots() -> None:
    line = explained(REPORT)
    report = line["report"]
    assert (line["kind"], line["report_ids"], line["problems"]) == ("self", [REPORT.sha], [])
    assert report["culprit"] == REPORT.sha
    assert report["culprit_title"] == REPORT.title
    assert (report["metric"], report["verdict"], report["change_pct"]) == ("vm-scan.ops_per_sec", "regression", -12.4)
    assert (report["subsystem"], report["suite"], report["tbox_group"]) == ("mm/vmscan", "vm-scan", "lab7-m1")
    assert (report["repo_url"], report["repo_branch"]) == ("https://git.example.org/linux.git", "master")
    assert report["parameters"] == dict(FINDING.params)
    assert report["parent"] == REPORT.parent_sha[:16]
    assert (report["old"], report["new"]) == (
        {"mean": 184200.0, "stddev_pct": 3.0},
        {"mean": 161290.0, "stddev_pct": None},
    )
    assert report["config"] == "perf-9"
    assert report["compiler"] == "gcc-14"
    assert report["machine"] == FINDING.machine_text
    assert report["closes"].endswith("/r/202611211200.7d3e91c0-perfbot@bot.example.org")
    assert report["reported_by"] == "Perfwork <perfbot+7d3e91c0a45b28f6@bot.example.org>"
    assert report["preamble"] is None


def test_parameters_as_labs_name_them() -> None:
    odd = {"disk:nr_pmem": "1", "filesize": "1G/32t", "test": "a/b", "cpufreq governor": "x: y"}
    line = explained(replace(REPORT, findings=(replace(FINDING, params=odd),)))
    assert line["report"]["parameters"] == odd
    assert line["report"]["axes"]["filesize"] == "1G/32t"
    assert line["problems"] == []


def test_with_the_tree_in_front_tree_and_branch_are_read_too() -> None:
    report = explained(REPORT, Conventions(subject=SubjectForm.TREE))["report"]
    assert (report["tree"], report["branch"], report["subsystem"]) == ("linus", "master", "mm/vmscan")


def test_what_else_moved_is_read_from_the_box() -> None:
    elsewhere = replace(
        FINDING, suite="fsmark", metric="fsmark.files_per_sec", params={"fs": "xfs", "disk": "1SSD"}, change_pct=-31.0
    )
    report = explained(replace(REPORT, findings=(FINDING, elsewhere, replace(SLOWER, machine="lab7-m2"))))["report"]
    assert [
        (each["testcase"], each["metric"], each["verdict"], each["change_pct"]) for each in report["additional"]
    ] == [
        ("fsmark", "fsmark.files_per_sec", "regression", -31.0),
        ("vm-scan", "vm-scan.p99_ms", "regression", -22.0),
    ]
    assert report["additional"][0]["parameters"] == {"disk": "1SSD", "fs": "xfs"}
    assert report["additional"][1]["tbox_group"] == "lab7-m2"
    assert report["n_tables"] == 3


# --- generated findings ---

MEANS = st.one_of(
    st.floats(1e-8, 1e15), st.floats(-1e12, -1e-6), st.integers(1, 10**9).map(float), st.sampled_from([1.0, 999.995])
)
SPREADS = st.one_of(st.none(), st.floats(0, 300))
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,12}", fullmatch=True)
METRICS = st.builds(lambda a, b: f"{a}.{b}", NAMES, st.from_regex(r"[A-Za-z][\w./:-]{0,30}", fullmatch=True))
PARAMS = st.dictionaries(NAMES, st.from_regex(r"[A-Za-z0-9%._-]{1,12}", fullmatch=True), max_size=4)


@st.composite
def findings(draw: st.DrawFn) -> FindingData:
    old, new = draw(MEANS), draw(MEANS)
    direction = draw(st.sampled_from(["higher", "lower"]))
    grade = Grade(verdict_of(old, new, direction).value)
    return replace(
        FINDING,
        metric=draw(METRICS),
        direction=direction,
        verdict=grade,
        change_pct=change_pct(old, new),
        old_mean=old,
        new_mean=new,
        old_stddev_pct=draw(SPREADS),
        new_stddev_pct=draw(SPREADS),
        params=draw(PARAMS),
        machine=draw(st.sampled_from(["lab7-m1", "lab7-m2"])),
        suite=draw(st.sampled_from(["vm-scan", "fsmark"])),
        p_value=draw(st.one_of(st.none(), st.floats(0, 1))),
    )


def close(read: float | None, expected: float) -> bool:
    """To the five digits that are printed."""
    return read is not None and math.isclose(read, expected, rel_tol=1e-4)


def spread_is(read: float | None, expected: float | None) -> bool:
    return (
        read is None
        if expected is None or expected < 2
        else read is not None and abs(read - expected) <= 0.5 + expected * 0.05
    )


@pytest.mark.slow
@given(measured=st.lists(findings(), min_size=1, max_size=8, unique_by=lambda each: (each.metric, each.table_key)))
def test_every_number_that_went_in_comes_out(measured: list[FindingData]) -> None:
    head = measured[0]
    verdict = verdict_of(head.old_mean, head.new_mean, head.direction)
    assume(verdict is not Verdict.UNKNOWN and head.change_pct is not None and abs(head.change_pct) < 1e9)
    report = explained(replace(REPORT, findings=tuple(measured), verdict=verdict))["report"]
    assert report is not None
    assert (report["metric"], report["verdict"], report["suite"]) == (head.metric, verdict.value, head.suite)
    assert head.change_pct is not None
    assert abs(abs(report["change_pct"]) - abs(head.change_pct)) <= 0.05 + abs(head.change_pct) * 1e-6
    assert close(report["old"]["mean"], head.old_mean)
    assert close(report["new"]["mean"], head.new_mean)
    assert report["parameters"] == dict(head.params)
    rows = {
        (table["axes"]["testcase"], table["axes"]["tbox_group"], row["metric"]): row
        for table in report["tables"]
        for row in table["rows"]
    }
    assert sum(len(table["rows"]) for table in report["tables"]) == len(measured)
    for each in measured:
        if sum((each.suite, each.machine, each.metric) == (o.suite, o.machine, o.metric) for o in measured) > 1:
            continue  # told apart by their parameters alone
        row = rows[each.suite, each.machine, each.metric]
        assert close(row["old"], each.old_mean)
        assert close(row["new"], each.new_mean)
        assert spread_is(row["old_stddev_pct"], each.old_stddev_pct)
        assert spread_is(row["new_stddev_pct"], each.new_stddev_pct)
        assert row["change_text"] == report_data.moved(each)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_a_value_keeps_its_five_digits_in_its_column(number: float) -> None:
    text = report_data.value(number)
    assert math.isclose(float(text), number, rel_tol=6e-5, abs_tol=1e-300)
    assert len(text.lstrip("-")) <= 10 or abs(number) >= 1e99 or abs(number) < 1e-99


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.00"),
        (184200.0, "184200"),
        (161290.33, "161290"),
        (1000.0, "1000"),
        (1234.567, "1234.6"),
        (3.0975, "3.0975"),
        (3.1, "3.10"),
        (97.5, "97.50"),
        (0.01234, "0.01234"),
        (0.00012, "1.2000e-04"),
        (-12.5, "-12.50"),
        (1.5e12, "1.5000e+12"),
    ],
)
def test_values_as_the_lists_write_them(number: float, text: str) -> None:
    assert report_data.value(number) == text


@pytest.mark.parametrize("form", SubjectForm)
def test_a_reader_finds_the_subject_where_it_expects_it(form: SubjectForm) -> None:
    subject = read_subject(compose(REPORT, BOT, NOW, "", Conventions(subject=form)).subject)
    assert (subject.sha, subject.verdict, subject.subsystem) == (REPORT.sha[:10], "regression", "mm/vmscan")
    assert subject.percent.lstrip("-") == "12.4"


@pytest.mark.parametrize(
    ("files", "how", "names"),
    [
        ({"job.yaml": "suite: x\n"}, "lkp install job.yaml && lkp run job.yaml  # attached", ["job.yaml"]),
        ({"job.yaml": "x" * 30_000}, "no script was provided", []),
        (
            {"job.yaml": "a\n", "reproduce.sh": "b\n", "dmesg": "c\n"},
            "sh reproduce.sh  # attached",
            ["job.yaml", "reproduce.sh"],
        ),
        ({"dmesg": "c\n"}, "no script was provided", []),
    ],
)
def test_the_labs_own_job_and_script_are_attached(files: dict[str, str], how: str, names: list[str]) -> None:
    mail, _ = sent(files=files)
    assert f"reproduce: {how}" in screen(mail)
    assert [attachment.name for attachment in mail.attachments] == names


def test_a_wide_value_after_new_is_read_back() -> None:
    wide = replace(FINDING, old_mean=1.0, new_mean=-1e8, change_pct=None)
    row = parse_row(report_data.row(wide, wide.metric))
    assert row is not None
    assert (row.new.mean, row.name) == (-1e8, wide.metric)
