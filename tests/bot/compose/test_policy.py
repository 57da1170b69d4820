"""The sending policy: rules, limits, and what holds a report regardless of the rules."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy import Action, Policy, PolicyContext, PolicyRule, decide, first_day, read_policy
from tests.conftest import NOW
from tests.report_data import FINDING, REPORT
from tracker.domain.events import Verdict

TODAY = date(2026, 11, 21)
CALM = PolicyContext()


@pytest.mark.parametrize(
    ("conditions", "fits"),
    [
        ({}, True),
        ({"direction": "regression"}, True),
        ({"direction": "improvement"}, False),
        ({"at_least_pct": 12.0}, True),
        ({"at_least_pct": 12.5}, False),
        ({"below_pct": 12.5}, True),
        ({"below_pct": 12.0}, False),
        ({"suites": ("vm-*",)}, True),
        ({"suites": ("fsmark", "aim7")}, False),
        ({"trees": ("linus", "next")}, True),
        ({"trees": ("next",)}, False),
        ({"subsystems": ("mm*",)}, True),
        ({"subsystems": ("mm",)}, False),
        ({"authors": ("*@dev.example",)}, True),
        ({"authors": ("*@corp.example",)}, False),
        ({"opted_in": True}, False),
        ({"direction": "regression", "trees": ("next",)}, False),
    ],
)
def test_a_rule_fits_where_all_its_conditions_hold(conditions: dict[str, Any], fits: bool) -> None:
    policy = Policy((PolicyRule(Action.SEND, **conditions),))
    assert (decide(REPORT, policy, CALM, NOW, Action.APPROVE).action is Action.SEND) is fits


def test_an_author_who_wants_it_gets_it() -> None:
    policy = Policy((PolicyRule(Action.SEND, opted_in=True),))
    assert decide(REPORT, policy, PolicyContext(opted_in=True), NOW, Action.APPROVE).action is Action.SEND


def test_the_first_rule_that_fits_decides() -> None:
    policy = Policy((PolicyRule(Action.HOLD, suites=("vm-scan",)), PolicyRule(Action.SEND)))
    assert decide(REPORT, policy, CALM, NOW, Action.APPROVE).action is Action.HOLD
    assert decide(REPORT, policy, CALM, NOW, Action.APPROVE).reason == "rule 1 of the policy (suites vm-scan)"
    elsewhere = replace(REPORT, findings=(replace(FINDING, suite="aim7"),))
    assert decide(elsewhere, policy, CALM, NOW, Action.APPROVE).action is Action.SEND


def test_a_rule_says_its_conditions() -> None:
    rule = PolicyRule(Action.HOLD, "regression", 5.0, 12.5, ("vm-*", "aim7"), ("next",), opted_in=True)
    assert str(rule) == "regression, at least 5%, below 12.5%, suites vm-* or aim7, trees next, the author opted in"
    assert str(PolicyRule(Action.SEND)) == "every report"


def test_from_zero_is_larger_than_any_size() -> None:
    from_zero = replace(REPORT, findings=(replace(FINDING, change_pct=None),))
    assert PolicyRule(Action.SEND, at_least_pct=1000.0).fits(from_zero, False)
    assert not PolicyRule(Action.SEND, below_pct=1000.0).fits(from_zero, False)
    assert PolicyRule(Action.SEND, direction="improvement").fits(replace(REPORT, verdict=Verdict.IMPROVEMENT), False)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (PolicyContext(reported_by="a@robots.example"), "already reported by another robot: <a@robots.example>"),
        (
            PolicyContext(same_patch="c" * 40, same_patch_tree="next"),
            "the same patch was reported as cccccccccc in next",
        ),
        (PolicyContext(fix_posted_at=NOW - timedelta(days=6)), "a fix was posted on 2026-11-15, less than 7 days ago"),
        (PolicyContext(fix_posted_at=NOW - timedelta(days=8)), ""),
    ],
)
def test_what_holds_a_report_outweighs_every_rule(known: PolicyContext, reason: str) -> None:
    decision = decide(REPORT, Policy((PolicyRule(Action.SEND),)), known, NOW, Action.APPROVE)
    assert (decision.action, decision.reason) == ((Action.HOLD if reason else Action.SEND), reason)


# --- limits ---


def test_a_mail_goes_on_the_first_day_with_room() -> None:
    policy = Policy(per_author=2, per_list=3, a_day=10)
    tomorrow = TODAY + timedelta(days=1)
    sent = {TODAY: Counter({"": 5, "dana@x.example": 2, "list@x.example": 1}), tomorrow: Counter({"": 1})}
    lists = ["list@x.example"]
    assert first_day(sent, lists, "dana@x.example", policy, TODAY) == tomorrow
    assert first_day(sent, lists, "lee@x.example", policy, TODAY) == TODAY
    assert first_day(sent, lists, "", policy, TODAY) == TODAY
    assert first_day({TODAY: Counter({"list@x.example": 3})}, lists, "lee@x.example", policy, TODAY) == tomorrow
    assert first_day({TODAY: Counter({"": 10})}, [], "lee@x.example", policy, TODAY) == tomorrow


def test_without_limits_everything_goes_today() -> None:
    policy = Policy(per_author=0, per_list=0, a_day=0)
    assert first_day({TODAY: Counter({"": 9999, "a@x.example": 9999})}, [], "a@x.example", policy, TODAY) == TODAY


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9), st.lists(st.sampled_from("abc"), max_size=40))
def test_no_day_ever_has_more_than_the_limits(author: int, lists: int, in_all: int, authors: list[str]) -> None:
    policy = Policy(per_author=author, per_list=lists, a_day=in_all)
    sent: dict[date, Counter[str]] = {}
    for each in authors:
        day = first_day(sent, ["list"], each, policy, TODAY)
        sent.setdefault(day, Counter()).update([each, "list", ""])
    for counts in sent.values():
        assert counts[""] <= in_all
        assert counts["list"] <= lists
        assert all(counts[each] <= author for each in "abc")
    days = sorted(sent)
    assert all(day == TODAY + timedelta(days=number) for number, day in enumerate(days))  # none is left free


# --- the file ---


def test_a_policy_from_its_file() -> None:
    text = """
    quiet_days_after_fix = 3
    per_author_a_day = 2
    per_list_a_day = 0
    [[rule]]
    action = "send"
    direction = "regression"
    at_least_pct = 10
    trees = ["linus"]
    [[rule]]
    action = "hold"
    opted_in = true
    """
    policy = read_policy(text)
    assert (policy.quiet_after_fix, policy.per_author, policy.per_list, policy.a_day) == (timedelta(days=3), 2, 0, 100)
    assert policy.rules == (
        PolicyRule(Action.SEND, "regression", 10, trees=("linus",)),
        PolicyRule(Action.HOLD, opted_in=True),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rule = ", "invalid TOML: "),
        ("per_author = 3", "per_author: unknown setting"),
        ("a_day = -1", "a_day: expected a whole number, found -1"),
        ("a_day = true", "a_day: expected a whole number, found True"),
        ("[rule]\naction = 'send'", "rule: expected [[rule]] above each rule"),
        ("[[rule]]\ndirection = 'regression'", "rule 1: action: expected send, approve or hold, found None"),
        ("[[rule]]\naction = 'sent'", "rule 1: action: expected send, approve or hold, found 'sent'"),
        ("[[rule]]\naction = 'send'\nsuite = ['x']", "rule 1: suite: unknown condition"),
        ("[[rule]]\naction = 'send'\nsuites = 'x'", "rule 1: suites: expected a list of patterns, found 'x'"),
        ("[[rule]]\naction = 'send'\nat_least_pct = 'x'", "rule 1: at_least_pct: expected float, found 'x'"),
        ("[[rule]]\naction = 'send'\nopted_in = 1", "rule 1: opted_in: expected bool, found 1"),
        ("[[rule]]\naction = 'send'\ndirection = 'down'", "rule 1: direction: expected regression or improvement"),
    ],
)
def test_a_typo_lets_no_mail_go(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read_policy(text)


@given(st.text(max_size=60))
def test_a_policy_of_junk_is_refused_in_words(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert read_policy(text).rules == ()
