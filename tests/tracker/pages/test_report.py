"""Parts of a report's page: the chart of the bisection, mails with their readings, a machine's track record."""

from __future__ import annotations

import re
import tempfile
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.archives.files import read_mbox
from tracker.charts import chart, groups_of, measured_later, paths, read_payload, side
from tracker.domain.text import round_values
from tracker.domain.track_record import Past, record
from tracker.pages.report import exports_as_mbox, packed, passages
from tracker.services.report_summary import HEIGHT, spark, urgency
from tracker.templatetags.words import as_markdown

TESTED = [  # in the order of the tests: halving what is left
    ("a" * 40, "bad", [8.0]),
    ("b" * 40, "skip", [9.0]),
    ("1" * 40, "good", [10.1]),
    ("2" * 40, "good", [10.0]),
    ("3" * 40, "bad", [8.1]),
    ("f" * 40, "good", [10.1]),  # the parent again
    ("e" * 12, "bad", [8.3]),  # the culprit again
]
STEPS = {"bisect": {"steps": [dict(zip(("sha", "verdict", "samples"), each, strict=True)) for each in TESTED]}}
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_bisection_is_drawn_in_gits_order_each_commit_once() -> None:
    later = measured_later("c" * 10, "m", [{"metric": "other", "new": 1}, {"metric": "m", "new": 9.5, "verdict": "x"}])
    good, bad = side("parent", "good", [10, 10.2]), side("culprit", "bad", [8.1, 8.2])
    groups = groups_of(good, bad, STEPS, ("f" * 40, "e" * 40), later)
    assert [group.name[:7] for group in groups] == [
        *("1" * 7, "2" * 7, "b" * 7, "parent", "culprit", "3" * 7, "a" * 7, "c" * 7)
    ]
    drawn = chart(groups, "1/s")
    assert drawn is not None
    assert "; parent (good): 10.1 ± 0.1 1/s, n = 2; culprit (bad)" in drawn.description
    assert [column.x for column in drawn.columns] == sorted(column.x for column in drawn.columns)
    assert drawn.columns[3].mean < drawn.columns[4].mean  # more is higher up
    assert [label for _, label in drawn.grid] == ["8", "8.5", "9", "9.5", "10"]
    assert chart(groups[:1]) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.83, 10.2, [2, 4, 6, 8, 10]),
        (99.1, 100.4, [99.5, 100]),
        (70_412, 81_004, [72_000, 74_000, 76_000, 78_000, 80_000]),
        (-3, 3, [-2, 0, 2]),
        (5, 5, [5]),
        (0, 1e-300, [0]),
    ],
)
def test_axes_have_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert round_values(low, high) == expected


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_any_axis_has_a_few_numbers_within_it(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    found = round_values(low, high)
    assert 1 <= len(found) <= 6
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= each <= high + slack for each in found)
    assert found == sorted(found)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["steps", "sha", "samples", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON, st.lists(st.floats(), max_size=60), st.lists(st.floats(), max_size=60))
def test_any_payload_is_drawn_or_not(bisect: Any, good: list[float], bad: list[float]) -> None:
    drawn = chart(
        groups_of(
            *(side("parent", "good", good), side("culprit", "bad", bad)),
            {"bisect": bisect},
            ("a", ""),
            measured_later("x", "m", [bisect]),
        )
    )
    if drawn:
        assert all(0 <= y <= drawn.height for column in drawn.columns for _, y in column.dots)
    assert read_payload("{") == {}
    assert read_payload("[1]") == {}


@given(st.lists(st.floats(allow_nan=False), max_size=30), st.lists(st.floats(allow_nan=False), max_size=30))
def test_a_little_chart_stays_in_its_frame(old: list[float], new: list[float]) -> None:
    made = spark(old, new)
    heights = [int(each) for side in made.split("|") for each in side.split(",") if each]
    assert all(0 <= each <= HEIGHT for each in heights)
    good, bad, width = paths(made)
    assert (bool(good), bool(bad), width > 0) == (bool(made),) * 3


@given(st.booleans(), st.floats(allow_nan=False), st.none() | st.datetimes(timezones=st.just(UTC)))
def test_urgency_fits_its_column_and_blocking_comes_first(
    blocks: bool, weight: float, last_reply: datetime | None
) -> None:
    found = urgency(blocks, weight, last_reply)
    assert 0 <= found < 1 << 63
    assert urgency(True, 0, DAY) > urgency(False, weight, last_reply)


def test_urgency_goes_by_effect_then_by_silence() -> None:
    assert urgency(False, 3.0, DAY) > urgency(False, 2.5, None)
    assert urgency(False, 3.0, DAY) > urgency(False, 3.0, DAY + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("text", "quotes", "marked"),
    [
        ("I can reproduce it.", ["can reproduce"], ["can reproduce"]),
        ("I can\nreproduce it.", ["can reproduce"], ["can\nreproduce"]),
        ("one two three", ["two", "one two"], ["one two"]),
        ("one two one", ["one", "one"], ["one"]),
        ("a.c abc", ["abc"], ["abc"]),
        ("nothing", ["else", ""], []),
    ],
)
def test_the_words_that_were_relied_on_are_marked(text: str, quotes: list[str], marked: list[str]) -> None:
    found = passages(text, quotes)
    assert [each.text for each in found if each.marked] == marked
    assert "".join(each.text for each in found) == text


@given(st.text(), st.lists(st.text(max_size=5), max_size=4))
def test_no_letter_of_a_mail_is_lost(text: str, quotes: list[str]) -> None:
    assert "".join(each.text for each in passages(text, quotes)) == text


def test_an_mbox_can_be_read_again() -> None:
    mails = [b"Subject: a\r\n\r\nFrom here\r\n>From there\r\n", b"Subject: b\n\nx"]
    made = b"".join(exports_as_mbox(mails))
    assert made.count(b"From mboxrd@z") == 2
    assert b"\n>From here\n>>From there\n\n" in made


BODIES = st.lists(
    st.one_of(st.sampled_from([b"", b"From here", b">From there", b"From a@b Thu Jan  1 00:00:00 1970"]), st.binary())
).map(b"\n".join)


@given(st.lists(BODIES, min_size=1, max_size=4))
def test_an_mbox_gives_back_every_byte(bodies: list[bytes]) -> None:
    mails = [b"Subject: a\n\n" + body.replace(b"\r", b"") + b"\n" for body in bodies]
    made = b"".join(packed(exports_as_mbox(mails)))
    with tempfile.NamedTemporaryFile(suffix=".mbox.gz") as file:
        file.write(made)
        file.flush()
        assert [mail.raw for mail in read_mbox(file.name)] == mails


def test_notes_are_markdown_and_nothing_else() -> None:
    assert as_markdown("**yes** [it](https://x.example)") == (
        '<p><strong>yes</strong> <a href="https://x.example" rel="noopener noreferrer">it</a></p>'
    )
    for bad in (
        "<script>alert(1)</script>",
        "![x](http://x/y.png)",
        "[x](javascript:alert(1))",
        "<img src=x onerror=y>",
    ):
        made = as_markdown(bad)
        assert set(re.findall(r"<(\w+)", made)) <= {"p", "a"}, bad  # what was a tag is text
        assert not re.search(r"<[^>]*(?:javascript|onerror)", made), bad


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "[a](", "![a](", "<a ", "*a ", "> ", "- ", "`", "\n- "])
def test_a_note_takes_no_longer_than_its_length(piece: str) -> None:
    begin = time.process_time()
    as_markdown(piece * (20_000 // len(piece)))
    assert time.process_time() - begin < 20  # another library took a minute


def test_a_record_says_how_it_went() -> None:
    def past(state: str, release: str = "v5.6", answer: float | None = None, verdict: str = "regression") -> Past:
        at = DAY + timedelta(days=answer) if answer is not None else None
        return Past(release, state, verdict, DAY, at, 3.0)

    track_record = record(
        [
            past("fixed", answer=1),
            past("invalid", answer=3),
            past("no_response"),
            past("disputed", "v5.7", answer=8),
            past("no_action", verdict="improvement"),
        ]
    )
    total = track_record.total
    assert (total.reports, total.regressions, total.improvements, total.open, total.fixed) == (5, 4, 1, 2, 1)
    assert (total.false, total.ended, total.false_pct) == (2, 3, pytest.approx(200 / 3))
    assert (total.answer, total.slow_answer) == (timedelta(days=3), timedelta(days=8))
    assert total.noise == 3.0
    assert [each.name for each in track_record.by_release] == ["v5.7", "v5.6"]
    empty = record([]).total
    assert (empty.answer, empty.slow_answer, empty.false_pct, empty.noise) == (None,) * 4
