"""The report mail: what it says, to whom, and that nothing breaks out of it."""

from __future__ import annotations

import email.policy
from dataclasses import replace
from email import message_from_bytes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.mail import Mail, to_bytes
from bot.compose.recipients import recipients_of
from bot.compose.report_mail import compose
from bot.compose.subject import report_subject
from bot.compose.told import FindingTold, ReportTold
from bot.identity import Identity
from bot.ingest.robot_mail.report import find_report
from bot.replies.addresses import Address
from bot.replies.mail import parse
from bot.subsystem import subsystem_of
from tests.conftest import NOW
from tracker.status import Grade, Verdict

BOT = Identity(
    address="perfbot@bot.example.org",
    list_address="perf-reports@lists.example.org",
    base_url="https://perf.example.org",
)
FINDING = FindingTold(
    metric="vm-scan.ops_per_sec",
    unit="1/s",
    direction="higher",
    verdict=Grade.REGRESSION,
    change_pct=-12.44,
    old_mean=184200.0,
    old_stddev_pct=3.2,
    old_runs=6,
    new_mean=161290.0,
    new_stddev_pct=0.4,
    new_runs=5,
    suite="vm-scan",
    params={"nr_task": "50%", "test": "anon-cold"},
    machine="lab7-m1",
    machine_text="64 CPUs, 2 sockets, Example CPU, 256 GiB memory",
)
TOLD = ReportTold(
    tag="7d3e91c0a45b28f6",
    sha="3b1f0c9d2e" + "4" * 30,
    title="mm/vmscan: walk cold folios first",
    author=Address("Dana Brook", "dana@dev.example"),
    trailers=(("Signed-off-by", "Dana Brook <dana@dev.example>"), ("Reviewed-by", "Lee Park <lee@dev.example>")),
    patch_message_id="",
    tree="linus",
    tree_url="https://git.example.org/linux.git",
    branch="master",
    parent_sha="a" * 40,
    parent_title="mm: prepare",
    base="v9.1-rc1",
    good="v9.1-rc1",
    bad="v9.1-rc2",
    bisect_steps=7,
    kconfig="perf-9",
    compiler="gcc-14",
    verdict=Verdict.REGRESSION,
    findings=(FINDING, replace(FINDING, metric="vm-scan.p99_ms", unit="ms", direction="lower", change_pct=22.0)),
)


def sent(**changes: Any) -> tuple[Mail, str]:
    mail = compose(replace(TOLD, **changes), BOT, NOW)
    return mail, to_bytes(mail).decode()


@pytest.mark.parametrize(
    ("title", "change", "verdict", "expected"),
    [
        ("mm/vmscan: walk", -12.44, Verdict.REGRESSION, "[LKP] [mm/vmscan] 3b1f0c9d2e: -12.4% regression"),
        ("mm/vmscan: walk", 136.14, Verdict.IMPROVEMENT, "[LKP] [mm/vmscan] 3b1f0c9d2e: 136.1% improvement"),
        ("no prefix here", -0.04, Verdict.REGRESSION, "[LKP] 3b1f0c9d2e: -0.0% regression"),
        ("mm: a", None, Verdict.REGRESSION, "[LKP] [mm] 3b1f0c9d2e: regression"),
    ],
)
def test_subjects(title: str, change: float | None, verdict: Verdict, expected: str) -> None:
    assert report_subject(title, TOLD.sha, change, verdict) == expected


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


def test_the_first_screen_answers_what_readers_ask() -> None:
    mail, raw = sent()
    screen = "\n".join(mail.body.splitlines()[:24])
    for answer in (
        "a 12.4% regression of vm-scan.ops_per_sec",
        f'commit: {TOLD.sha} ("mm/vmscan: walk cold folios first")',
        "184200 ± 3% -> 161290 1/s (higher is better; 6 + 5 runs)",
        "vm-scan on lab7-m1: 64 CPUs",
        'parent aaaaaaaaaa ("mm: prepare"), based on v9.1-rc1',
        "v9.1-rc1 (good) to v9.1-rc2 (bad) in 7 steps",
        "Other metrics: 1 worse, 0 better",
        "    #lkp fix: <title of the commit that fixes it>",
    ):
        assert answer in screen, answer
    assert mail.message_id == "202611211200.7d3e91c0-perfbot@bot.example.org"
    assert f"| Closes: https://lore.kernel.org/r/{mail.message_id}" in mail.body
    assert "Auto-Submitted: auto-generated" in raw
    assert "Reply-To: Perfwork <perfbot+7d3e91c0a45b28f6@bot.example.org>" in raw


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (-8.84, "an 8.8% regression of"),
        (-11.0, "an 11.0% regression of"),
        (-80.0, "an 80.0%"),
        (-1.1, "a 1.1%"),
        (None, "a regression of"),
    ],
)
def test_the_first_sentence_is_english(change: float | None, words: str) -> None:
    mail, _ = sent(findings=(replace(FINDING, change_pct=change),))
    assert f"Perfwork noticed {words}" in mail.body


def test_it_is_text_of_78_columns_but_for_commits_addresses_and_tables() -> None:
    long_one = replace(
        FINDING,
        machine_text="8 sockets of an " + "exceedingly long-named " * 9 + "CPU",
        params={"test": "one" * 30},
        metric="vm-scan." + "m" * 80,
    )
    mail, _ = sent(parent_title="a title " * 30, findings=(long_one,))
    prose, _, tables = mail.body.partition("Details are as below")
    allowed = ("commit: ", "http", "| Closes:", "| Reported-by:", "\ttest: ", "Perfwork noticed ", "test machine: ")
    assert [line for line in prose.splitlines() if len(line) > 78 and not line.startswith(allowed)] == []
    assert long_one.metric in tables


def test_an_improvement_has_no_tag_block() -> None:
    better = replace(FINDING, verdict=Grade.IMPROVEMENT, change_pct=12.0)
    mail, _ = sent(verdict=Verdict.IMPROVEMENT, findings=(better,))
    assert mail.subject.endswith(": 12.0% improvement")
    assert "Reported-by" not in mail.body


def test_it_answers_the_patch_where_that_is_known() -> None:
    _, raw = sent(patch_message_id="patch@dev.example")
    assert "In-Reply-To: <patch@dev.example>\r\nReferences: <patch@dev.example>" in raw
    assert "In-Reply-To" not in sent()[1]


def test_the_same_report_at_the_same_time_is_the_same_bytes() -> None:
    assert sent() == sent()


def test_a_robot_reader_finds_the_numbers_again() -> None:
    told = find_report(parse(to_bytes(sent()[0])))
    assert told
    assert (told.culprit, told.culprit_title) == (TOLD.sha, TOLD.title)
    assert (told.metric, told.verdict, told.change_pct) == ("vm-scan.ops_per_sec", "regression", -12.4)
    assert (told.machine, told.suite, dict(told.test.parameters)) == ("lab7-m1", "vm-scan", dict(FINDING.params))
    assert told.old
    assert (told.old.mean, told.old.stddev_pct) == (184200, 3)
    assert told.tags.closes.endswith("202611211200.7d3e91c0-perfbot@bot.example.org")


# --- recipients ---


def people(*trailers: tuple[str, str], author: str = "dana@dev.example") -> tuple[list[str], list[str]]:
    found = recipients_of(Address("", author), trailers, BOT)
    return [each.email for each in found.to], [each.email for each in found.cc]


LIST = "perf-reports@lists.example.org"


@pytest.mark.parametrize(
    ("trailers", "cc"),
    [
        ([], [LIST]),
        (
            [("Reviewed-by", "Lee <lee@dev.example>"), ("signed-off-by", "Lee <LEE@dev.example>")],
            [LIST, "lee@dev.example"],
        ),
        ([("Cc", "stable@vger.kernel.org # v6.1")], [LIST]),
        ([("Cc", "<stable@kernel.org>"), ("Cc", "noreply@x.example")], [LIST]),
        ([("Link", "https://x <a@b.example>"), ("Fixes", "a@b.example")], [LIST]),
        ([("Acked-by", "perfbot@bot.example.org"), ("Acked-by", "not an address")], [LIST]),
    ],
)
def test_recipients(trailers: list[tuple[str, str]], cc: list[str]) -> None:
    assert people(*trailers) == (["dana@dev.example"], cc)


def test_three_hundred_people_are_capped_and_the_list_stays() -> None:
    _, cc = people(*[("Cc", f"p{n}@dev.example") for n in range(300)])
    assert cc[0] == LIST
    assert len(cc) == 41


def test_without_an_author_the_list_is_told() -> None:
    assert people(author="no address") == ([LIST], [])


@pytest.mark.parametrize(
    "odd",
    [
        "foo.@x.org",
        ".foo@x.org",
        "a..b@x.org",
        "foo@x.org.",
        "foo@.x",
        "foo@-x.org",
        "a b@x.org",
        "é@x.org",
        "a@b@c",
        "@",
    ],
)
def test_an_address_that_no_server_takes_is_left_out(odd: str) -> None:
    to_bytes(compose(replace(TOLD, author=Address("", odd), trailers=(("Cc", f"<{odd}>"),)), BOT, NOW))
    assert recipients_of(Address("", odd), (), BOT).to == (Address("", LIST),)


@pytest.mark.parametrize(
    "odd", ["a\x0bb@x", "a\u2028b@x", "é@x", "a" * 1200 + "@x", "a b@x", "a@b>\nBcc: <evil@x.example", "x"]
)
def test_an_odd_message_id_of_a_patch_is_not_answered(odd: str) -> None:
    assert "In-Reply-To" not in sent(patch_message_id=odd)[1]


# --- hostile values ---

PIECES = [*"ab :<>@,;\"'\r\n\t\x00\u202e\u2028é=?%{}", "\nBcc: evil@x.example\n", "=?utf-8?q?a?=", "{{ told.sha }}"]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(name=HOSTILE, title=HOSTILE, metric=HOSTILE, param=HOSTILE, machine=HOSTILE, tree=HOSTILE)
def test_nothing_breaks_out_of_a_header(
    name: str, title: str, metric: str, param: str, machine: str, tree: str
) -> None:
    finding = replace(FINDING, metric=metric, params={param: param}, machine=machine, machine_text=machine)
    told = replace(TOLD, author=Address(name, "dana@dev.example"), title=title, findings=(finding,), tree=tree)
    raw = to_bytes(compose(told, BOT, NOW))
    message = message_from_bytes(raw, policy=email.policy.default)
    assert set(message.keys()) <= {
        *("Message-ID", "Date", "From", "Reply-To", "To", "Cc", "Subject", "Auto-Submitted", "X-Perfwork-Report"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    }
    assert [each.email for each in parse(raw).to] == ["dana@dev.example"]
    assert "evil@x.example" not in [each.email for each in parse(raw).recipients]
    assert "\u202e" not in parse(raw).subject


def test_dates_are_those_of_composition() -> None:
    _, raw = sent()
    assert "Date: Sat, 21 Nov 2026 12:00:00 +0000" in raw
