"""Lines of our mail that programs act on are always ours, whatever text comes from labs, trees and people."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.conventions import Conventions, escape_directives, is_directive
from bot.compose.lint import faults
from bot.compose.report_data import BuildInfo, ReportData
from bot.compose.report_mail import compose
from bot.notifications.announcement import compose_withdrawal
from bot.notifications.thread import ThreadData
from tests.conftest import NOW
from tests.report_data import BOT, FINDING, REPORT

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
    for order in ORDERS:
        assert obeyed(compose_withdrawal(thread, f"{'word ' * 14}{order}", "p", BOT, NOW, {}).body) == []


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
