"""When two people's mails may be about one regression."""

from __future__ import annotations

import pytest

from tracker.domain.archived_reports import Fact, PersonReport, agreement


def report(**facts: str) -> PersonReport:
    return PersonReport("somebody", **{name: Fact(value, "a sentence") for name, value in facts.items()})


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({"culprit": "3b1f0c9d2e44"}, {"culprit": "3b1f0c9d2e4444444444"}, "the same culprit"),
        ({"culprit": "3b1f0c9d2e44"}, {"culprit": "57e95a5c4117"}, ""),
        ({"culprit_title": "mm: a"}, {"culprit_title": "MM: a"}, "the same culprit"),
        ({"good": "6.15", "bad": "6.16"}, {"good": "v6.15", "bad": "v6.16"}, "between the same versions"),
        ({"good": "6.15", "bad": "6.16"}, {"good": "6.15", "bad": "6.16.1"}, ""),
        ({"bad": "6.16"}, {"bad": "6.16"}, ""),  # many are of that release
        (
            {"good": "6.15", "bad": "6.16", "culprit": "3b1f0c9d2e44"},
            {"good": "6.15", "bad": "6.16", "culprit": "57e95a5c4117"},
            "",
        ),
        ({"metric": "IOPS", "bad": "6.16-rc2"}, {"metric": "iops", "bad": "v6.16-rc1"}, "the same metric in v6.16"),
        ({"metric": "IOPS", "bad": "6.16"}, {"metric": "IOPS", "bad": "6.15"}, ""),
        ({"metric": "IOPS"}, {"metric": "IOPS"}, ""),
        ({"suite": "fio", "metric": "bw", "bad": "6.16"}, {"suite": "fio", "bad": "6.16"}, "the same suite in v6.16"),
        ({}, {}, ""),
    ],
)
def test_two_mails_may_be_about_one_regression(one: dict[str, str], other: dict[str, str], why: str) -> None:
    assert agreement(report(**one), report(**other)) == agreement(report(**other), report(**one)) == why
