"""The sending policy: rules, limits, and what holds a report regardless of the rules."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy import (
    AHEAD,
    Action,
    Policy,
    PolicyContext,
    PolicyRule,
    QuietHours,
    Rates,
    ReminderPolicy,
    Slot,
    decide,
    first_day,
    read_policy,
    reserve_slot,
    to_toml,
)
from tests.conftest import NOW as NOON
from tests.support.outbox import FINDING, REPORT
from tracker.domain.deadlines import (
    DeadlinePolicy,
    Stage,
    after_working_days,
    before_working_days,
    report_clock,
)
from tracker.domain.events import Awaited, State, Verdict
from tracker.domain.report_state import ReportState

# --- The sending policy: rules, limits, and what holds a report regardless of the rules ---

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
    assert (decide(REPORT, policy, CALM, NOON, Action.APPROVE).action is Action.SEND) is fits


def test_an_author_who_wants_it_gets_it() -> None:
    policy = Policy((PolicyRule(Action.SEND, opted_in=True),))
    assert decide(REPORT, policy, PolicyContext(opted_in=True), NOON, Action.APPROVE).action is Action.SEND


def test_the_first_rule_that_fits_decides() -> None:
    policy = Policy((PolicyRule(Action.HOLD, suites=("vm-scan",)), PolicyRule(Action.SEND)))
    assert decide(REPORT, policy, CALM, NOON, Action.APPROVE).action is Action.HOLD
    assert decide(REPORT, policy, CALM, NOON, Action.APPROVE).reason == "rule 1 of the policy (suites vm-scan)"
    elsewhere = replace(REPORT, findings=(replace(FINDING, suite="aim7"),))
    assert decide(elsewhere, policy, CALM, NOON, Action.APPROVE).action is Action.SEND


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
        (
            PolicyContext(fix_posted_at=NOON - timedelta(days=6)),
            "a fix was posted on 2026-11-15, less than 7 days ago",
        ),
        (PolicyContext(fix_posted_at=NOON - timedelta(days=8)), ""),
    ],
)
def test_what_holds_a_report_outweighs_every_rule(known: PolicyContext, reason: str) -> None:
    decision = decide(REPORT, Policy((PolicyRule(Action.SEND),)), known, NOON, Action.APPROVE)
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


# --- Who is reminded, and when: the clock of a report, and what keeps a reminder back ---

FRIDAY = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = ReminderPolicy()


def state(name: str, awaited: str, verdict: str = "regression", **more: object) -> ReportState:
    return ReportState(Verdict(verdict), State(name), awaited=Awaited(awaited), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("since", "days", "expected"),
    [
        ("2026-11-20", 1, "2026-11-23"),  # a Friday
        ("2026-11-21", 1, "2026-11-24T00:00"),  # what begins on a day off begins with the next working day
        ("2026-11-22", 5, "2026-11-30T00:00"),
        ("2026-11-23", 5, "2026-11-30"),
        ("2026-11-20", 10, "2026-12-04"),
        ("2026-12-23", 1, "2027-01-04"),  # nobody works from Christmas to the new year
        ("2026-12-31", 2, "2027-01-06T00:00"),
        ("2026-11-20", 0, "2026-11-20"),
    ],
)
def test_working_days(since: str, days: int, expected: str) -> None:
    at = datetime.fromisoformat(f"{since}T09:00+00:00")
    due = expected if "T" in expected else f"{expected}T09:00"
    assert after_working_days(at, days) == datetime.fromisoformat(f"{due}+00:00")


@pytest.mark.parametrize(
    ("report", "serious", "near", "stage", "due"),
    [
        (state("no_response", "author"), False, False, Stage.RESPONSE, "2026-11-27"),
        (state("no_response", "author"), True, False, Stage.RESPONSE, "2026-11-25"),
        (state("no_response", "author"), False, True, Stage.RESPONSE, "2026-11-24"),
        (state("no_response", "author"), True, True, Stage.RESPONSE, "2026-11-23"),
        (state("no_response", "author", blocks="v9.1"), False, False, Stage.RESPONSE, "2026-11-25"),
        (state("responded", "author"), False, False, Stage.FIX, "2026-12-04"),
        (state("working", "author"), False, True, Stage.FIX, "2026-11-27"),
        (state("fix_confirmed", "author"), False, False, Stage.LANDING, "2026-12-04"),
        (state("fix_queued", "maintainer"), False, False, Stage.LANDING, "2026-12-04"),
        (state("fix_proposed", "reporter"), False, False, None, ""),  # the lab measures it
        (state("needs_info", "reporter"), False, False, None, ""),
        (state("disputed", "reporter"), False, False, None, ""),
        (state("expected", "nobody"), False, False, None, ""),
        (state("fixed", "nobody"), False, False, None, ""),
        (state("no_response", "author", "improvement"), False, False, None, ""),
        (state("no_response", "author", "unknown"), False, False, None, ""),
    ],
)
def test_the_clock_of_a_report(report: ReportState, serious: bool, near: bool, stage: Stage | None, due: str) -> None:
    clock = report_clock(report, [None, FRIDAY, FRIDAY - DAY], serious=serious, near_release=near)
    assert (clock.stage if clock else None) == stage
    assert (f"{clock.due_at:%Y-%m-%d}" if clock else "") == due


def test_without_any_word_there_is_no_clock() -> None:
    assert report_clock(state("no_response", "author"), [None], serious=False, near_release=False) is None


@given(st.integers(0, 900_000), st.integers(1, 60), st.integers(1, 60))
def test_more_days_are_later_and_never_on_a_day_off(hours: int, days: int, more: int) -> None:
    since = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    policy = DeadlinePolicy()
    early, late = (after_working_days(since, each) for each in (days, days + more))
    assert early < late
    assert policy.is_working_day(early.date())
    assert early - since >= timedelta(days=days)


@given(st.integers(0, 90_000), st.integers(-2000, 2000), st.integers(1, 20))
def test_what_is_due_is_what_began_early_enough(hours: int, since_then: int, days: int) -> None:
    """A table of what is late is a query, a reminder goes by a clock: both agree."""
    since = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    until = since + timedelta(hours=since_then)
    assert (after_working_days(since, days) <= until) == (since <= before_working_days(until, days))


def test_what_began_at_the_weekend_is_due_for_the_query_when_it_is_for_the_clock() -> None:
    since = datetime(2026, 11, 21, 6, tzinfo=UTC)  # a Saturday
    for minutes in range(0, 5 * 24 * 60, 61):
        until = since + timedelta(minutes=minutes)
        assert (after_working_days(since, 1) <= until) == (since <= before_working_days(until, 1)), until


def test_the_policy_file_sets_the_deadlines() -> None:
    text = '[reminders]\naction = "send"\nresponse_days = 7\nserious_days = 2\nat_least_pct = 10\n'
    policy = read_policy(text).reminders
    assert (policy.action, policy.deadlines.response_days, policy.deadlines.serious_days) == (Action.SEND, 7, 2)
    assert (policy.at_least_pct, policy.deadlines.fix_days) == (10.0, 10)
    assert read_policy("").reminders == ReminderPolicy()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("reminders = 3", "reminders: expected a [reminders] table"),
        ("[reminders]\ndaily = 1", "reminders: daily: unknown setting"),
        ('[reminders]\naction = "shout"', "reminders: action: expected send, approve or hold"),
        ("[reminders]\nfix_days = 0", "reminders: fix_days: expected 1 to 250 working days, found 0"),
        ("[reminders]\nfix_days = 2.5", "fix_days: expected a whole number"),
    ],
)
def test_a_wrong_setting_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("[", r"\[")):
        read_policy(text)


# --- Rate limits: no destination gets more than its rate, and no mail waits longer than needed ---

MM, LKML, DANA = "mm@kvack.example", "lkml@vger.example", "dana@dev.example"


def test_no_rates_no_waiting() -> None:
    assert not Rates()
    assert reserve_slot([MM, DANA], Rates(), {}, NOON) is None


def test_the_slowest_of_all_that_a_mail_falls_under_counts() -> None:
    rates = Rates(every=60, domain=30, address=20, own={"@vger.example": 6, MM: 12})
    keys = {key: apart.total_seconds() for key, apart in rates.keys([MM, LKML, DANA])}
    assert keys == {
        "": 1,
        "@kvack.example": 2,
        "@vger.example": 10,
        "@dev.example": 2,
        MM: 5,
        LKML: 3,
        DANA: 3,
    }
    taken: dict[str, list[Slot]] = {}
    assert reserve_slot([MM, LKML], rates, taken, NOON) is None
    assert reserve_slot([LKML], rates, taken, NOON) == NOON + timedelta(seconds=10)
    assert reserve_slot([MM], rates, taken, NOON) == NOON + timedelta(seconds=5)
    assert reserve_slot([DANA], rates, taken, NOON + timedelta(hours=1)) is None


def test_mail_to_a_slow_address_delays_no_other() -> None:
    rates = Rates(every=60, domain=60, own={MM: 1})
    taken: dict[str, list[Slot]] = {}
    slow = [reserve_slot([MM, LKML], rates, taken, NOON) or NOON for _ in range(100)]
    assert slow == [NOON + timedelta(minutes=number) for number in range(100)]
    others = [reserve_slot([DANA, LKML], rates, taken, NOON) or NOON for _ in range(70)]
    free = [number for number in range(3, 73) if number != 60]  # at first three leave at once; slow ones have a second
    assert others == [NOON, NOON, *(NOON + timedelta(seconds=number) for number in free[:68])]
    assert len(taken[""]) == 99, "one long stretch, and the slow ones after it"
    reserve_slot([DANA], rates, taken, NOON + timedelta(days=1))
    assert len(taken[""]) == 1, "what is past is forgotten"


MAILS = st.lists(st.sets(st.sampled_from([MM, LKML, DANA, "lee@dev.example"]), min_size=1), max_size=40)


@given(MAILS, st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_no_minute_holds_more_than_a_rate(mails: list[set[str]], every: int, domain: int, address: int) -> None:
    rates = Rates(every=every, domain=domain, address=address)
    taken: dict[str, list[Slot]] = {}
    gone: list[tuple[datetime, set[str]]] = [(reserve_slot(sorted(to), rates, taken, NOON) or NOON, to) for to in mails]
    for slots in taken.values():
        assert all(one[1] < other[0] for one, other in pairwise(slots)), "in order, and joined where they touch"
    for begin, _ in gone:
        minute = [to for at, to in gone if begin <= at < begin + timedelta(minutes=1)]
        to_each = Counter(each for to in minute for each in to)
        burst = AHEAD.total_seconds() / 60 * address
        assert all(count <= address + burst + 1 for count in to_each.values())
        assert not every or len(minute) <= every + AHEAD.total_seconds() / 60 * every + 1


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("", Rates()),
        ('[rate]\nall = 300\ndomain = 60\naddress = 10\n"@Kernel.org" = 30\n', Rates(300, 60, 10, {"@kernel.org": 30})),
        ('[rate]\n"linux-mm@kvack.org" = 5', Rates(own={"linux-mm@kvack.org": 5})),
    ],
)
def test_rates_stand_in_the_policy(text: str, rates: Rates) -> None:
    assert read_policy(text).rates == rates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rate = 3", r"rate: expected a \[rate\] table"),
        ("[rate]\nhourly = 3", "rate: hourly: expected all, domain, address"),
        ("[rate]\nall = -1", "all: expected a whole number"),
        ('[rate]\n"@x" = "fast"', "@x: expected a whole number"),
    ],
)
def test_a_slip_in_the_rates_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_policy(text)


# --- Quiet hours, and who is never mailed ---

NIGHT = QuietHours(time(22), time(7), "Europe/Berlin")


@pytest.mark.parametrize(
    ("hours", "now", "until"),
    [
        (NIGHT, "2026-01-15T20:59", None),  # 21:59 there
        (NIGHT, "2026-01-15T21:00", "2026-01-16T06:00"),
        (NIGHT, "2026-01-15T23:30", "2026-01-16T06:00"),  # after midnight there
        (NIGHT, "2026-01-16T05:59", "2026-01-16T06:00"),
        (NIGHT, "2026-01-16T06:00", None),
        (NIGHT, "2026-03-28T22:00", "2026-03-29T05:00"),  # the clocks go forward in that night
        (NIGHT, "2026-10-24T21:00", "2026-10-25T06:00"),  # and back
        (QuietHours(time(22), time(2, 30), "Europe/Berlin"), "2026-10-25T00:29", "2026-10-25T00:30"),
        (QuietHours(time(22), time(2, 30), "Europe/Berlin"), "2026-10-25T01:10", "2026-10-25T01:30"),  # that hour again
        (QuietHours(time(9), time(17)), "2026-01-15T12:00", "2026-01-15T17:00"),
        (QuietHours(time(9), time(17)), "2026-01-15T08:59", None),
    ],
)
def test_quiet_hours_end_in_the_morning_of_their_place(hours: QuietHours, now: str, until: str | None) -> None:
    found = hours.until(datetime.fromisoformat(f"{now}+00:00"))
    assert found == (until and datetime.fromisoformat(f"{until}+00:00"))
    assert found is None or (hours.until(found) is None and found.utcoffset() == timedelta())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('quiet_hours = "22-7"', "quiet_hours: expected \"22:00-07:00 Europe/Berlin\", found '22-7'"),
        ('quiet_hours = "24:00-07:00"', "quiet_hours: expected"),
        ('quiet_hours = "22:00-07:00 Europe/Bielefeld"', "quiet_hours: unknown time zone 'Europe/Bielefeld'"),
        ('quiet_hours = "22:00-07:00 Europe"', "quiet_hours: unknown time zone 'Europe'"),
        ('quiet_hours = "22:00-07:00 ../../etc/passwd"', "quiet_hours: expected"),
        ('quiet_hours = "07:00-07:00"', "quiet_hours: expected two different times"),
        ('[[rule]]\naction = "send"\nauthors = [""]', "rule 1: authors: expected a pattern without commas, found ''"),
        ('[[rule]]\naction = "send"\nsuites = ["a,b*"]', "rule 1: suites: expected a pattern without commas"),
        ('never = "a@b.example"', "never: expected a list of addresses"),
        ('never = ["linux-mm"]', "never: expected a list of addresses"),
        ('[[rule]]\naction = "hold"\nbelow_pct = nan', "rule 1: below_pct: expected a percentage, found nan"),
        ('[[rule]]\naction = "hold"\nat_least_pct = -1', "rule 1: at_least_pct: expected a percentage, found -1"),
    ],
)
def test_a_slip_in_what_is_quiet_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read_policy(text)


letters = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=","), min_size=1, max_size=8)
patterns = st.lists(letters, max_size=3).map(tuple)
percent = st.floats(0, 999, allow_nan=False).filter(lambda size: size == 0 or size > 1e-3)
rules = st.builds(
    PolicyRule,
    action=st.sampled_from(Action),
    direction=st.sampled_from(["", "regression", "improvement"]),
    at_least_pct=percent,
    below_pct=percent | st.just(float("inf")),
    suites=patterns,
    trees=patterns,
    subsystems=patterns,
    authors=patterns,
    opted_in=st.booleans(),
)
number = st.integers(0, 10**6 - 1)
address = st.from_regex(r"[a-z]{1,5}@[a-z]{1,5}\.org", fullmatch=True)
policies = st.builds(
    Policy,
    rules=st.lists(rules, max_size=3).map(tuple),
    quiet_after_fix=number.map(lambda days: timedelta(days=days)),
    per_author=number,
    per_list=number,
    a_day=number,
    rates=st.builds(Rates, every=number, domain=number, address=number, own=st.dictionaries(address, number)),
    quiet_hours=st.none() | st.just(NIGHT) | st.just(QuietHours(time(9), time(17, 5))),
    never=st.lists(address, unique=True, max_size=3).map(tuple),
    reminders=st.builds(ReminderPolicy, action=st.sampled_from(Action), serious_pct=st.integers(0, 99).map(float)),
)


@pytest.mark.hypothesis
@given(policies)
def test_a_policy_is_the_same_after_its_toml(policy: Policy) -> None:
    assert read_policy(to_toml(policy)) == policy
