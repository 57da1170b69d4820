"""Rate limits: no destination gets more than its rate, and no mail waits longer than needed."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.compose.policy import AHEAD, Rates, Slot, read_policy, reserve_slot
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
    taken: dict[str, list[Slot]] = {}
    assert reserve_slot([MM, LKML], rates, taken, NOW) is None
    assert reserve_slot([LKML], rates, taken, NOW) == NOW + timedelta(seconds=10)
    assert reserve_slot([MM], rates, taken, NOW) == NOW + timedelta(seconds=5)
    assert reserve_slot([DANA], rates, taken, NOW + timedelta(hours=1)) is None


def test_mail_to_a_slow_address_delays_no_other() -> None:
    rates = Rates(every=60, domain=60, own={MM: 1})
    taken: dict[str, list[Slot]] = {}
    slow = [reserve_slot([MM, LKML], rates, taken, NOW) or NOW for _ in range(100)]
    assert slow == [NOW + timedelta(minutes=number) for number in range(100)]
    others = [reserve_slot([DANA, LKML], rates, taken, NOW) or NOW for _ in range(70)]
    free = [number for number in range(3, 73) if number != 60]  # at first three leave at once; slow ones have a second
    assert others == [NOW, NOW, *(NOW + timedelta(seconds=number) for number in free[:68])]
    assert len(taken[""]) == 99, "one long stretch, and the slow ones after it"
    reserve_slot([DANA], rates, taken, NOW + timedelta(days=1))
    assert len(taken[""]) == 1, "what is past is forgotten"


MAILS = st.lists(st.sets(st.sampled_from([MM, LKML, DANA, "lee@dev.example"]), min_size=1), max_size=40)


@given(MAILS, st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_no_minute_holds_more_than_a_rate(mails: list[set[str]], every: int, domain: int, address: int) -> None:
    rates = Rates(every=every, domain=domain, address=address)
    taken: dict[str, list[Slot]] = {}
    gone: list[tuple[datetime, set[str]]] = [(reserve_slot(sorted(to), rates, taken, NOW) or NOW, to) for to in mails]
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
