"""Rate limits: no destination gets more than its rate, and no mail waits longer than needed."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy.policy_file import read_policy
from bot.compose.policy.rates import AHEAD, Rates, reserve_slot
from tests.conftest import NOW

MM, LKML, DANA = "mm@kvack.example", "lkml@vger.example", "dana@dev.example"


def test_no_rates_no_waiting() -> None:
    assert not Rates()
    assert reserve_slot([MM, DANA], Rates(), {}, NOW) is None


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
    used: dict[str, datetime] = {}
    assert reserve_slot([MM, LKML], rates, used, NOW) is None
    assert reserve_slot([LKML], rates, used, NOW) == NOW + timedelta(seconds=10)
    assert reserve_slot([MM], rates, used, NOW) == NOW + timedelta(
        seconds=11
    )  # behind the one that goes to all at 10 s
    assert reserve_slot([DANA], rates, used, NOW + timedelta(hours=1)) is None


MAILS = st.lists(st.sets(st.sampled_from([MM, LKML, DANA, "lee@dev.example"]), min_size=1), max_size=40)


@given(MAILS, st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_no_minute_holds_more_than_a_rate(mails: list[set[str]], every: int, domain: int, address: int) -> None:
    rates = Rates(every=every, domain=domain, address=address)
    used: dict[str, datetime] = {}
    gone: list[tuple[datetime, set[str]]] = [(reserve_slot(sorted(to), rates, used, NOW) or NOW, to) for to in mails]
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
